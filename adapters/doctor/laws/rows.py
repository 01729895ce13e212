"""Laws of each row by itself: times in order, amounts that add up, names, stock that is low."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import ClassVar

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


class WholeInvoices:
    """Reads invoices with the lists inside them, once for all the laws of a page."""

    def __init__(self, case: DoctorCase) -> None:
        self._case = case
        self._page: Sequence[Record] = ()
        self._whole = list[Record]()

    async def of(self, page: Sequence[Record]) -> Sequence[Record]:
        """Returns the invoices of a page with their lists."""
        if page is not self._page:
            keys = {record["id"]: record[KEY] for record in page}
            whole = await self._case.with_lists("invoices", [*page])
            self._page = page
            self._whole = [{**record, KEY: keys[record["id"]]} for record in whole]
        return self._whole


class AddUp(RowTrial):
    """The amounts of a list in an invoice add up to a field of it."""

    inner: ClassVar[str]
    amount: ClassVar[str]

    def __init__(self, part: LawLook, invoices: WholeInvoices) -> None:
        super().__init__(part)
        self._invoices = invoices

    async def take(self, page: Sequence[Record]) -> None:
        await super().take(await self._invoices.of(page))

    def holds(self, record: Record) -> bool | None:
        [field], amounts = self.fields, self._amounts(record)
        if record[field] is None or None in amounts or not self.is_told(record, amounts):
            return None
        return self._fits(record, amounts)

    def is_told(self, record: Record, amounts: Sequence[str]) -> bool:
        """Returns whether the list says anything of the sum."""
        return bool(amounts)

    def _fits(self, record: Record, amounts: Sequence[str]) -> bool:
        apart = abs(Decimal(record[self.fields[0]]) - sum(map(Decimal, amounts)))
        return bool(apart < CENT + CENT_OF_A_LINE * len(amounts))

    def _amounts(self, record: Record) -> list[str]:
        return [each[self.amount] for each in record[self.inner] or ()]

    def example(self, record: Record) -> str:
        [field], amounts = self.fields, [Decimal(each) for each in self._amounts(record)]
        few = counted(len(amounts), self.inner.removesuffix("s"))
        return told(record, {field: record[field], f"{few} of": sum(amounts)})


class LinesAddUp(AddUp):
    """The lines of an invoice add up to its subtotal."""

    fields, inner, amount = ("subtotal",), "lines", "total"


class GrossLinesAddUp(AddUp):
    """The lines of an invoice add up to its total, as they are or with the tax of each."""

    fields, inner, amount = ("total",), "lines", "total"

    def holds(self, record: Record) -> bool | None:
        if (holds := super().holds(record)) is not False:
            return holds
        rates = [Decimal(line["taxRate"] or 0) for line in record["lines"]]
        amounts = [
            str(Decimal(amount) * (1 + rate / 100))
            for amount, rate in zip(self._amounts(record), rates, strict=True)
        ]
        return self._fits(record, amounts)


class PaymentsAddUp(AddUp):
    """The payments of an invoice add up to what was paid; without any, nothing was."""

    fields, inner, amount = ("amountPaid",), "payments", "amount"

    def is_told(self, record: Record, amounts: Sequence[str]) -> bool:
        return bool(amounts) or Decimal(record["amountPaid"]) != 0


class NumbersAreUnique(RowTrial):
    """No two issued invoices have one number; of a number it keeps 64 bits, and the year."""

    fields = ("number",)

    def __init__(self, part: LawLook) -> None:
        super().__init__(part)
        self._years = dict[int, str]()
        self._by_year = True

    def holds(self, record: Record) -> bool | None:
        number, year = record["number"], (record.get("issuedAt") or "")[:4]
        if not number or record.get("status") in UNSETTLED:
            return None
        first = self._years.get(mark := hash(number))
        self._years.setdefault(mark, year)
        self._by_year &= first is None or year != first
        return first is None

    def tell(self) -> None:
        more = ", each in another year: is the year a part of it?" if self._by_year else ""
        self.part.tell(most=self.most, more=more)


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
        ("numbers-are-unique", "number", NumbersAreUnique),
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
    if name == "invoices":
        yield from _sums(mapped, case, part_of)


def _sums(mapped: ResourceMap, case: DoctorCase, part_of: PartOf) -> Iterator[Trial]:
    """Yields the laws of the lists in invoices whose amounts and sums are mapped."""
    invoices = WholeInvoices(case)
    lines = LinesAddUp if "subtotal" in mapped.fields else GrossLinesAddUp
    every: Sequence[tuple[str, type[AddUp]]] = (
        ("lines-add-up", lines),
        ("payments-add-up", PaymentsAddUp),
    )
    for law, sums in every:
        [at], inner = sums.fields, mapped.lists.get(sums.inner)
        if at not in mapped.fields or inner is None or sums.amount not in inner.fields:
            continue
        if part := part_of(law, at):
            yield sums(part, invoices)
