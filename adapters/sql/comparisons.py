"""Makes SQL of a condition on one column, by the converter that reads the column.

The SQL lets through every row whose shown value meets the condition, and as few others as can be.
Those are left out later, and may cost a page another statement.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import and_, false, func, literal_column, not_, or_

from adapters.base import Condition
from adapters.ids.seal import Id
from adapters.mapped.slots import ONE_DAY
from adapters.mapped.spans import looks_like_day
from adapters.mapping.row_conditions import is_ordered, meets
from adapters.sql.columns import Columns, among, as_parameter, comparable
from adapters.sql.engines.base import Criterion, Expression, Speech, given, quoted
from adapters.sql.engines.statements import Part
from adapters.values import times
from adapters.values.convert import Boolean, Codes, Email, Integer, Money, Number, Text
from adapters.values.times import Day, Epoch, LocalTime, UtcTime, ZonedTime, whole_second, written

# No shown number is larger.
_LARGEST = Decimal(10) ** 16
# How far what a column holds may lie from what it shows: a FLOAT has seven digits.
_NEAR = Decimal("0.000001")
# An amount is rounded to cents; one that ends at half a cent may be rounded either way.
_WIDE, _NARROW = Decimal("0.6"), Decimal("0.4")
ONE_SECOND = timedelta(seconds=1)
# This near a change of the clocks, wall clock times do not sort as the moments do.
_CHANGE = timedelta(hours=3)
_DASHED = "%Y-%m-%d"
_NO_DAY = "0000-00-00"
# The start, and the end, which lies outside. None where there is no bound.
_Span = tuple[Any, Any]
# Makes a moment or a day into what the database compares with.
_Bound = Callable[[Any], Expression]


class ColumnComparison:
    """A condition on one column, for one kind of database."""

    def __init__(self, column: Columns, condition: Condition, speech: Speech) -> None:
        self.column, self.condition, self.speech = column, condition, speech
        self._kept = column.parts[0]
        # whether the values are those to let through, and not those to leave out
        self._wants = condition.test == "in"

    def part(self) -> Part:
        """Returns the condition as a part of statements; its values belong to the shape.

        The spellings of ids are values, as they may be met only later.
        """
        converter = self.column.converter
        if isinstance(converter, Id):
            return self._by_id(converter)
        way = partial(_WAYS[type(converter)], self, converter)
        return Part(self.condition, (), lambda _: way())

    @property
    def _filled(self) -> Criterion:
        """Whether there is a value that is more than blanks."""
        return and_(self._kept.is_not(None), self.speech.trimmed(self._kept) != given(None, ""))

    def _exactly(self, texts: Sequence[Any]) -> Criterion:
        """Compares letter by letter, untrimmed blanks too, whatever the column's collation."""
        spelt = self.speech.exact(self.speech.trimmed(self._kept))
        return or_(false(), *(spelt == as_parameter(text) for text in texts))

    def _by_id(self, ids: Id) -> Part:
        name = self.condition.field
        raws = [raw for value in self.condition.value for raw in ids.encode(value)]
        if self._wants:  # compared as keys are, so that an index can be used
            return among(name, self.column, comparable(raws, loose_types=self.speech.loose_types))
        texts = tuple(dict.fromkeys(map(str, raws)))
        count = len(texts)
        return Part(
            ("not among", name, count),
            texts,
            lambda taken: and_(self._filled, not_(self._exactly(taken.take(count)))),
        )

    def by_text(self, text: Text | Email) -> Criterion:
        among = self._exactly([raw for value in self.condition.value for raw in text.encode(value)])
        return among if self._wants else and_(self._filled, not_(among))

    def by_code(self, codes: Codes) -> Criterion:
        """Compares with the codes of all allowed values; an unknown code meets no condition."""
        raws = [code for code, value in codes.codes.items() if meets(value, self.condition)]
        bits: list[str] = []
        if self.speech.bits_are_letters:  # the numbers in a BIT column, as they become texts
            bits = [chr(int(raw)) for raw in raws if raw.isdecimal() and int(raw) < ord(" ")]
        among = self._exactly([*raws, *bits])
        return or_(among, self._kept.is_(None)) if "" in raws else among

    def by_truth(self, boolean: Boolean) -> Criterion:
        truths = [truth for truth in (True, False) if meets(truth, self.condition)]
        raws = [raw for truth in truths for raw in boolean.encode(truth)]
        others = [self._kept == given(None, raw) for raw in raws if not isinstance(raw, str)]
        return or_(self._exactly([raw for raw in raws if isinstance(raw, str)]), *others)

    def by_number(self, converter: Number | Integer | Money) -> Criterion:
        """Compares amounts by whole cents, as shown, and other numbers as a FLOAT keeps them."""
        number, test = self.speech.number(self._kept), self.condition.test
        values = [self.condition.value] if is_ordered(self.condition) else self.condition.value
        numbers = [max(-_LARGEST, min(Decimal(str(value)), _LARGEST)) for value in values]
        spans = [_around(value, converter) for value in numbers]
        if test in ("min", "above"):
            rows = number >= self._number(spans[0].wide[0])
        elif test in ("max", "below"):
            rows = number <= self._number(spans[0].wide[1])
        elif self._wants:
            rows = or_(false(), *(self._between(number, span.wide) for span in spans))
        else:
            rows = number.is_not(None)
        if test in ("above", "below", "not in"):
            narrow = (inner for span in spans for inner in span.narrow)
            rows = and_(rows, *(not_(self._between(number, inner)) for inner in narrow))
        return self._or_unclear(rows, number)

    def _number(self, value: Decimal) -> Expression:
        return literal_column(self.speech.constant(max(-_LARGEST, min(value, _LARGEST))))

    def _between(self, number: Expression, span: tuple[Decimal, Decimal]) -> Criterion:
        return number.between(self._number(span[0]), self._number(span[1]))

    def _or_unclear(self, condition: Criterion, number: Expression) -> Criterion:
        """Adds what the database cannot read as a number, as the converter perhaps can."""
        return or_(condition, and_(number.is_(None), self._filled))

    def by_epoch(self, epoch: Epoch) -> Criterion:
        """Compares times that are kept as numbers."""
        kept = self.speech.number(self._kept)
        spans = self._spans(_seconds)

        def bound(moment: datetime) -> Expression:
            return self._number(Decimal(epoch.since(moment)))

        condition = self._within(kept, spans, bound)
        condition = and_(condition, *(kept != self._number(mark) for mark in epoch.none))
        return self._or_unclear(condition, kept)

    def by_instant(self, converter: LocalTime | ZonedTime) -> Criterion:
        """Compares times that are kept as sortable texts or in the database's own type."""
        kept = self._kept
        # whether a text may lack its seconds or have a T in it; a time without a pattern may be
        # a text even where the database has its own type for times
        is_iso = getattr(converter, "pattern", "") == times.PATTERN
        if converter.as_text:
            kept = self.speech.trimmed(kept)
            if is_iso:
                kept = func.replace(kept, quoted("T"), quoted(" "))
            kept = self.speech.exact(kept)

        def bound(moment: datetime) -> Expression:
            first = converter.since(moment)
            if is_iso:  # the smallest text that reads as it: `2026-03-01` is its midnight
                first = first.removesuffix(":00").removesuffix(" 00:00")
            return given(None, first)

        plain = roomy = self._spans(_seconds)
        if isinstance(converter, LocalTime):
            roomy = [_roomy(span, converter.zone) for span in plain]
        # near a change of the clocks, the times that are read decide
        certain = (span for span in plain if span in roomy)
        # where the column has days alone, a bound counts as its day, and those of that day decide
        condition = self._within(kept, roomy, bound, certain, closed=not converter.as_text)
        return and_(condition, *self._unmarked(kept, converter.zero, as_text=converter.as_text))

    def by_day(self, day: Day) -> Criterion:
        """Compares days, with or without a time of day behind them."""
        as_text = self.speech.times_as_text or day.pattern != _DASHED
        kept = self.speech.exact(self.speech.trimmed(self._kept)) if as_text else self._kept

        def bound(first: date) -> Expression:
            return given(None, written(first, day.pattern))

        spans = self._spans(_days)
        condition = self._within(kept, spans, bound, spans)
        return and_(condition, *self._unmarked(kept, day.zero, as_text=as_text))

    def _spans(self, ends: Callable[[Any], _Span]) -> list[_Span]:
        """Returns the spans that the condition allows, or that `not in` excludes."""
        test, value = self.condition.test, self.condition.value
        if not is_ordered(self.condition):
            return [ends(one) for one in value]
        at, end = ends(value)
        return [{"min": (at, None), "above": (end, None), "max": (None, end)}.get(test, (None, at))]

    def _within(
        self,
        kept: Expression,
        spans: list[_Span],
        bound: _Bound,
        certain: Iterable[_Span] = (),
        *,
        closed: bool = False,
    ) -> Criterion:
        """Compares with the spans; `not in` excludes only the `certain` ones.

        Where they are `closed`, their ends are let through too.
        """
        if self.condition.test == "not in":
            return and_(kept.is_not(None), *(not_(_in_span(kept, span, bound)) for span in certain))
        return or_(false(), *(_in_span(kept, span, bound, closed=closed) for span in spans))

    def _unmarked(
        self, kept: Expression, zeros: Iterable[str], *, as_text: bool
    ) -> Iterator[Criterion]:
        """Yields conditions that exclude the values that mean no time."""
        for zero in zeros:
            if as_text and looks_like_day(zero) is None:
                yield kept != given(None, zero)
            elif zero == _NO_DAY and not as_text:
                yield kept >= given(None, self.speech.first_day)
            elif as_text or looks_like_day(zero):
                yield not_(on_day(kept, zero, as_text=as_text))


_WAYS: Mapping[type[Any], Callable[[ColumnComparison, Any], Criterion]] = {
    Text: ColumnComparison.by_text,
    Email: ColumnComparison.by_text,
    Codes: ColumnComparison.by_code,
    Boolean: ColumnComparison.by_truth,
    Number: ColumnComparison.by_number,
    Integer: ColumnComparison.by_number,
    Money: ColumnComparison.by_number,
    Epoch: ColumnComparison.by_epoch,
    LocalTime: ColumnComparison.by_instant,
    UtcTime: ColumnComparison.by_instant,
    ZonedTime: ColumnComparison.by_instant,
    Day: ColumnComparison.by_day,
}
COMPARED = frozenset(_WAYS) | {Id}
"""The converters whose columns a condition can be about."""


def on_day(kept: Expression, day: str, *, as_text: bool) -> Criterion:
    """Returns the condition that a time lies on a day YYYY-MM-DD."""
    if as_text:
        return kept.like(given(None, f"{day}%"))
    first, end = _days(day)
    has_begun = kept >= given(None, first.isoformat())
    return has_begun if end is None else and_(has_begun, kept < given(None, end.isoformat()))


class _Around(NamedTuple):
    """The range of raw values that may be shown as a number, and those that certainly are."""

    wide: tuple[Decimal, Decimal]
    narrow: list[tuple[Decimal, Decimal]]


def _around(value: Decimal, converter: Number | Integer | Money) -> _Around:
    if not isinstance(converter, Money):
        near = _NEAR * (1 + abs(value))
        return _Around((value - near, value + near), [(value, value)])
    cents, cent = value * 100, Decimal(1) if converter.cents else Decimal("0.01")
    wide, narrow = (((cents - room) * cent, (cents + room) * cent) for room in (_WIDE, _NARROW))
    # parts of a cent are never shown
    return _Around(wide, [narrow] if cents == cents.to_integral_value() else [])


def _in_span(kept: Expression, span: _Span, bound: _Bound, *, closed: bool = False) -> Criterion:
    first, end = span
    conditions: list[Criterion] = [kept.is_not(None)]
    conditions += [kept >= bound(first)] if first is not None else []
    if end is not None:
        conditions.append(kept <= bound(end) if closed else kept < bound(end))
    return and_(*conditions)


def _seconds(value: Any) -> _Span:
    """Returns the first whole second not before the value, and the first one after it."""
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


def _roomy(span: _Span, zone: tzinfo) -> _Span:
    """Returns the span, wider where the clocks change; the times that are read decide."""

    def moved(moment: datetime | None, by: timedelta) -> datetime | None:
        if moment is None:
            return None
        try:
            around = (moment - _CHANGE, moment + _CHANGE)
            offsets = {near.astimezone(zone).utcoffset() for near in around}
            return moment + by if len(offsets) > 1 else moment
        except OverflowError:
            return moment

    return moved(span[0], -_CHANGE), moved(span[1], _CHANGE)
