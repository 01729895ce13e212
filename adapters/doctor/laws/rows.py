"""Laws of each row by itself: times in order, amounts that add up, names, stock that is low."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from adapters.base import Record
from adapters.doctor.case import KEY, DoctorCase, LawLook
from adapters.doctor.laws.trials import PartOf, RowTrial, Trial, told, word
from adapters.examination import TOLERABLE, Verdict, agreeing, counted
from adapters.mapping.models import ResourceMap
from adapters.values.times import UtcTime

# How far ahead a time that is written now may be; zones differ by more.
LEEWAY = timedelta(minutes=15)
WRITTEN = ("createdAt", "updatedAt", "startedAt", "validatedAt")
# How far a sum may be off, and how much further for each line.
CENT, CENT_OF_A_LINE = Decimal("0.02"), Decimal("0.01")
# Invoices whose balance is what the practice makes of it.
UNSETTLED = frozenset({"DRAFT", "CANCELLED"})
# The share of clients without a name that fails, and that of totals by a rule of their own.
NAMELESS, OTHERWISE = 0.5, 0.05


class InOrder(RowTrial):
    """A time that comes after another one, or at least (`may_equal`) not before it."""

    may_equal = False

    def holds(self, record: Record) -> bool | None:
        first, second = (record[name] for name in self.fields)
        if first is None or second is None:
            return None
        return bool(first <= second if self.may_equal else first < second)


class StartBeforeEnd(InOrder):
    """An appointment ends after it starts."""

    fields = ("scheduledAt", "endTime")


class ValidatedAfterStart(InOrder):
    """A consultation is validated after it started."""

    fields = ("startedAt", "validatedAt")
    may_equal = True


class Sum(RowTrial):
    """An amount that is the sum of two others, to the cent."""

    most = OTHERWISE

    def holds(self, record: Record) -> bool | None:
        total, *parts = (record[name] for name in self.fields)
        if total is None or None in parts:
            return None
        return bool(abs(Decimal(total) - sum(map(Decimal, parts))) < CENT)


class NetPlusTax(Sum):
    """A total is the subtotal and the tax."""

    fields = ("total", "subtotal", "taxTotal")


class PaidPlusBalance(Sum):
    """A total is what was paid and what is left, on invoices that are to be paid."""

    fields = ("total", "amountPaid", "balance")

    def holds(self, record: Record) -> bool | None:
        return None if record["status"] in UNSETTLED else super().holds(record)


class LinesAddUp(RowTrial):
    """The lines of an invoice add up to its subtotal."""

    fields = ("subtotal",)

    def __init__(self, part: LawLook, case: DoctorCase) -> None:
        super().__init__(part)
        self._case = case

    async def take(self, page: Sequence[Record]) -> None:
        keys = {record["id"]: record[KEY] for record in page}
        whole = await self._case.with_lists("invoices", [*page])
        await super().take([{**record, KEY: keys[record["id"]]} for record in whole])

    def holds(self, record: Record) -> bool | None:
        amounts = [line["total"] for line in record["lines"] or ()]
        if record["subtotal"] is None or not amounts or None in amounts:
            return None
        apart = abs(Decimal(record["subtotal"]) - sum(map(Decimal, amounts)))
        return bool(apart < CENT + CENT_OF_A_LINE * len(amounts))

    def example(self, record: Record) -> str:
        lines = [Decimal(line["total"]) for line in record["lines"]]
        values = {"subtotal": record["subtotal"], f"{counted(len(lines), 'line')} of": sum(lines)}
        return told(record, values)


class OwnersHaveNames(RowTrial):
    """A client has a name with a letter in it."""

    fields = ("firstName", "lastName")
    most, least = NAMELESS, TOLERABLE

    def holds(self, record: Record) -> bool | None:
        names = (record[name] or "" for name in self.fields)
        return any(any(map(str.isalpha, name)) for name in names)

    def example(self, record: Record) -> str:
        return f"key {record[KEY] or 'unknown'}"


class LowByQuantity(RowTrial):
    """An item is low where its quantity is at most its threshold, both taken as numbers."""

    fields = ("isLow", "quantity", "reorderThreshold")

    def __init__(self, part: LawLook) -> None:
        super().__init__(part)
        self._as_texts = self._below = True

    def holds(self, record: Record) -> bool | None:
        is_low, *numbers = (record[name] for name in self.fields)
        if is_low is None or None in numbers:
            return None
        quantity, least = numbers
        holds = bool(is_low == (quantity <= least))
        if not holds:
            self._as_texts &= is_low == (word(quantity) <= word(least))
            self._below &= quantity == least and not is_low
        return holds

    def tell(self) -> None:
        why = ""
        if self._below:
            why = ", as if it were quantity < reorderThreshold"
        elif self._as_texts:
            why = ", as if the two were compared as texts"
        self.part.tell(more=why)


class WrittenByNow(Trial):
    """A time at which something was written is not to come."""

    def __init__(self, part: LawLook, case: DoctorCase, name: str, *, is_utc: bool) -> None:
        super().__init__(part)
        self._name, self._is_utc, self._now = name, is_utc, case.examination.now
        offset = self._now.astimezone(case.adapter.diary.zone).utcoffset()
        self._offset, self._furthest = offset or timedelta(), timedelta()

    async def take(self, page: Sequence[Record]) -> None:
        for record in page:
            if value := record[self._name]:
                ahead = datetime.fromisoformat(value) - self._now
                self._furthest = max(self._furthest, ahead)
                holds = ahead <= LEEWAY
                example = "" if holds else told(record, {self._name: value})
                self.part.take(holds=holds, example=example, shown=record["id"])

    def tell(self) -> None:
        part = self.part
        if not part.broken:
            part.tell()
            return
        rows, verb = counted(part.broken, "row"), agreeing(part.broken, "lie")
        text = f"{rows} of {part.count:,} {verb} in the future"
        if self._is_utc and self._furthest <= self._offset + LEEWAY:
            why = (
                "by no more than the clinic's zone: they look like local time, but are read as UTC"
            )
            part.breach(f"{text}, {why}", remedy="write `as: local time`")
        else:
            part.breach(text, Verdict.WARNING)


OF_ROWS: Mapping[str, Sequence[tuple[str, str, type[RowTrial]]]] = {
    "appointments": [("start-before-end", "endTime", StartBeforeEnd)],
    "consultations": [("validated-after-start", "validatedAt", ValidatedAfterStart)],
    "invoices": [
        ("total-is-net-plus-tax", "total", NetPlusTax),
        ("total-is-paid-plus-balance", "balance", PaidPlusBalance),
    ],
    "stock": [("low-by-quantity", "isLow", LowByQuantity)],
}


def row_trials(name: str, case: DoctorCase, part_of: PartOf) -> Iterator[Trial]:
    """Yields the laws that say something of the rows of a resource, as far as it is mapped."""
    mapped = case.adapter.mapping.resources[name]
    for law, at, kind in OF_ROWS.get(name, ()):
        if mapped.fields.keys() >= {*kind.fields} and (part := part_of(law, at)):
            yield kind(part)
    for at in WRITTEN:
        if at in mapped.fields and (part := part_of("written-by-now", at)):
            is_utc = isinstance(case.rows(name).by_name[at].converter, UtcTime)
            yield WrittenByNow(part, case, at, is_utc=is_utc)
    if name == "clients":
        named = [at for at in OwnersHaveNames.fields if at in mapped.fields]
        if named and (part := part_of("owners-have-names", named[-1])):
            yield OwnersHaveNames(part)
    if name == "invoices" and _has_sums(mapped) and (part := part_of("lines-add-up", "subtotal")):
        yield LinesAddUp(part, case)


def _has_sums(mapped: ResourceMap) -> bool:
    lines = mapped.lists.get("lines")
    return lines is not None and "total" in lines.fields and "subtotal" in mapped.fields
