"""Reconciles the ledger with the practice system: looks up bookings whose outcome is not known.

It takes rows from dead processes. What may have been booked is looked up at once, and then less and
less often, until it is found, or until it can no longer be made.

How long a row has been seen is measured by the machine's steady clock, which all of its processes
share and nobody sets. A wall clock that jumps, or that differs from another machine's, would free a
time while its booking may still come.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from pathlib import Path

from msgspec import DecodeError, Struct, json
from sqlalchemy import select

from adapters import base
from adapters.base import Adapter, AdapterError, Draft, OutcomeUnknown, Record, Watched
from gateway.background import Periodic, ended
from gateway.booking.base import STATES, LedgerRow, LostClaim, done
from gateway.booking.rows import LedgerRows
from gateway.booking.takeover import Owners, boot
from gateway.contract.errors import Unavailable
from gateway.events import Events
from gateway.identity import replace_text
from gateway.store.base import Store, StoreError, in_time
from gateway.store.tables import bookings

# Seconds between two looks at the ledger, and at one booking: at first, and at most.
EVERY = 0.5
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 30.0
AT_ONCE = 4
# Seconds after which a practice system that cannot be asked is asked again.
AGAIN = 5.0
# Attempts whose times are remembered; for the oldest of more the counting begins anew.
MOST = 10_000
# A clock that was set by an hour hides no booking that was made in between.
SLACK = timedelta(hours=1, minutes=5)
# Seconds between two looks at what became of coming bookings, and how many of them are looked at.
WATCH_EVERY, MOST_WATCHED = 60.0, 5_000
# Seconds between two counts of the rows, and that one may take.
COUNT_EVERY, COUNT_PATIENCE = 5.0, 1.0


class _FirstSeen(Struct):
    boot: str
    since: dict[str, float]


@dataclass(eq=False)
class UnknownBookings:
    """Looks rows up in the practice system, and writes and reports what came of them.

    For how long an attempt that was left behind may still be made counts from when it was first
    seen: only another clock says when it was sent. `lands` is the seconds of the longest attempt.
    `me` is this process where it books through the same adapter, else "". `file` is where the
    process that reconciles the ledger keeps since when it has seen them.
    """

    rows: LedgerRows
    events: Events
    lands: float
    clock: Callable[[], float]
    file: Path | None = None
    me: str = ""

    def __post_init__(self) -> None:
        self._since: dict[str, float] = {}
        self._looks: dict[str, asyncio.Task[float]] = {}

    def left(self, adapter: Adapter, row: LedgerRow) -> float:
        """Returns the seconds in which a booking may still be made that a look-up does not find."""
        if adapter.excludes or row.sender == self.me:  # a look-up waits, or this process knows
            return 0.0
        now = self.clock()
        if row.sending not in self._since:
            self._since[row.sending] = self._seen_before(now).get(row.sending, now)
            if len(self._since) > MOST:
                del self._since[next(iter(self._since))]
        return max(0.0, self._since[row.sending] + self.lands + adapter.settle - now)

    async def count_only(self, sendings: AbstractSet[str]) -> None:
        """Keeps just these, and since when each is seen, and writes that. Raises StoreError."""
        if self._since.keys() == sendings:
            return
        now = self.clock()
        known = self._seen_before(now) | self._since
        self._since = {sending: known.get(sending, now) for sending in sendings}
        if self.file is not None:
            kept = json.encode(_FirstSeen(boot(), self._since)).decode()
            await in_time(asyncio.to_thread(_replace, self.file, kept))

    def _seen_before(self, now: float) -> dict[str, float]:
        """Returns since when earlier processes of this boot have seen each sending, if legible."""
        try:
            kept = json.decode(self.file.read_bytes() if self.file else b"", type=_FirstSeen)
        except (OSError, DecodeError):
            return {}
        is_of_now = kept.boot == boot()
        return {sent: since for sent, since in kept.since.items() if is_of_now and since <= now}

    async def settle(self, row: LedgerRow, adapter: Adapter) -> None:
        """Looks the row up, once for all who meet it at the same time; returns once it is settled.

        Raises Unavailable, with the seconds until it can be settled, where it cannot be yet.
        """
        looking = self._looks.get(row.sending)
        if looking is None:
            looking = self._looks[row.sending] = asyncio.create_task(self.look(row, adapter))
            looking.add_done_callback(lambda _: self._looks.pop(row.sending))
        seconds = await asyncio.shield(looking)
        if seconds > 0:
            raise Unavailable(ceil(seconds))

    async def find(
        self, row: LedgerRow, adapter: Adapter, draft: Draft, *, told: bool = True
    ) -> Record | None:
        """Returns what the attempt made, which the row then holds; None where that is nothing yet.

        Raises OutcomeUnknown where the practice system cannot be asked, StoreError and LostClaim.
        """
        try:
            records = await adapter.find_appointments(draft, row.created_at - SLACK)
        except AdapterError as error:
            raise OutcomeUnknown("the practice system can't be asked") from error
        except Exception as error:
            raise OutcomeUnknown("the adapter failed while it looked a booking up") from error
        for record in records:
            if await self.rows.write(row, done(record, told=told)):
                return record
        return None

    async def look(self, row: LedgerRow, adapter: Adapter) -> float:
        """Settles the row where possible; returns the seconds until it can be, 0 once it is."""
        left = self.left(adapter, row)  # before the look-up: its answer may be older
        draft = row.read_draft()
        if draft is None:  # only people can look it up; the reconciler tells them
            return AGAIN
        try:
            record = await self.find(row, adapter, draft, told=False)
            if record is not None:
                self.events.report("booking_made", appointment=str(record.get("id")))
                return 0.0
            if left == 0:
                await self.rows.write(row, None)
                self.events.report("booking_not_made", reference=row.reference)
        except LostClaim:
            return 0.0
        except (OutcomeUnknown, StoreError) as error:
            cause = error if isinstance(error, StoreError) else error.__cause__
            return max(left, getattr(cause, "retry_after", 0.0) or AGAIN)
        return left


def _replace(file: Path, text: str) -> None:
    """Replaces the file; where that fails it removes the old one."""
    try:
        replace_text(file, text)
    except OSError:
        with suppress(OSError):
            file.unlink(missing_ok=True)


@dataclass(eq=False)
class Reconciler(Periodic):
    """The task that reconciles the ledger, one for all processes of a node; several do no harm.

    `lands` is the seconds for which an attempt that was left may still be at work. `file` keeps
    since when each is seen, so that the next process counts on.
    """

    store: Store
    adapter: Adapter
    owners: Owners
    events: Events
    lands: float = 15.0
    file: Path | None = None
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._rows = LedgerRows(self.store)
        self._unknown = UnknownBookings(self._rows, self.events, self.lands, self.clock, self.file)
        # sending -> when it is looked up next, and the pause after that
        self._due: dict[str, tuple[float, float]] = {}
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._illegible: set[str] = set()
        self._room = asyncio.Semaphore(AT_ONCE)
        # where a round fails, the store's own probe reports it
        super().__init__(EVERY, self.round, name="reconcile the ledger")

    async def begin(self, patience: float = 5.0) -> None:
        """Looks once at each booking before anything is served, as far as it gets in that time."""
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(patience):
                if await self.round():
                    await self.round()
                if self._looks:
                    await asyncio.wait(list(self._looks.values()))

    async def aclose(self) -> None:
        """Stops the task; what is being looked up stays unknown."""
        await super().aclose()
        with suppress(Exception):  # their errors were reported
            await ended(*self._looks.values())

    async def round(self) -> bool:
        """Takes rows from the dead, and begins the look-ups that are due. Raises StoreError.

        Returns whether it took any: the next round, at once, sees these as they are now.
        """
        rows = await self._rows.between()
        has_taken = await self._bury(rows)
        unknown = {row.sending: row for row in rows if row.state == "unknown"}
        now = self.clock()
        self._due = {sending: self._due.get(sending, (now, FIRST_PAUSE)) for sending in unknown}
        await self._unknown.count_only(unknown.keys())
        for sending, row in unknown.items():
            due, pause = self._due[sending]
            if row.owner is None and due <= now and sending not in self._looks:
                self._looks[sending] = asyncio.create_task(self._look(row, pause))
        if has_taken:
            self.soon()
        return has_taken

    async def _bury(self, rows: Sequence[LedgerRow]) -> bool:
        """Abandons the rows of dead processes and forgets these; returns whether it met any."""
        others = await in_time(self.owners.others())
        owners = {row.owner for row in rows if row.owner is not None}.union(others)
        dead = {owner for owner in owners if await self.owners.is_dead(owner)}
        left = [row for row in rows if row.owner in dead]
        for row in left:
            await self._rows.abandon(row)
        for owner in dead:
            await in_time(self.owners.forget(owner))
        return bool(left)

    async def _look(self, row: LedgerRow, pause: float) -> None:
        """Settles the row or plans the next look-up; reports once that its draft is illegible."""
        sending = row.sending
        try:
            async with self._room:
                if sending not in self._illegible and not row.is_legible:
                    self._illegible.add(sending)
                    self.events.report("booking_illegible", reference=row.reference)
                await self._unknown.look(row, self.adapter)
        finally:
            # no later than the moment from which a look-up is certain
            left = self._unknown.left(self.adapter, row)
            due = self.clock() + (min(left, pause) or pause)
            self._due[sending] = due, min(LONGEST_PAUSE, pause * 1.5)
            del self._looks[sending]


@dataclass(eq=False)
class Watch(Periodic):
    """The task that asks the adapter whether the practice's desk has overwritten coming bookings.

    It reports each appointment once, when it is first seen overwritten or unreadable.
    """

    store: Store
    adapter: Adapter
    events: Events
    now: Callable[[], datetime]

    def __post_init__(self) -> None:
        self._last = Watched()
        super().__init__(
            WATCH_EVERY,
            self.look,
            self.events,
            name="watch the bookings",
            first=self.look,
            failed="bookings_unwatched",
        )

    @property
    def overwritten(self) -> int:
        """The number of coming bookings that were overwritten as of the last look."""
        return len(self._last.overwritten)

    async def look(self) -> None:
        """Asks about the bookings that are not over. Raises StoreError."""
        own = bookings.c
        query = (
            select(own.appointment_id)
            .where(own.state == "done", own.ends_at > self.now(), own.appointment_id.is_not(None))
            .order_by(own.ends_at)
            .limit(MOST_WATCHED)
        )
        coming = [row.appointment_id for row in await self.store.rows(query)]
        before, self._last = self._last, await self._watched(coming)
        for appointment in sorted(self._last.overwritten - before.overwritten):
            self.events.report("booking_overwritten", appointment=appointment)
        for appointment in sorted(self._last.unreadable - before.unreadable):
            self.events.report("booking_unreadable", appointment=appointment)

    async def _watched(self, coming: Sequence[str]) -> Watched:
        """Returns what is known of all; what cannot be read now stays as it was seen before."""
        overwritten, unreadable = set[str](), set[str]()
        for start in range(0, len(coming), base.WATCHED_AT_ONCE):
            some = coming[start : start + base.WATCHED_AT_ONCE]
            try:
                watched = await self.adapter.find_overwritten(some)
            except AdapterError as error:
                self.events.report("bookings_unwatched", error)
                unreadable |= self._last.unreadable.intersection(some)
                overwritten |= self._last.overwritten.intersection(some)
            else:
                unreadable |= watched.unreadable
                overwritten |= watched.overwritten | (self._last.overwritten & watched.unreadable)
        return Watched(overwritten=frozenset(overwritten), unreadable=frozenset(unreadable))


class LedgerStatus:
    """The numbers of bookings by state, as last counted: at most every five seconds."""

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self._rows = LedgerRows(store)
        self._now = now
        self._looked = -COUNT_EVERY
        self._counts: Mapping[str, int] = dict.fromkeys(STATES, 0)
        self._unknown_since: datetime | None = None

    async def look(self) -> None:
        """Counts the bookings where the last count is old; takes a second at most."""
        if time.monotonic() - self._looked < COUNT_EVERY:
            return
        self._looked = time.monotonic()
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(COUNT_PATIENCE):
                self._counts, self._unknown_since = await self._rows.states()

    def states(self) -> Mapping[tuple[str, ...], float]:
        return {(state,): count for state, count in self._counts.items()}

    def oldest_unknown(self) -> float:
        """Returns the seconds since the oldest unknown booking was begun; 0 where there is none."""
        now = self._now()
        return max(0.0, (now - (self._unknown_since or now)).total_seconds())
