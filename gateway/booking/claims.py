"""A process's work on rows that it has claimed: looks them up, sends them, writes their outcomes.

What could not be written is kept until it can be. A row that its claim has lost, as that of a
process that was stopped for long and taken for dead, is read again.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import chain, repeat
from typing import Any

import orjson

from adapters.base import (
    AdapterError,
    BackendTimeout,
    NotFound,
    OutcomeUnknown,
    Record,
    SlotTaken,
)
from gateway.booking.base import (
    ANOTHERS,
    LEFT,
    Booked,
    BookingRefused,
    BookingRequest,
    LedgerRow,
    LostClaim,
    Outcome,
    done,
    refused,
)
from gateway.booking.lookup import UnknownBookings, look
from gateway.booking.rows import LedgerRows
from gateway.contract.errors import GatewayError, Unavailable
from gateway.events import Events
from gateway.store.base import StoreError

# Rows that may or may not have been written, of which the last are undone later.
MOST_DOUBTFUL = 1_000
# Seconds between looks for a booking whose answer was lost, while its caller waits.
_PAUSES = (0.05, 0.2, 0.4, 0.7, 1.0)
# Seconds that the new claim of a lost row has to come to an end, and between two looks at it.
WAIT, PAUSE = 10.0, 0.25


class Claims:
    """What one process does with the rows that are its own; `me` is its id, `looks` as Ledger's.

    The outcomes of these are written at once, or kept until they can be.
    """

    def __init__(
        self, rows: LedgerRows, me: str, looks: float, unknown: UnknownBookings, events: Events
    ) -> None:
        self._rows = rows
        self._me = me
        self._looks = looks
        self._unknown = unknown
        self._events = events
        self._unwritten: dict[str, tuple[LedgerRow, Outcome]] = {}
        self._writing = asyncio.Lock()

    @property
    def waiting(self) -> int:
        """How many outcomes wait; of rows that may never have been written nobody knows."""
        return sum(row.id is not None for row, _ in self._unwritten.values())

    def waits(self, row: LedgerRow) -> bool:
        """Whether its outcome does."""
        return row.claim in self._unwritten

    def keep(self, row: LedgerRow, outcome: Outcome) -> None:
        """Write it when the rest is; of rows that may never have been written only so many."""
        if row.id is None:
            doubtful = [claim for claim, (kept, _) in self._unwritten.items() if kept.id is None]
            for claim in doubtful[: len(doubtful) + 1 - MOST_DOUBTFUL]:
                del self._unwritten[claim]
        self._unwritten[row.claim] = (row, outcome)

    async def flush(self) -> None:
        """Write what waits. StoreError."""
        # one at a time: a second that came late would undo what a retry has made of a row since
        async with self._writing:
            for claim, (row, outcome) in list(self._unwritten.items()):
                with suppress(LostClaim):
                    await self._rows.write(row, outcome)
                if self._unwritten.get(claim) == (row, outcome):
                    del self._unwritten[claim]

    async def finish(self, request: BookingRequest, row: LedgerRow) -> Booked | None:
        """The appointment; None where another has taken the row before anything was sent.

        As Ledger.book.
        """
        request = replace(request, draft=replace(request.draft, reference=row.reference))
        sends = False
        try:
            found = await self._prepare(request, row)
            if found is not None:
                return found
            sends = True
            return await self._send(request, row)
        except LostClaim as lost:
            return None if lost.outcome is None else await self._lost(row, lost.outcome)
        except (AdapterError, GatewayError, BookingRefused):
            raise
        except BaseException as error:  # a fault of ours: what was settled before it stays
            if not self.waits(row):
                await self._leave(row, LEFT if sends or not row.fresh else None)
            if sends and isinstance(error, Exception):
                raise OutcomeUnknown("the gateway failed in the middle of a booking") from error
            raise

    async def _settle(self, row: LedgerRow, outcome: Outcome, knows: Outcome = None) -> bool:
        """As LedgerRows.write, but where it can't be written now it is kept and written later.

        What happened has happened. Should this process end before, the row is looked up like any
        that was left behind. LostClaim, with what the claim `knows`.
        """
        try:
            return await self._rows.write(row, outcome)
        except LostClaim as lost:
            raise LostClaim(knows) from lost
        except StoreError as error:
            self.keep(row, outcome)
            self._events.report("outcome_waits", error)
            return True

    async def _leave(self, row: LedgerRow, outcome: Outcome) -> None:
        """Settle the row where it is still its claim's."""
        with suppress(LostClaim):
            await self._settle(row, outcome)

    async def _prepare(self, request: BookingRequest, row: LedgerRow) -> Booked | None:
        """What an earlier attempt made; else the row says from now on that it is sent."""
        if not row.fresh and (found := await self._left_behind(request, row)) is not None:
            return found
        async with self._failing_leaves(row, None):
            if not row.fresh:
                request.check_time()
            request.check_key()
            now = {"state": "sent", "owner": self._me, "sender": self._me, "sent_at": request.now()}
            await self._rows.write(row, now)
        return None

    async def _send(self, request: BookingRequest, row: LedgerRow) -> Booked:
        try:
            record = await request.adapter.create_appointment(request.draft)
        except (NotFound, SlotTaken) as error:
            return await self._refused(request, row, error)
        except (OutcomeUnknown, BackendTimeout) as error:
            return await self._not_known(request, row, error)
        except AdapterError:
            await self._leave(row, None)
            raise
        except Exception as error:  # noqa: BLE001 - a fault says nothing about what was written
            return await self._not_known(request, row, error)
        outcome = done(record)
        if not await self._settle(row, outcome, knows=outcome):
            await self._leave(row, LEFT)
            raise OutcomeUnknown(ANOTHERS)
        return Booked(record, replayed=False)

    @asynccontextmanager
    async def _failing_leaves(self, row: LedgerRow, outcome: Outcome) -> AsyncIterator[None]:
        """Settles the row so where its booking ends here; without the ledger it is Unavailable."""
        try:
            yield
        except (AdapterError, GatewayError, StoreError) as error:
            await self._leave(row, outcome)
            if isinstance(error, StoreError):
                raise Unavailable(error.retry_after) from error
            raise

    async def _left_behind(self, request: BookingRequest, row: LedgerRow) -> Booked | None:
        """What an earlier attempt left; OutcomeUnknown where it may still leave something."""
        # before it is asked: the answer may be older
        is_over = self._unknown.left(request.adapter, row) == 0
        async with self._failing_leaves(row, LEFT):
            found = await self._look(request, row)
            if found is None and not is_over:
                raise OutcomeUnknown("an attempt of another process may still be at work")
        return None if found is None else Booked(found, replayed=True)

    async def _refused(
        self, request: BookingRequest, row: LedgerRow, error: NotFound | SlotTaken
    ) -> Booked:
        """The practice system's no, unless it is our own earlier attempt that took the time.

        Unavailable where the time may be taken by a booking of ours that nobody knows of yet; and
        where the no is to stick and is not written: should this process end before, the next
        attempt may be told something else.
        """
        if isinstance(error, SlotTaken):
            if not row.fresh and (found := await self._left_behind(request, row)) is not None:
                return found
            async with self._failing_leaves(row, None):
                for other in await self._rows.in_doubt(row):
                    await self._unknown.settle(other, request.adapter)
        name = type(error).__name__
        kept = request.idempotency_key is not None
        await self._settle(row, refused(name) if kept else None)
        if kept and self.waits(row):
            raise Unavailable(1) from error
        raise BookingRefused(name, replayed=False) from error

    async def _not_known(self, request: BookingRequest, row: LedgerRow, error: Exception) -> Booked:
        """What was sent is looked up for a while; OutcomeUnknown where it is not found."""
        await self._settle(row, {"state": "unknown"}, knows=LEFT)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._looks):
                for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
                    await asyncio.sleep(pause)
                    with suppress(OutcomeUnknown, StoreError):
                        found = await self._look(request, row)
                        if found is not None:
                            return Booked(found, replayed=False)
                        if request.adapter.excludes:
                            break
        await self._leave(row, LEFT)
        if isinstance(error, OutcomeUnknown | BackendTimeout):
            raise OutcomeUnknown(str(error)) from error
        raise OutcomeUnknown("the adapter failed in the middle of a booking") from error

    async def _look(self, request: BookingRequest, row: LedgerRow) -> Record | None:
        return await look(self._rows, request.adapter, request.draft, row, told=True)

    async def _lost(self, row: LedgerRow, outcome: Mapping[str, Any]) -> Booked | None:
        """What a lost row says now, with what its first claim knows; None: begin anew.

        A row that is gone is written anew; where its key has another by now, that one answers.
        BookingRefused; OutcomeUnknown; Unavailable while another is still at work on it.
        """
        until = asyncio.get_running_loop().time() + WAIT
        try:
            while (now := await self._rows.read(row)) is not None:
                if now.is_settled:
                    self._compare(now, outcome)
                    return now.outcome_again()
                if now.owner is None:
                    with suppress(LostClaim):
                        return _booked(outcome, is_own=await self._rows.write(now, outcome))
                if asyncio.get_running_loop().time() >= until:
                    raise Unavailable(1)
                await asyncio.sleep(PAUSE)
            return _booked(outcome, is_own=await self._rows.restore(row, outcome))
        except LostClaim:
            self._compare(row, outcome)
            return None
        except StoreError as error:
            raise OutcomeUnknown("the ledger can't be asked what became of a booking") from error

    def _compare(self, now: LedgerRow, outcome: Mapping[str, Any]) -> None:
        made = outcome.get("appointment_id")
        if made is not None and made != now.appointment_id:
            self._events.report("booked_twice", appointment=made)


def _booked(outcome: Mapping[str, Any], *, is_own: bool) -> Booked:
    if not is_own:
        raise OutcomeUnknown(ANOTHERS)
    if outcome == LEFT:
        raise OutcomeUnknown("the booking was sent by a process that was taken for dead")
    return Booked(orjson.loads(outcome["record"]), replayed=False)
