"""Conditions on times and days as SQL: what is kept is compared as it sorts."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import ColumnElement, and_, false, func, literal_column, not_, or_

from adapters.base import Condition
from adapters.mapped.slots import ONE_DAY
from adapters.mapped.spans import is_day
from adapters.sql.amounts import or_unclear
from adapters.sql.amounts import written as written_number
from adapters.sql.columns import Columns
from adapters.sql.engines.base import Speech, given
from adapters.values.times import Day, Epoch, LocalTime, TimeConverter, whole_second
from adapters.values.wall_clock import PATTERN, written

# From when on, and until when: without the end itself. None where there is no bound.
DiarySpan = tuple[Any, Any]
Since = Callable[[Any], ColumnElement[bool]]
ONE_SECOND = timedelta(seconds=1)
# So near a change of the clocks what a clock on the wall shows does not sort as the times do.
_CHANGE = timedelta(hours=3)
_DASHED = "%Y-%m-%d"
_NO_DAY = "0000-00-00"


def by_instant(
    column: Columns, converter: Any, condition: Condition, speech: Speech
) -> ColumnElement[bool]:
    """Times as texts that sort, or of the database's own."""
    kept = column.parts[0]
    if converter.as_text:
        kept = speech.trimmed(kept)
        if _is_iso(converter):
            kept = func.replace(kept, literal_column("'T'"), literal_column("' '"))
        kept = speech.exact(kept)

    def since(moment: datetime) -> ColumnElement[bool]:
        bound = converter.since(moment)
        return kept >= given(None, _shortest(bound) if _is_iso(converter) else bound)

    plain = list(_spans(condition, _seconds))
    roomy = [_roomy(each, converter) for each in plain]
    found = _within(kept, roomy, since, condition)
    if condition.test == "not in":  # what lies near a change of the clocks is told by the times
        certain = [each for each in plain if each in roomy]
        found = and_(found, *(not_(_in_span(kept, each, since)) for each in certain))
    unmarked = _unmarked(kept, converter.zero, speech, as_text=converter.as_text)
    return and_(found, *unmarked)


def by_epoch(
    column: Columns, epoch: Epoch, condition: Condition, speech: Speech
) -> ColumnElement[bool]:
    """Times as numbers."""
    kept = speech.number(column.parts[0])
    spans = list(_spans(condition, _seconds))
    found = _within(
        kept, spans, lambda each: kept >= written_number(Decimal(epoch.since(each))), condition
    )
    marks = [Decimal(each) for each in epoch.zero if each.lstrip("-").isdecimal()]
    found = and_(found, *(kept != written_number(each) for each in marks))
    return or_unclear(found, kept, column, speech)


def by_day(column: Columns, day: Day, condition: Condition, speech: Speech) -> ColumnElement[bool]:
    """Days, with a time of day behind them or without."""
    as_text = speech.times_as_text or day.pattern != _DASHED
    kept = column.parts[0]
    if as_text:
        kept = speech.exact(speech.trimmed(kept))

    def since(first: date) -> ColumnElement[bool]:
        return kept >= given(None, written(first, day.pattern))

    spans = list(_spans(condition, _days))
    found = _within(kept, spans, since, condition)
    if condition.test == "not in":
        found = and_(found, *(not_(_in_span(kept, each, since)) for each in spans))
    return and_(found, *_unmarked(kept, day.zero, speech, as_text=as_text))


def _within(
    kept: ColumnElement[Any], spans: list[DiarySpan], since: Since, condition: Condition
) -> ColumnElement[bool]:
    """Whether it lies in one of the spans, or where these are not to be, whether it is at all."""
    if condition.test == "not in":
        return kept.is_not(None)
    return or_(false(), *(_in_span(kept, each, since) for each in spans))


def _in_span(kept: ColumnElement[Any], span: DiarySpan, since: Since) -> ColumnElement[bool]:
    first, end = span
    found: list[ColumnElement[bool]] = [kept.is_not(None)]
    found += [since(first)] if first is not None else []
    found += [not_(since(end))] if end is not None else []
    return and_(*found)


def _spans(condition: Condition, ends: Callable[[Any], tuple[Any, Any]]) -> Iterator[DiarySpan]:
    """What is let be, by the first step of the calendar that is not before a value, and the next.

    A step that the calendar has not is no bound.
    """
    if condition.test in ("in", "not in"):
        for each in condition.value:
            yield ends(each)
        return
    bound = condition.value
    at, behind = ends(bound)
    if condition.test in ("min", "above"):
        yield (at if condition.test == "min" else behind), None
    else:
        yield None, (behind if condition.test == "max" else at)


def _seconds(value: Any) -> tuple[datetime, datetime | None]:
    """The first whole second that is not before it, and the first one behind it."""
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    moment = moment.astimezone(UTC)
    try:
        return whole_second(moment), moment.replace(microsecond=0) + ONE_SECOND
    except OverflowError:
        return moment, None


def _days(value: Any) -> tuple[date, date | None]:
    day = value if isinstance(value, date) else date.fromisoformat(value)
    try:
        return day, day + ONE_DAY
    except OverflowError:
        return day, None


def _roomy(span: DiarySpan, converter: TimeConverter) -> DiarySpan:
    """The span, wider where the clocks change: what really lies within is told by the times."""
    if not isinstance(converter, LocalTime):
        return span
    first, end = (each if each is None else _around(each, converter) for each in span)
    return (None if first is None else first[0]), (None if end is None else end[1])


def _around(moment: datetime, converter: LocalTime) -> tuple[datetime, datetime]:
    try:
        early, late = moment - _CHANGE, moment + _CHANGE
        shown = [each.astimezone(converter.zone).utcoffset() for each in (early, late)]
    except OverflowError:
        return moment, moment
    return (moment, moment) if shown[0] == shown[1] else (early, late)


def _is_iso(converter: Any) -> bool:
    """Whether a text may end before its seconds, or have a T in it.

    A time without a pattern may be a text too where the database has times of its own.
    """
    return getattr(converter, "pattern", "") == PATTERN


def _shortest(bound: str) -> str:
    """The first text that reads as that time: `2026-03-01` is its midnight."""
    return bound.removesuffix(":00").removesuffix(" 00:00")


def _unmarked(
    kept: ColumnElement[Any], zero: tuple[str, ...], speech: Speech, *, as_text: bool
) -> Iterator[ColumnElement[bool]]:
    """That it is none of what means no time at all."""
    for each in zero:
        if as_text:
            day = is_day(each) is not None
            yield not_(kept.like(given(None, f"{each}%"))) if day else kept != given(None, each)
        elif each == _NO_DAY:
            yield kept >= given(None, speech.first_day)
        elif is_day(each):
            yield not_(_on_day(kept, date.fromisoformat(each)))


def _on_day(kept: ColumnElement[Any], day: date) -> ColumnElement[bool]:
    first, end = _days(day)
    begins = kept >= given(None, first.isoformat())
    return begins if end is None else and_(begins, kept < given(None, end.isoformat()))
