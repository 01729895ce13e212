"""A process's work on rows that it has claimed: looks them up, sends them, writes their outcomes.

What could not be written is kept until it can be. A row that its claim has lost, as that of a
process that was stopped for long and taken for dead, is read again.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    LedgerListener,
    LedgerRow,
    LostClaim,
    Outcome,
    done,
    refused,
)
from gateway.booking.lookup import UnknownBookings, look
from gateway.booking.rows import LedgerRows
from gateway.contract.errors import GatewayError, Unavailable
from gateway.store.base import StoreError

# Rows that may or may not have been written, of which the last are undone later.
MOST_DOUBTFUL = 1_000
# Seconds between looks for a booking whose answer was lost, while its caller waits.
_PAUSES = (0.05, 0.2, 0.4, 0.7, 1.0)
# Seconds that the new claim of a lost row has to come to an end, and between two looks at it.
WAIT, PAUSE = 10.0, 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds: `looks` after a lost answer, within the call; `lands` for the longest booking."""

    looks: float = 3.0
    lands: float = 15.0


class Outcomes:
    """The outcomes of one process's rows: written at once, or kept until they can be."""

    def __init__(self, rows: LedgerRows, listener: LedgerListener) -> None:
        self._rows = rows
        self._listener = listener
        self._unwritten: dict[str, tuple[LedgerRow, Outcome]] = {}
        self._writing = asyncio.Lock()

    def __len__(self) -> int:
        """How many there are; of those rows that may never have been written nobody knows."""
        return sum(row.id is not None for row, _ in self._unwritten.values())

    def __contains__(self, row: LedgerRow) -> bool:
        return row.claim in self._unwritten

    async def written(self, row: LedgerRow, outcome: Outcome) -> bool:
        """Whether the row was still its claim's, and is now as told. StoreError, in time."""
        return await self._rows.write(row, outcome)

    async def settle(self, row: LedgerRow, outcome: Outcome) -> bool:
        """What happened has happened: where it can't be written now, it is kept and written later.

        False where the row was its claim's no longer. Should this process end before, the row is
        looked up like any that was left behind.
        """
        try:
            return await self.written(row, outcome)
        except StoreError as error:
            return self._wait(row, outcome, error)

    async def hold(self, row: LedgerRow, record: Record) -> bool | None:
        """Settle the row with its new appointment; False where that is another row's.

        None where the row was its claim's no longer. Where it can't be written now, as `settle`.
        """
        try:
            return await self._rows.hold(row, record, told=True)
        except StoreError as error:
            return self._wait(row, done(record), error)

    def _wait(self, row: LedgerRow, outcome: Outcome, error: StoreError) -> bool:
        self.keep(row, outcome)
        self._listener.outcome_waits(error)
        return True

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
                await self.written(row, outcome)
                if self._unwritten.get(claim) == (row, outcome):
                    del self._unwritten[claim]


class Claims:
    """What one process does with the rows that are its own; `me` is its id, `looks` as Patience."""

    def __init__(
        self,
        rows: LedgerRows,
        outcomes: Outcomes,
        me: str,
        looks: float,
        unknown: UnknownBookings,
        listener: LedgerListener,
    ) -> None:
        self._rows = rows
        self._outcomes = outcomes
        self._me = me
        self._looks = looks
        self._unknown = unknown
        self._listener = listener

    async def finish(self, request: BookingRequest, row: LedgerRow) -> Booked | None:
        """The appointment; None where another has taken the row before anything was sent.

        As Ledger.book.
        """
        try:
            return await self._work(request, row)
        except LostClaim as lost:
            if lost.outcome is None:
                return None
            try:
                return await self._lost(row, lost.outcome)
            except StoreError as error:
                raise OutcomeUnknown(
                    "the ledger can't be asked what became of a booking"
                ) from error

    async def _work(self, request: BookingRequest, row: LedgerRow) -> Booked:
        request = replace(request, draft=replace(request.draft, reference=row.reference))
        sends = False
        try:
            if not row.fresh:
                found = await self._left_behind(request, row)
                if found is not None:
                    return Booked(found, replayed=True)
            await self._check(request, row)
            await self._send(request, row)
            sends = True
            return await self._sent(request, row)
        except (LostClaim, AdapterError, GatewayError, BookingRefused):
            raise
        except BaseException as error:  # a fault of ours: what was settled before it stays
            if row not in self._outcomes:
                await self._outcomes.settle(row, LEFT if sends or not row.fresh else None)
            if sends and isinstance(error, Exception):
                raise OutcomeUnknown("the gateway failed in the middle of a booking") from error
            raise

    async def _sent(self, request: BookingRequest, row: LedgerRow) -> Booked:
        """Send it, and write its end."""
        try:
            record = await request.adapter.create_appointment(request.draft)
        except (NotFound, SlotTaken) as error:
            return await self._refused(request, row, error)
        except (OutcomeUnknown, BackendTimeout) as error:
            return await self._not_known(request, row, error)
        except AdapterError:
            await self._outcomes.settle(row, None)
            raise
        except Exception as error:  # noqa: BLE001 - a fault says nothing about what was written
            return await self._not_known(request, row, error)
        return Booked(await self._done(row, record), replayed=False)

    async def _left_behind(self, request: BookingRequest, row: LedgerRow) -> Record | None:
        """What an earlier attempt left; OutcomeUnknown where it may still leave something."""
        # before it is asked: the answer may be older
        is_over = self._unknown.deadlines.left(request.adapter, row) == 0
        try:
            found = await self._look(request, row)
        except OutcomeUnknown:
            await self._outcomes.settle(row, LEFT)
            raise
        except StoreError as error:
            await self._outcomes.settle(row, LEFT)
            raise Unavailable(error.retry_after) from error
        if found is None and not is_over:
            await self._outcomes.settle(row, LEFT)
            raise OutcomeUnknown("an attempt of another process may still be at work")
        return found

    async def _check(self, request: BookingRequest, row: LedgerRow) -> None:
        try:
            if not row.fresh:
                request.check_time()
            request.check_key()
        except GatewayError:
            await self._outcomes.settle(row, None)
            raise

    async def _send(self, request: BookingRequest, row: LedgerRow) -> None:
        sent = {"state": "sent", "owner": self._me, "sender": self._me, "sent_at": request.now()}
        try:
            if not await self._outcomes.written(row, sent):
                raise LostClaim
        except StoreError as error:
            await self._outcomes.settle(row, None)
            raise Unavailable(error.retry_after) from error

    async def _refused(
        self, request: BookingRequest, row: LedgerRow, error: NotFound | SlotTaken
    ) -> Booked:
        """The practice system's no, unless it is our own earlier attempt that took the time.

        Unavailable where the no is to stick and is not written yet: should this process end before,
        the next attempt may be told something else.
        """
        if not row.fresh and isinstance(error, SlotTaken):
            found = await self._left_behind(request, row)
            if found is not None:
                return Booked(found, replayed=True)
        if isinstance(error, SlotTaken):
            await self._check_taken(request, row)
        name = type(error).__name__
        kept = request.idempotency_key is not None
        if not await self._outcomes.settle(row, refused(name) if kept else None):
            raise LostClaim
        if kept and row in self._outcomes:
            raise Unavailable(1) from error
        raise BookingRefused(name, replayed=False) from error

    async def _check_taken(self, request: BookingRequest, row: LedgerRow) -> None:
        """Unavailable where the time may be taken by a booking of ours that nobody knows of yet."""
        try:
            for other in await self._rows.in_doubt(row):
                await self._unknown.settle(other, request.adapter)
        except (StoreError, Unavailable) as error:
            await self._outcomes.settle(row, None)
            raise Unavailable(error.retry_after) from error

    async def _not_known(self, request: BookingRequest, row: LedgerRow, error: Exception) -> Booked:
        """What was sent is looked up for a while; OutcomeUnknown where it is not found."""
        if not await self._outcomes.settle(row, {"state": "unknown"}):
            raise LostClaim(LEFT)
        found = await self._look_a_while(request, row)
        if found is not None:
            return Booked(found, replayed=False)
        await self._outcomes.settle(row, LEFT)
        if isinstance(error, OutcomeUnknown | BackendTimeout):
            raise OutcomeUnknown(str(error)) from error
        raise OutcomeUnknown("the adapter failed in the middle of a booking") from error

    async def _look_a_while(self, request: BookingRequest, row: LedgerRow) -> Record | None:
        until = asyncio.get_running_loop().time() + self._looks
        pauses = iter(_PAUSES)
        while True:
            try:
                async with asyncio.timeout_at(until):
                    await asyncio.sleep(next(pauses, _PAUSES[-1]))
                    found = await self._look(request, row)
            except TimeoutError:
                return None
            except (OutcomeUnknown, StoreError):
                continue
            if found is not None or request.adapter.excludes:
                return found

    async def _look(self, request: BookingRequest, row: LedgerRow) -> Record | None:
        return await look(self._rows, request.adapter, request.draft, row, told=True)

    async def _done(self, row: LedgerRow, record: Record) -> Record:
        """The new appointment; OutcomeUnknown where another booking was given the same one."""
        held = await self._outcomes.hold(row, record)
        if held is None:
            raise LostClaim(done(record))
        if not held:
            await self._outcomes.settle(row, LEFT)
            raise OutcomeUnknown(ANOTHERS)
        return record

    async def _lost(self, row: LedgerRow, outcome: Mapping[str, Any]) -> Booked | None:
        """What a lost row says now, with what its first claim knows; None: begin anew.

        BookingRefused; OutcomeUnknown; Unavailable while another is still at work on it.
        """
        until = asyncio.get_running_loop().time() + WAIT
        try:
            while (now := await self._rows.read(row)) is not None:
                if now.is_settled:
                    self._compare(now, outcome)
                    return now.outcome_again()
                if now.owner is None and await self._is_written(now, outcome):
                    return _booked(outcome)
                if asyncio.get_running_loop().time() >= until:
                    raise Unavailable(1)
                await asyncio.sleep(PAUSE)
            return await self._gone(row, outcome)
        except StoreError as error:
            raise OutcomeUnknown("the ledger can't be asked what became of a booking") from error

    async def _is_written(self, now: LedgerRow, outcome: Mapping[str, Any]) -> bool:
        if "appointment_id" not in outcome:
            return await self._rows.write(now, outcome)
        held = await self._rows.hold(now, orjson.loads(outcome["record"]), told=True)
        if held is False:
            raise OutcomeUnknown(ANOTHERS)
        return bool(held)

    async def _gone(self, row: LedgerRow, outcome: Mapping[str, Any]) -> Booked | None:
        """Written anew; where its key has another row by now, that one answers."""
        restored = await self._rows.restore(row, outcome)
        if restored is None:
            raise OutcomeUnknown(ANOTHERS)
        if restored:
            return _booked(outcome)
        self._compare(row, outcome)
        return None

    def _compare(self, now: LedgerRow, outcome: Mapping[str, Any]) -> None:
        made = outcome.get("appointment_id")
        if made is not None and made != now.appointment_id:
            self._listener.made_twice(made)


def _booked(outcome: Mapping[str, Any]) -> Booked:
    if outcome == LEFT:
        raise OutcomeUnknown("the booking was sent by a process that was taken for dead")
    return Booked(orjson.loads(outcome["record"]), replayed=False)
