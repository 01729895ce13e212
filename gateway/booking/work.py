"""Works on a row of the ledger that a call has claimed: looks it up, sends it, writes the end."""

import asyncio
from dataclasses import dataclass, replace

from adapters.base import (
    AdapterError,
    BackendTimeout,
    Draft,
    NotFound,
    OutcomeUnknown,
    Record,
    SlotTaken,
)
from gateway.booking.base import Attempt, Booked, Refused
from gateway.booking.deadlines import Deadlines
from gateway.booking.looking import Lost, look
from gateway.booking.outcomes import Outcomes, in_time
from gateway.booking.row import LEFT, Row
from gateway.booking.rows import Rows
from gateway.booking.unknown_bookings import UnknownBookings
from gateway.booking.values import ANOTHERS, done, refused
from gateway.contract.errors import GatewayError, Unavailable
from gateway.store.base import StoreError

# Seconds between looks for a booking whose answer was lost, while its caller waits.
_PAUSES = (0.05, 0.2, 0.4, 0.7, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds: `looks` after a lost answer, within the call; `lands` for the longest booking."""

    looks: float = 3.0
    lands: float = 15.0


class Work:
    """What one process does with the rows that are its own; `me` is its id, `looks` as Patience."""

    def __init__(
        self,
        rows: Rows,
        outcomes: Outcomes,
        me: str,
        looks: float,
        deadlines: Deadlines,
        unknown: UnknownBookings,
    ) -> None:
        self._rows = rows
        self._outcomes = outcomes
        self._me = me
        self._looks = looks
        self._deadlines = deadlines
        self._unknown = unknown

    async def on(self, attempt: Attempt, row: Row) -> Booked:
        """The appointment. As Ledger.book; Lost where another has taken the row meanwhile."""
        draft = replace(attempt.draft, reference=row.reference)
        sends = False
        try:
            if not row.fresh:
                found = await self._left_behind(attempt, draft, row)
                if found is not None:
                    return Booked(found, replayed=True)
            await self._check(attempt, row)
            await self._send(attempt, row)
            sends = True
            return await self._sent(attempt, draft, row)
        except (Lost, AdapterError, GatewayError, Refused):
            raise
        except BaseException as error:  # a fault of ours: what was settled before it stays
            if row not in self._outcomes:
                await self._outcomes.settle(row, LEFT if sends or not row.fresh else None)
            if sends and isinstance(error, Exception):
                raise OutcomeUnknown("the gateway failed in the middle of a booking") from error
            raise

    async def _sent(self, attempt: Attempt, draft: Draft, row: Row) -> Booked:
        """Send it, and write its end."""
        try:
            record = await attempt.adapter.create_appointment(draft)
        except (NotFound, SlotTaken) as error:
            return await self._refused(attempt, draft, row, error)
        except (OutcomeUnknown, BackendTimeout) as error:
            return await self._not_known(attempt, draft, row, error)
        except AdapterError:
            await self._outcomes.settle(row, None)
            raise
        except Exception as error:  # noqa: BLE001 - a fault says nothing about what was written
            return await self._not_known(attempt, draft, row, error)
        return Booked(await self._done(row, record), replayed=False)

    async def _left_behind(self, attempt: Attempt, draft: Draft, row: Row) -> Record | None:
        """What an earlier attempt left; OutcomeUnknown where it may still leave something."""
        # before it is asked: the answer may be older
        is_over = self._deadlines.left(attempt.adapter, row) == 0
        try:
            found = await look(self._rows, attempt.adapter, draft, row, told=True)
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

    async def _check(self, attempt: Attempt, row: Row) -> None:
        try:
            if not row.fresh:
                attempt.check_time()
            attempt.check_key()
        except GatewayError:
            await self._outcomes.settle(row, None)
            raise

    async def _send(self, attempt: Attempt, row: Row) -> None:
        sent = {"state": "sent", "owner": self._me, "sender": self._me, "sent_at": attempt.now()}
        try:
            if not await self._outcomes.written(row, sent):
                raise Lost
        except StoreError as error:
            await self._outcomes.settle(row, None)
            raise Unavailable(error.retry_after) from error

    async def _refused(
        self, attempt: Attempt, draft: Draft, row: Row, error: NotFound | SlotTaken
    ) -> Booked:
        """The practice system's no, unless it is our own earlier attempt that took the time.

        Unavailable where the no is to stick and is not written yet: should this process end before,
        the next attempt may be told something else.
        """
        if not row.fresh and isinstance(error, SlotTaken):
            found = await self._left_behind(attempt, draft, row)
            if found is not None:
                return Booked(found, replayed=True)
        if isinstance(error, SlotTaken):
            await self._check_taken(attempt, row)
        name = type(error).__name__
        kept = attempt.idempotency_key is not None
        if not await self._outcomes.settle(row, refused(name) if kept else None):
            raise Lost
        if kept and row in self._outcomes:
            raise Unavailable(1) from error
        raise Refused(name, replayed=False) from error

    async def _check_taken(self, attempt: Attempt, row: Row) -> None:
        """Unavailable where the time may be taken by a booking of ours that nobody knows of yet."""
        try:
            for other in await in_time(self._rows.in_doubt(row)):
                await self._unknown.settle(other, attempt.adapter)
        except (StoreError, Unavailable) as error:
            await self._outcomes.settle(row, None)
            raise Unavailable(error.retry_after) from error

    async def _not_known(
        self, attempt: Attempt, draft: Draft, row: Row, error: Exception
    ) -> Booked:
        """What was sent is looked up for a while; OutcomeUnknown where it is not found."""
        if not await self._outcomes.settle(row, {"state": "unknown"}):
            raise Lost(LEFT)
        found = await self._look_a_while(attempt, draft, row)
        if found is not None:
            return Booked(found, replayed=False)
        await self._outcomes.settle(row, LEFT)
        if isinstance(error, OutcomeUnknown | BackendTimeout):
            raise OutcomeUnknown(str(error)) from error
        raise OutcomeUnknown("the adapter failed in the middle of a booking") from error

    async def _look_a_while(self, attempt: Attempt, draft: Draft, row: Row) -> Record | None:
        until = asyncio.get_running_loop().time() + self._looks
        pauses = iter(_PAUSES)
        while True:
            try:
                async with asyncio.timeout_at(until):
                    await asyncio.sleep(next(pauses, _PAUSES[-1]))
                    found = await look(self._rows, attempt.adapter, draft, row, told=True)
            except TimeoutError:
                return None
            except (OutcomeUnknown, StoreError):
                continue
            if found is not None or attempt.adapter.excludes:
                return found

    async def _done(self, row: Row, record: Record) -> Record:
        """The new appointment; OutcomeUnknown where another booking was given the same one."""
        held = await self._outcomes.hold(row, record)
        if held is None:
            raise Lost(done(record))
        if not held:
            await self._outcomes.settle(row, LEFT)
            raise OutcomeUnknown(ANOTHERS)
        return record
