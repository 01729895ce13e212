"""What became of booked appointments: whether the desk has written something over one."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from adapters.base import BackendNonsense, NotFound, Record, Watched
from adapters.mapped.slots import Interval
from adapters.rest.availability import Asked, Span, Spans
from adapters.rest.reading import ResourceReader
from adapters.rest.together import for_each, together

UNREADABLE = "unreadable"
Standing = Record | str | None


class Look:
    """Looks at appointments; `busy` is what blocks, `minutes` how long one is by default."""

    def __init__(
        self, reader: ResourceReader, busy: Sequence[Spans], zone: ZoneInfo, minutes: int
    ) -> None:
        self._reader, self._busy, self._zone, self._minutes = reader, busy, zone, minutes

    async def watched(self, appointments: Sequence[str]) -> Watched:
        """What became of them: what blocks is asked for once for each vet and day.

        Where no source of `busy` has the appointments' ids, nobody can tell.
        """
        if not any(source.knows_appointments for source in self._busy):
            return Watched()
        found = await self._standing(appointments)
        days: dict[Any, list[Record]] = {}
        for record in found.values():
            if isinstance(record, dict) and record["scheduledAt"] and record["vetId"]:
                day = datetime.fromisoformat(record["scheduledAt"]).astimezone(self._zone).date()
                which = (record["vetId"], record["appointmentTypeId"], day)
                days.setdefault(which, []).append(record)
        spans = await for_each(self._spans, days.values())
        over = {
            record["id"]
            for records, busy in zip(days.values(), spans, strict=True)
            for record in records
            if _is_over(record["id"], busy)
        }
        unreadable = (each for each, record in found.items() if record == UNREADABLE)
        return Watched(overwritten=frozenset(over), unreadable=frozenset(unreadable))

    async def _standing(self, appointments: Sequence[str]) -> dict[str, Standing]:
        """Each as it is now; None where the desk has removed it; or UNREADABLE."""
        if self._reader.has_one:
            found = await for_each(self._one, appointments)
            return dict(zip(appointments, found, strict=True))
        try:
            listed = await self._reader.listed(appointments)
        except BackendNonsense:
            return dict.fromkeys(appointments, UNREADABLE)
        return {each: listed.get(each) for each in appointments}

    async def _one(self, appointment: str) -> Standing:
        try:
            return await self._reader.one(appointment)
        except NotFound:
            return None
        except BackendNonsense:
            return UNREADABLE

    async def _spans(self, records: Sequence[Record]) -> list[Span]:
        """What blocks the vet of a day's appointments round them."""
        begin = [datetime.fromisoformat(each["scheduledAt"]) for each in records]
        window = Interval(min(begin), max(begin) + timedelta(minutes=1))
        first = records[0]
        asked = Asked(first["vetId"], window, self._minutes, first["appointmentTypeId"])
        lists = await together(*(each.read(asked) for each in self._busy))
        return [span for each in lists for span in each]


def _is_over(appointment: str, spans: Sequence[Span]) -> bool:
    """Whether one of the spans is the appointment's, and overlaps with another's."""
    likely = [each for each in spans if each.is_likely]
    own = [each.time for each in likely if each.key == appointment]
    others = [each.time for each in likely if each.key != appointment]
    return any(each.overlaps(time) for time in own for each in others)
