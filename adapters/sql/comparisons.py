"""One condition on one column as SQL, by the converter that reads the column.

Each lets through every row whose shown value is as the condition says, and as few others as can
be: those are left out later, and may cost a page another statement.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from sqlalchemy import and_, false, func, literal_column, not_, or_

from adapters.base import Condition
from adapters.ids import Id
from adapters.mapped.slots import ONE_DAY
from adapters.mapped.spans import is_day
from adapters.mapping.narrowing import is_ordered, meets
from adapters.sql.columns import Columns, comparable
from adapters.sql.engines.base import Criterion, Expression, Speech, given, quoted
from adapters.values.convert import Boolean, Codes, Email, Text
from adapters.values.numbers import Integer, Money, Number
from adapters.values.times import Day, Epoch, LocalTime, UtcTime, ZonedTime, whole_second
from adapters.values.wall_clock import PATTERN, written

# No number that is shown is larger.
_LARGEST = Decimal(10) ** 16
# So far beside what a column shows may lie what it holds: a FLOAT has seven digits.
_NEAR = Decimal("0.000001")
# An amount is rounded to cents; a sum of fractions that ends at half a cent may go either way.
_HALF, _ROOM = Decimal("0.5"), Decimal("0.1")
ONE_SECOND = timedelta(seconds=1)
# So near a change of the clocks what a clock on the wall shows does not sort as the times do.
_CHANGE = timedelta(hours=3)
_DASHED = "%Y-%m-%d"
_NO_DAY = "0000-00-00"
# From when on, and until when: without the end itself. None where there is no bound.
_Span = tuple[Any, Any]
_Since = Callable[[Any], Criterion]


@dataclass(frozen=True, slots=True)
class ColumnComparison:
    """A condition on a column of such a database."""

    column: Columns
    condition: Condition
    speech: Speech

    def sql(self, converter: Any) -> Criterion:
        return _WAYS[type(converter)](self, converter)

    @property
    def _kept(self) -> Expression:
        return self.column.parts[0]

    @property
    def _wants(self) -> bool:
        """Whether the values are those to be, and not those to be left out."""
        return self.condition.test == "in"

    @property
    def _filled(self) -> Criterion:
        """Whether there is a value that is more than blanks."""
        return and_(self._kept.is_not(None), self.speech.trimmed(self._kept) != given(None, ""))

    def _exactly(self, texts: Sequence[str]) -> Criterion:
        """Whether it is one of these texts by every letter, whatever the column's collation.

        A blank that is none to the database, such as one that does not break, is a letter here.
        """
        if not texts:
            return false()
        spelt = self.speech.exact(self.speech.trimmed(self._kept))
        return or_(*(spelt == given(None, text) for text in texts))

    def by_id(self, ids: Id) -> Criterion:
        raws = [raw for value in self.condition.value for raw in ids.encode(value)]
        if self._wants:  # as the keys are, so that an index serves
            return self.column.among(comparable(raws, loose_types=self.speech.loose_types))
        return and_(self._filled, not_(self._exactly(list(dict.fromkeys(map(str, raws))))))

    def by_text(self, text: Text | Email) -> Criterion:
        among = self._exactly([raw for each in self.condition.value for raw in text.encode(each)])
        return among if self._wants else and_(self._filled, not_(among))

    def by_code(self, codes: Codes) -> Criterion:
        """The codes of all that it lets be: an unknown one is none of them."""
        wanted = [code for code, value in codes.table.items() if meets(value, self.condition)]
        bits: list[str] = []
        if self.speech.bits_are_letters:  # the numbers in a BIT column, as they become texts
            bits = [chr(int(each)) for each in wanted if each.isdecimal() and int(each) < ord(" ")]
        among = self._exactly([*wanted, *bits])
        return or_(among, self.column.blank) if "" in wanted else among

    def by_truth(self, boolean: Boolean) -> Criterion:
        truths = [truth for truth in (True, False) if meets(truth, self.condition)]
        wanted = [raw for truth in truths for raw in boolean.encode(truth)]
        others = [self._kept == given(None, raw) for raw in wanted if not isinstance(raw, str)]
        return or_(self._exactly([raw for raw in wanted if isinstance(raw, str)]), *others)

    def by_number(self, _: Number | Integer) -> Criterion:
        number, test, bound = self.speech.number(self._kept), self.condition.test, None
        if is_ordered(self.condition):
            bound = self.condition.value
            if test in ("min", "above"):
                found = number >= _number(bound - _near(bound))
            else:
                found = number <= _number(bound + _near(bound))
            if test in ("above", "below"):
                found = and_(found, number != _number(bound))
            return self._or_unclear(found, number)
        wanted = [Decimal(str(each)) for each in self.condition.value]
        if self._wants:
            found = _between(number, ((each - _near(each), each + _near(each)) for each in wanted))
        else:
            found = and_(number.is_not(None), *(number != _number(each) for each in wanted))
        return self._or_unclear(found, number)

    def by_amount(self, money: Money) -> Criterion:
        """By whole cents, which are shown."""
        number, condition = self.speech.number(self._kept), self.condition
        cent = Decimal(1) if money.cents else Decimal("0.01")
        if is_ordered(condition):
            bound = max(-_LARGEST, min(condition.value, _LARGEST)) * 100
            up, down = (bound.to_integral_value(each) for each in (ROUND_CEILING, ROUND_FLOOR))
            least = {"min": up, "above": down + 1}.get(condition.test)
            most = down if condition.test == "max" else up - 1
            if least is not None:
                found = number >= _number((least - _HALF - _ROOM) * cent)
            else:
                found = number <= _number((most + _HALF + _ROOM) * cent)
            return self._or_unclear(found, number)
        room = _HALF + _ROOM if self._wants else _HALF - _ROOM
        cents = [Decimal(each) * 100 for each in condition.value]
        found = _between(number, (((e - room) * cent, (e + room) * cent) for e in cents))
        if not self._wants:
            found = and_(number.is_not(None), not_(found))
        return self._or_unclear(found, number)

    def _or_unclear(self, found: Criterion, number: Expression) -> Criterion:
        """What the database cannot read as a number, perhaps the converter can."""
        return or_(found, and_(number.is_(None), self._filled))

    def by_epoch(self, epoch: Epoch) -> Criterion:
        """Times as numbers."""
        kept = self.speech.number(self._kept)

        def since(moment: datetime) -> Criterion:
            return kept >= _number(Decimal(epoch.since(moment)))

        found = self._within(kept, self._spans(_seconds), since)
        marks = [Decimal(zero) for zero in epoch.zero if zero.lstrip("-").isdecimal()]
        found = and_(found, *(kept != _number(mark) for mark in marks))
        return self._or_unclear(found, kept)

    def by_instant(self, converter: LocalTime | UtcTime | ZonedTime) -> Criterion:
        """Times as texts that sort, or of the database's own."""
        kept = self._kept
        # whether a text may end before its seconds, or have a T in it; a time without a pattern
        # may be a text too where the database has times of its own
        is_iso = getattr(converter, "pattern", "") == PATTERN
        if converter.as_text:
            kept = self.speech.trimmed(kept)
            if is_iso:
                kept = func.replace(kept, quoted("T"), quoted(" "))
            kept = self.speech.exact(kept)

        def since(moment: datetime) -> Criterion:
            bound = converter.since(moment)
            if is_iso:  # the first text that reads as that time: `2026-03-01` is its midnight
                bound = bound.removesuffix(":00").removesuffix(" 00:00")
            return kept >= given(None, bound)

        plain = roomy = self._spans(_seconds)
        if isinstance(converter, LocalTime):
            roomy = [_roomy(span, converter) for span in plain]
        # what lies near a change of the clocks is told by the times
        certain = (span for span in plain if span in roomy)
        found = self._within(kept, roomy, since, certain)
        return and_(found, *self._unmarked(kept, converter.zero, as_text=converter.as_text))

    def by_day(self, day: Day) -> Criterion:
        """Days, with a time of day behind them or without."""
        as_text = self.speech.times_as_text or day.pattern != _DASHED
        kept = self.speech.exact(self.speech.trimmed(self._kept)) if as_text else self._kept

        def since(first: date) -> Criterion:
            return kept >= given(None, written(first, day.pattern))

        spans = self._spans(_days)
        found = self._within(kept, spans, since, spans)
        return and_(found, *self._unmarked(kept, day.zero, as_text=as_text))

    def _spans(self, ends: Callable[[Any], _Span]) -> list[_Span]:
        """What is let be: from the first step of the calendar not before a value, to the next.

        A step that the calendar has not is no bound.
        """
        test, value = self.condition.test, self.condition.value
        if not is_ordered(self.condition):
            return [ends(each) for each in value]
        at, behind = ends(value)
        if test in ("min", "above"):
            return [(at if test == "min" else behind, None)]
        return [(None, behind if test == "max" else at)]

    def _within(
        self, kept: Expression, spans: list[_Span], since: _Since, certain: Iterable[_Span] = ()
    ) -> Criterion:
        """Whether it lies in one of the spans; where these are not to be, in no `certain` one."""
        if self.condition.test == "not in":
            return and_(kept.is_not(None), *(not_(_in_span(kept, each, since)) for each in certain))
        return or_(false(), *(_in_span(kept, span, since) for span in spans))

    def _unmarked(
        self, kept: Expression, zeros: Iterable[str], *, as_text: bool
    ) -> Iterator[Criterion]:
        """That it is none of what means no time at all."""
        for zero in zeros:
            day = is_day(zero)
            if as_text:
                like = kept.like(given(None, f"{zero}%"))
                yield kept != given(None, zero) if day is None else not_(like)
            elif zero == _NO_DAY:
                yield kept >= given(None, self.speech.first_day)
            elif day is not None:
                first, end = _days(zero)
                on_day = kept >= given(None, first.isoformat())
                if end is not None:
                    on_day = and_(on_day, kept < given(None, end.isoformat()))
                yield not_(on_day)


_WAYS: Mapping[type[Any], Callable[[ColumnComparison, Any], Criterion]] = {
    Id: ColumnComparison.by_id,
    Text: ColumnComparison.by_text,
    Email: ColumnComparison.by_text,
    Codes: ColumnComparison.by_code,
    Boolean: ColumnComparison.by_truth,
    Number: ColumnComparison.by_number,
    Integer: ColumnComparison.by_number,
    Money: ColumnComparison.by_amount,
    Epoch: ColumnComparison.by_epoch,
    LocalTime: ColumnComparison.by_instant,
    UtcTime: ColumnComparison.by_instant,
    ZonedTime: ColumnComparison.by_instant,
    Day: ColumnComparison.by_day,
}
COMPARED = frozenset(_WAYS)
"""The converters whose columns a condition can be about."""


def _number(value: Decimal) -> Expression:
    """A number within the statement: of a parameter the driver would have to guess the type."""
    return literal_column(f"{max(-_LARGEST, min(value, _LARGEST)):f}")


def _between(number: Expression, spans: Iterable[tuple[Decimal, Decimal]]) -> Criterion:
    return or_(false(), *(number.between(_number(a), _number(b)) for a, b in spans))


def _near(value: Decimal) -> Decimal:
    return _NEAR * (1 + min(abs(value), _LARGEST))


def _in_span(kept: Expression, span: _Span, since: _Since) -> Criterion:
    first, end = span
    found: list[Criterion] = [kept.is_not(None)]
    found += [since(first)] if first is not None else []
    found += [not_(since(end))] if end is not None else []
    return and_(*found)


def _seconds(value: Any) -> _Span:
    """The first whole second that is not before it, and the first one behind it."""
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    moment = moment.astimezone(UTC)
    try:
        return whole_second(moment), moment.replace(microsecond=0) + ONE_SECOND
    except OverflowError:
        return moment, None


def _days(value: Any) -> _Span:
    day = value if isinstance(value, date) else date.fromisoformat(value)
    try:
        return day, day + ONE_DAY
    except OverflowError:
        return day, None


def _roomy(span: _Span, converter: LocalTime) -> _Span:
    """The span, wider where the clocks change: what really lies within is told by the times."""
    first, end = span
    return (
        None if first is None else _moved(first, -_CHANGE, converter),
        None if end is None else _moved(end, _CHANGE, converter),
    )


def _moved(moment: datetime, by: timedelta, converter: LocalTime) -> datetime:
    """The moment, moved where the clocks change round it."""
    try:
        around = (moment - _CHANGE, moment + _CHANGE)
        offsets = {each.astimezone(converter.zone).utcoffset() for each in around}
        return moment + by if len(offsets) > 1 else moment
    except OverflowError:
        return moment
