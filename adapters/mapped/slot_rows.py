"""Offers the rows that a practice system prepares as free times: one, or several in a row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter

from adapters.mapped.session import Offer
from adapters.mapped.slots import FreeDay, Interval
from adapters.mapping.checker import joins_rows, parts
from adapters.mapping.models import NAMED, BookingMap, SentValue, StepMap

_END = frozenset({"endTime", "minutes"})


@dataclass(frozen=True, slots=True)
class RowUse:
    """What a booking makes of the rows that it takes.

    Where it `shortens` them, what the appointment leaves of them stays free. Where it `tells_end`,
    the appointment ends as its type says, else with its row. Where it `joins` them, rows that stand
    back to back are one time.
    """

    shortens: bool = False
    tells_end: bool = False
    joins: bool = False

    def offers(self, rows: Sequence[Offer], day: FreeDay) -> list[Offer]:
        """Returns the free times that rows of one calendar make, those of a single row first."""
        found = [offer for row in rows for offer in self._from(row, rows, day)]
        return sorted(found, key=lambda offer: len(offer.slots))

    def _from(self, first: Offer, rows: Sequence[Offer], day: FreeDay) -> Iterator[Offer]:
        """Yields the time that begins with a row, if it is free."""
        begins = first.interval.start
        ends = begins + day.lasts
        taken = _back_to_back(first, rows, ends) if self.joins else [first]
        whole = Interval(begins, taken[-1].interval.end)
        slot = Interval(begins, ends) if self.tells_end else whole
        if ends <= whole.end and day.is_free(slot, slot if self.shortens else whole):
            yield replace(first, interval=slot, slots=tuple(row.slot for row in taken))


def _back_to_back(first: Offer, rows: Sequence[Offer], ends: datetime) -> list[Offer]:
    """Returns the row and those that follow without a gap, up to the end or as far as they go."""
    following: dict[datetime, Offer] = {}
    for row in sorted(rows, key=attrgetter("interval")):
        following.setdefault(row.interval.start, row)
    taken = [first]
    while taken[-1].interval.end < ends and (after := following.get(taken[-1].interval.end)):
        taken.append(after)
    return taken


def use_of_rows(booking: BookingMap) -> RowUse:
    """Returns what the steps of a booking make of its slot rows."""
    steps = [step for step in booking.steps if step.for_ != "time"]
    return RowUse(
        shortens=any(map(_writes_end, (s for s in steps if s.update and s.for_ == "slot"))),
        tells_end=any(map(_writes_end, steps)),
        joins=any(map(joins_rows, steps)),
    )


def _writes_end(step: StepMap) -> bool:
    values = [part for _, part in parts(step) if isinstance(part, SentValue)]
    named = {name for value in values for name in (value.draft, *NAMED(value.sql or ""))}
    return not _END.isdisjoint(named)
