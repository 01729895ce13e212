"""Laws of all the values of a field together; they speak only of enough rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from adapters.base import FieldShape, Record
from adapters.doctor.case import DoctorCase, LawLook
from adapters.doctor.laws.trials import PartOf, RowTrial, Trial, told
from adapters.doctor.values import ENOUGH
from adapters.examination import Verdict, agreeing, counted
from adapters.mapping.models import ListMap, ResourceMap, ValueSource

# Fields of which the rows have several values.
SHARED = {
    "patients": ("species", "sex", "status"),
    "appointments": ("status",),
    "consultations": ("status",),
    "invoices": ("status",),
}
# References without which a record belongs to nobody.
NEEDED = {
    "patients": ("clientId",),
    "appointments": ("clientId", "patientId", "vetId"),
    "consultations": ("patientId", "vetId"),
    "invoices": ("clientId",),
}
# The share of rows without a reference: with more it is lost, or a needed one is worth a look.
LOST, DOUBTFUL = 0.9, 0.5
# Resources whose owners are those of their animals too. More rows than this share that lack one
# are worth a look, where so many of them or more have an animal with an owner.
BY_ANIMAL, OWNERLESS, FEW = ("appointments", "invoices"), 0.05, 5
# How far the product of a line may be off for each unit.
CENT_OF_ONE = Decimal("0.02")
# Different values of a field that are kept.
MOST_SEEN = 1_000


class ValuesTrial(Trial):
    """A law of all the values of a field together, of which `known` are in its table of codes.

    Of so many `rows` so many are `present`; `seen` are the different ones, up to MOST_SEEN.
    """

    def __init__(self, part: LawLook, name: str, known: Iterable[Any] = ()) -> None:
        super().__init__(part)
        self.name, self.known = name, set(known)
        self.rows, self.present, self.seen = 0, 0, set[Any]()

    async def take(self, page: Sequence[Record]) -> None:
        values = [value for record in page if (value := record[self.name]) is not None]
        self.rows += len(page)
        self.present += len(values)
        if len(self.seen) < MOST_SEEN:
            self.seen.update(values)


class NotOneCode(ValuesTrial):
    """A field with several codes has more than one of them in many rows."""

    def tell(self) -> None:
        if self.part.too_few(self.present, ENOUGH):
            return
        rows = counted(self.present, "row")
        if len(self.seen) == 1:
            [value] = self.seen
            what = f"are {value}" if self.known else "have the same value"
            self.part.breach(f"all {rows} {what}", Verdict.WARNING)
        else:
            self.part.ok(f"{len(self.seen):,} values in {rows}")


class CodesInUse(ValuesTrial):
    """Each code of a field's table is that of some row."""

    def tell(self) -> None:
        if self.part.too_few(self.present, ENOUGH):
            return
        if unused := sorted(map(str, self.known - self.seen)):
            rows = counted(self.present, "row")
            text = f"of {rows} looked at none has {' or '.join(unused)}"
            self.part.breach(text, Verdict.NOTE)
        else:
            self.part.ok(f"each of {len(self.known)} values is that of a row")


class ReferencesKept(Trial):
    """Few rows lack a reference; where one is needed, most rows have it."""

    def __init__(self, part: LawLook, name: str, *, is_needed: bool) -> None:
        super().__init__(part)
        self._name, self._is_needed = name, is_needed

    async def take(self, page: Sequence[Record]) -> None:
        for record in page:
            holds = record[self._name] is not None
            example = "" if holds else told(record, {self._name: None})
            self.part.take(holds=holds, example=example, shown=record["id"])

    @property
    def doubt(self) -> str:
        """What says that rows should have the reference; "" for nothing."""
        return ""

    def tell(self) -> None:
        part = self.part
        if part.too_few(part.count, ENOUGH):
            return
        verb = agreeing(part.broken, "have")
        text = f"{counted(part.broken, 'row')} of {part.count:,} {verb} none"
        if part.broken > LOST * part.count:
            part.breach(text, Verdict.FAILED if self._is_needed else Verdict.WARNING)
            return
        doubt = self.doubt if part.broken > OWNERLESS * part.count else ""
        if doubt or (self._is_needed and part.broken > DOUBTFUL * part.count):
            part.breach(f"{text}{doubt}", Verdict.WARNING)
        else:
            part.ok(text)


class OwnersKept(ReferencesKept):
    """Few rows lack an owner, and hardly any of those are of an animal that has one."""

    def __init__(self, part: LawLook, of: str, case: DoctorCase) -> None:
        super().__init__(part, "clientId", is_needed=True)
        self._of, self._case = of, case
        self._owners = {it["id"]: it["clientId"] for it in case.samples.get("patients", ())}
        self._known = self._owned = 0

    async def take(self, page: Sequence[Record]) -> None:
        await super().take(page)
        without = [record for record in page if record["clientId"] is None]
        if self._of == "invoices":
            without = await self._case.with_lists("invoices", without)
        for record in without:
            animals = [each.get("patientId") for each in record.get("lines") or (record,)]
            owners = [self._owners[animal] for animal in animals if animal in self._owners]
            self._known += bool(owners)
            self._owned += any(owner is not None for owner in owners)

    @property
    def doubt(self) -> str:
        if self._known < FEW or self._owned <= DOUBTFUL * self._known:
            return ""
        return f", though the animals of {self._owned:,} of {self._known:,} looked at have an owner"


class TaxIsPercent(Trial):
    """Tax rates are percentages, of which no country's are all below 1."""

    def __init__(self, part: LawLook) -> None:
        super().__init__(part)
        self._rates: list[str] = []
        self._highest = Decimal(0)

    async def take(self, page: Sequence[Record]) -> None:
        for record in page:
            if (rate := record["taxRate"]) is not None and Decimal(rate) > 0:
                self._highest = max(self._highest, Decimal(rate))
                example = told(record, {"taxRate": rate})
                self.part.take(holds=Decimal(rate) >= 1, example=example)

    def tell(self) -> None:
        part = self.part
        if self._highest >= 1:
            rates = f"{counted(part.count, 'rate')}, the highest of them {self._highest:f}"
            part.ok(rates)
        elif not part.too_few(part.count, ENOUGH):
            text = f"all {counted(part.count, 'rate')} above 0 are below 1 %"
            part.breach(f"{text}: they look like fractions")


class LinesMultiply(RowTrial):
    """The total of a line is its quantity times its price, at least in most lines."""

    fields = ("total", "quantity", "unitPrice")

    def __init__(self, part: LawLook) -> None:
        super().__init__(part)
        self._swapped = 0

    def holds(self, record: Record) -> bool | None:
        if None in (values := [record[name] for name in self.fields]):
            return None
        total, quantity, price = (Decimal(str(value)) for value in values)
        if quantity == 1 or not total:
            return None
        apart = CENT_OF_ONE * max(Decimal(1), abs(quantity))
        self._swapped += abs(price - quantity * total) < apart
        return abs(total - quantity * price) < apart

    def tell(self) -> None:
        part = self.part
        if part.too_few(part.count, ENOUGH):
            return
        rows = f"{counted(part.broken, 'line')} of {part.count:,}"
        text = f"{rows} {agreeing(part.broken, 'are')} not quantity times unitPrice"
        if part.broken <= DOUBTFUL * part.count:
            part.ok(text)
            return
        is_swapped = self._swapped > DOUBTFUL * part.count
        why = ": unitPrice and total seem to have changed places" if is_swapped else ""
        part.breach(f"{text}{why}", Verdict.WARNING)


def share_trials(
    of: str,
    mapped: ResourceMap | ListMap,
    shapes: Mapping[str, FieldShape],
    part_of: PartOf,
    case: DoctorCase,
) -> Iterator[Trial]:
    """Yields the laws of the fields of a resource, or of a list, as far as they are mapped."""
    for name in SHARED.get(of, ()):
        if name in mapped.fields:
            yield from _of_codes(name, mapped.fields[name], part_of)
    for name in mapped.fields:
        if shapes[name].refers is not None and (part := part_of("references-kept", name)):
            if of in BY_ANIMAL and name == "clientId":
                yield OwnersKept(part, of, case)
            else:
                yield ReferencesKept(part, name, is_needed=name in NEEDED.get(of, ()))
    has_rates = of == "invoices.lines" and "taxRate" in mapped.fields
    if has_rates and (part := part_of("tax-is-percent", "taxRate")):
        yield TaxIsPercent(part)
    has_lines = of == "invoices.lines" and mapped.fields.keys() >= {*LinesMultiply.fields}
    if has_lines and (part := part_of("lines-multiply", "total")):
        yield LinesMultiply(part)


def _of_codes(name: str, source: ValueSource, part_of: PartOf) -> Iterator[Trial]:
    known = {value for value in (source.codes or {}).values() if value is not None}
    # a table of one code says that all are alike
    if (source.codes is None or len(known) > 1) and (part := part_of("not-one-code", name)):
        yield NotOneCode(part, name, known)
    if known and (part := part_of("codes-in-use", name)):
        yield CodesInUse(part, name, known)
