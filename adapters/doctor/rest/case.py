"""Asks a mapped JSON backend for its examination, and keeps what it was asked and gave."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from math import inf
from typing import Any, TypeVar

from adapters.base import AdapterError, NotFound, Record
from adapters.doctor.case import DoctorCase, Look, RowTaken
from adapters.examination import Examination, counted, short
from adapters.mapping.models import BusyMap, CallMap, ListCall, ResourceMap, TimesMap
from adapters.rest.adapter import RestAdapter, RestSession
from adapters.rest.client import Client, Request
from adapters.rest.paging import NoArray, Unfollowed, may_be_empty
from adapters.rest.reader import Received
from adapters.rest.resource import ResourceCalls
from adapters.values.convert import Unreadable

T = TypeVar("T")
# The ids of one field that are asked for, each in a call.
MOST_ASKED = 20
# Records looked at where all are asked for.
ALL = 20_000
# Seconds that one call may take, so that a slow one is measured and not given up.
PATIENCE = 20.0


class WatchedClient(Client):
    """A client that keeps what was asked.

    `seen` are its calls: the seconds that each took, its label, and its status, 0 for no answer.
    `apart` is how many seconds the server's clock is ahead of ours; None where it has not said its
    time.
    """

    def __init__(self, address: str, *, timeout: float, in_flight: int) -> None:
        super().__init__(address, timeout=timeout, in_flight=in_flight)
        self.seen: list[tuple[float, str, int]] = []
        self.apart: float | None = None

    async def read(self, request: Request, headers: Mapping[str, str]) -> Received:
        begun, status = time.monotonic(), 0
        try:
            received = await super().read(request, headers)
            status = received.status
            with suppress(ValueError, TypeError):  # no date, or one without a zone
                there = parsedate_to_datetime(received.date)
                self.apart = (there - datetime.now(UTC)).total_seconds()
        finally:
            self.seen.append((time.monotonic() - begun, request.label, status))
        return received


class RestCase(DoctorCase):
    """A mapped backend, asked through connections that have more time than a call's.

    `raws` are the records that were looked at, by resource, as the backend gave them. `samples` are
    those of them that the mapping's `where` lets through, as the mapping makes them. `patience` is
    the seconds that one read may take when the gateway serves.
    """

    ahead = timedelta(days=14)
    most_vets = 10
    most_durations = MOST_ASKED
    kept = ALL
    rows_in = ("list", "items")
    doubled = ("key", "is it the record's own id? or the list gives rows again, from page to page")
    adapter: RestAdapter
    session: RestSession

    def __init__(self, adapter: RestAdapter, examination: Examination) -> None:
        super().__init__(examination)
        self.raws: dict[str, list[Any]] = {}
        self.patience = adapter.options.timeout
        longer = max(PATIENCE, self.patience)
        own = replace(adapter.options, report=self.troubles.append, timeout=longer)
        self.client = WatchedClient(own.url, timeout=longer, in_flight=own.in_flight)
        self.adapter = RestAdapter(own, self.client)

    async def run(self, flow: Callable[[RestSession], Awaitable[T]]) -> T:
        """Runs the flow with no limit on all its calls together; each has its own."""
        return await self.adapter.run(flow, inf)

    def readable(self) -> Iterator[str]:
        yield from self.raws

    def looked_at(self) -> Iterator[tuple[ResourceCalls, ListCall]]:
        """Yields the resources that have records, and the calls of their lists."""
        for name, raws in self.raws.items():
            if raws and (call := self.adapter.mapping.resources[name].list_):
                yield self.adapter.readers[name], call

    def batches(self, name: str) -> Iterator[list[RowTaken]]:
        """Yields all rows at once; a row of a list is shown by its record's public id."""
        resource, _, _ = name.partition(".")
        rows = self.adapter.readers[resource].rows
        raws = [raw for raw in self.raws[resource] if isinstance(raw, dict) and rows.exists(raw)]
        owned = [(rows.id_of(raw), self._inside(name, raw)) for raw in raws]
        yield [RowTaken(row, shown, shown or id(row)) for shown, own in owned for row in own or ()]

    async def with_lists(self, resource: str, records: list[Record]) -> list[Record]:
        """Makes the records anew of what the backend gave."""
        rows, ids = self.adapter.readers[resource].rows, {each["id"] for each in records}
        raws = [raw for raw in self.raws[resource] if isinstance(raw, dict) and rows.exists(raw)]
        return [each for each in rows.records(raws) if each and each["id"] in ids]

    def _inside(self, name: str, raw: Any) -> list[Any] | None:
        """Returns the record alone, or the members of a list in it; None for what is no list."""
        resource, _, inner = name.partition(".")
        find = self.adapter.readers[resource].rows.items.get(inner)
        with suppress(Unreadable):
            if isinstance(members := find(raw) if find else [raw], list | None):
                return members or []
        return None

    def misfits(self, look: Look, name: str) -> None:
        resource, _, inner = name.partition(".")
        raws, text, place = self.raws[resource], "are no objects", ["list", "items"]
        odd = [raw for raw in raws if not isinstance(raw, dict)]
        if inner:
            odd = [raw for raw in raws if isinstance(raw, dict) and self._inside(name, raw) is None]
            text, place = "have something else than an array there", ["items"]
        if odd:
            text = f"{counted(len(odd), 'record')} of {len(raws):,} {text}"
            look.failed(text, *place, check="rows")

    def has_rows(self, resource: str) -> bool:
        return bool(self.raws[resource])

    def has_blocks(self, source: int) -> None:
        """Returns None: calls of the diary give the rows of the days that are asked for."""

    def undecided(self, rows: ResourceMap | BusyMap) -> None:
        """Returns None: in JMESPath what is not true is false."""

    def are_appointments(self, rows: TimesMap) -> bool:
        """Returns False: calls of one path may give either."""
        return False

    async def missing(self, target: str, ids: set[str]) -> tuple[set[str], set[str], set[str]]:
        """Asks the backend for a few of the ids that are not known yet."""
        if target not in self.raws:
            return set(), set(), set()
        reader = self.adapter.readers[target]
        known = {shown for raw in self.raws[target] if (shown := reader.rows.id_of(raw))}
        hidden = known - {record["id"] for record in self.samples.get(target, ())}
        unsure = sorted(ids - known)
        if target in self.whole:
            return ids, set(unsure), hidden & ids
        sample, gone = unsure[:: max(1, len(unsure) // MOST_ASKED)][:MOST_ASKED], set()
        await self.adapter.learn(target, sample)
        for shown in sample:
            try:
                if not reader.rows.exists(await reader.row(shown, ())):
                    hidden.add(shown)
            except NotFound:
                gone.add(shown)
        return ids - set(unsure) | set(sample), gone, hidden & ids

    async def hidden_visits(self, ids: set[str]) -> set[str]:
        rows, raws = self.rows("appointments"), self.raws.get("appointments", ())
        gone = [raw for raw in raws if isinstance(raw, dict) and not rows.exists(raw)]
        made = [record for record in rows.records(gone) if record]
        return {each["id"] for each in made if each.get("patientId") or each.get("clientId")} & ids

    def refused(self, look: Look, error: AdapterError, *ids: str) -> None:
        """Names the arrays near by too; only warns where an empty list may be left out."""
        say, code = look.failed, "unanswered"
        if may_be_empty(error):
            say, code = look.warning, "doubtful-answer"
        near, at = "", "get"
        if isinstance(error, NoArray):
            near, at = ", ".join(error.near), "items"
        elif isinstance(error, Unfollowed):
            code = "page-not-followed"
        say(short(error), at, remedy=near and f"near: {near}", ids=ids, code=code)


def label_of(call: CallMap) -> str:
    """Returns the label of a call among those that the client has seen."""
    return f"{call.method.upper()} {call.path}"
