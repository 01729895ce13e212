"""Bookings of unknown outcome: looked up in the practice system, settled, and shown to people.

Since when one is seen that nobody works on is counted by the machine's steady clock, which is the
same in all of its processes and which nobody sets: a wall clock that jumps would free a time while
its booking may still come, and so would two machines whose clocks differ.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from pathlib import Path

from msgspec import DecodeError, Struct, json
from sqlalchemy import select

from adapters.base import Adapter, AdapterError, BackendUnavailable, Draft, OutcomeUnknown, Record
from gateway.booking.base import LedgerRow, LostClaim, done
from gateway.booking.rows import LedgerRows
from gateway.booking.takeover import boot
from gateway.contract.errors import Unavailable
from gateway.events import Events
from gateway.identity import replace_text
from gateway.store.base import Store, StoreError, in_time
from gateway.store.tables import bookings, resolved_bookings

# Seconds after which it is worth asking again where the practice system cannot be asked now.
AGAIN = 5.0
# So many attempts are remembered; of those seen longest ago the counting begins anew.
MOST = 10_000
# A clock that was set back or forth by an hour hides no booking that was made in between.
SLACK = timedelta(hours=1, minutes=5)


async def look(
    rows: LedgerRows, adapter: Adapter, draft: Draft, row: LedgerRow, *, told: bool
) -> Record | None:
    """What the attempt left behind, and the row now holds; None where it left nothing so far.

    An appointment that another row holds is somebody else's. OutcomeUnknown where the practice
    system can't be asked; StoreError; LostClaim.
    """
    try:
        found = await adapter.find_appointments(draft, row.created_at - SLACK)
    except AdapterError as error:
        raise OutcomeUnknown("the practice system can't be asked") from error
    except Exception as error:
        raise OutcomeUnknown("the adapter failed while it looked a booking up") from error
    for record in found:
        if await rows.write(row, done(record, told=told)):
            return record
    return None


class Deadlines:
    """Until when an attempt that nobody works on any more may still be made.

    It counts from when the attempt was first seen left behind: when it was sent only another clock
    says. `lands` is the seconds of the longest attempt. `me` is this process where it asks the
    adapter through which it books, else "". `file` is where the process that reconciles the ledger
    keeps since when it has seen them.
    """

    def __init__(
        self, me: str, lands: float, clock: Callable[[], float], file: Path | None = None
    ) -> None:
        self._me = me
        self._lands = lands
        self._clock = clock
        self._file = file
        self._since: dict[str, float] = {}

    def left(self, adapter: Adapter, row: LedgerRow) -> float:
        """Seconds in which it may still be made, where a look-up finds nothing; 0 for none.

        An adapter knows this of its own calls, and of another process's where it locks.
        """
        if adapter.excludes or row.sender == self._me:
            return 0.0
        now = self._clock()
        if row.sending not in self._since:
            self._since[row.sending] = read_first_seen(self._file, now).get(row.sending, now)
            if len(self._since) > MOST:
                del self._since[next(iter(self._since))]
        return max(0.0, self._since[row.sending] + self._lands + adapter.settle - now)

    async def count_only(self, sendings: AbstractSet[str]) -> None:
        """Count for just these, from now or from earlier, and write that for other processes.

        Who only looks for one, and finds nothing, does not make it younger. StoreError.
        """
        if self._since.keys() == sendings:
            return
        now = self._clock()
        known = read_first_seen(self._file, now) | self._since
        self._since = {sending: known.get(sending, now) for sending in sendings}
        if self._file is not None:
            await in_time(asyncio.to_thread(write_first_seen, self._file, dict(self._since)))


class _FirstSeen(Struct):
    boot: str
    since: dict[str, float]


def read_first_seen(file: Path | None, now: float) -> dict[str, float]:
    """What was sent -> the second at which an earlier process saw first that it is not known.

    What is of another boot, cannot be read or was not written counts for nothing.
    """
    try:
        kept = json.decode(file.read_bytes() if file else b"", type=_FirstSeen)
    except (OSError, DecodeError):
        return {}
    if kept.boot != boot():
        return {}
    return {sending: since for sending, since in kept.since.items() if since <= now}


def write_first_seen(file: Path, since: Mapping[str, float]) -> None:
    """The same for whoever comes next; where it cannot be written nothing is left that is old."""
    try:
        replace_text(file, json.encode(_FirstSeen(boot(), dict(since))).decode())
    except OSError:
        with suppress(OSError):
            file.unlink(missing_ok=True)


class UnknownBookings:
    """Looks rows up in the practice system, and writes and tells what came of them."""

    def __init__(self, rows: LedgerRows, deadlines: Deadlines, events: Events) -> None:
        self._rows = rows
        self.deadlines = deadlines
        self._events = events
        self._looks: dict[str, asyncio.Task[float]] = {}

    async def settle(self, row: LedgerRow, adapter: Adapter) -> None:
        """As `look`, once for all who meet the row at the same time; return once it is settled.

        Unavailable, with the seconds until it can be settled, where that is not yet possible.
        """
        looking = self._looks.get(row.sending)
        if looking is None:
            looking = self._looks[row.sending] = asyncio.create_task(self.look(row, adapter))
            looking.add_done_callback(lambda _: self._looks.pop(row.sending))
        seconds = await asyncio.shield(looking)
        if seconds > 0:
            raise Unavailable(ceil(seconds))

    async def look(self, row: LedgerRow, adapter: Adapter) -> float:
        """Settle the row where that is possible now; the seconds until it can be settled.

        They are 0 once it is settled, or another process has taken it.
        """
        left = self.deadlines.left(adapter, row)  # before it is asked: the answer may be older
        draft = row.read_draft()
        if draft is None:  # only people can look it up; the reconciler tells them
            return AGAIN
        try:
            found = await look(self._rows, adapter, draft, row, told=False)
            if found is not None:
                self._events.report("booking_made", appointment=str(found.get("id")))
                return 0.0
            if left == 0:
                await self._rows.write(row, None)
                self._events.report("booking_not_made", reference=row.reference)
        except LostClaim:
            return 0.0
        except OutcomeUnknown as error:
            cause = error.__cause__
            pause = cause.retry_after if isinstance(cause, BackendUnavailable) else 0.0
            return max(left, pause or AGAIN)
        except StoreError as error:
            return max(left, error.retry_after or AGAIN)
        return left


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownBooking:
    """A booking that was sent and may or may not have been made; its time is blocked.

    `since` is when it was asked for. It `is_asked_again` while a call of its partner looks it up;
    one that is not `is_legible` can only be looked up by people.
    """

    key_id: str
    vet_id: str | None
    starts_at: datetime | None
    ends_at: datetime | None
    since: datetime
    is_asked_again: bool
    is_legible: bool


@dataclass(frozen=True, slots=True)
class ResolvedBooking:
    """How one ended: an appointment, or none and its time is free again.

    `is_told` where its partner asked again and was told; else the gateway found it out by itself.
    """

    key_id: str
    vet_id: str | None
    starts_at: datetime | None
    since: datetime
    at: datetime
    appointment_id: str | None
    is_told: bool


async def unknown(store: Store, most: int) -> Sequence[UnknownBooking]:
    """Those of which nobody knows, the oldest first. StoreError."""
    wanted = select(bookings).where(bookings.c.state == "unknown").order_by(bookings.c.id)
    async with store.begin() as connection:
        found = (await connection.execute(wanted.limit(most))).mappings().all()
    return [
        UnknownBooking(
            key_id=row.key_id,
            vet_id=row.vet_id,
            starts_at=row.starts_at,
            ends_at=row.ends_at,
            since=row.created_at,
            is_asked_again=row.owner is not None,
            is_legible=row.read_draft() is not None,
        )
        for row in (LedgerRow(**columns) for columns in found)
    ]


async def resolved(store: Store, since: datetime, most: int) -> Sequence[ResolvedBooking]:
    """How those ended that did since then, the latest first. StoreError."""
    table = resolved_bookings.c
    columns = (table.key_id, table.vet_id, table.starts_at, table.created_at, table.resolved_at)
    wanted = select(*columns, table.appointment_id, table.told).where(table.resolved_at >= since)
    async with store.begin() as connection:
        rows = await connection.execute(wanted.order_by(table.resolved_at.desc()).limit(most))
        return [ResolvedBooking(*row[:-1], is_told=bool(row.told)) for row in rows]
