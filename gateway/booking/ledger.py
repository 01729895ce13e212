"""The ledger: what was intended, sent, done, refused, or is not known, written before it happens.

One row per booking. A row with an Idempotency-Key keeps its outcome for a day: 201 and the
practice system's own 404 and 409; after any other outcome the key is free again. A row whose
outcome is not known is looked up in the practice system before anything is sent anew.
"""

import asyncio
from collections.abc import Awaitable
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import orjson
from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from adapters.base import (
    AdapterError,
    BackendTimeout,
    NotFound,
    OutcomeUnknown,
    Record,
    SlotTaken,
)
from gateway.booking.base import Attempt, Booked, Refused
from gateway.contract.errors import KeyReused, Unavailable
from gateway.store.base import Store, StoreError
from gateway.store.tables import bookings

KEPT = timedelta(hours=24)
UNKNOWN_KEPT = timedelta(days=7)
PURGE_EVERY = timedelta(minutes=10)


class Ledger:
    """Books through an adapter, once; `wait` is how long a second call waits for the first."""

    def __init__(self, store: Store, *, wait: float = 10.0) -> None:
        self._store = store
        self._wait = wait
        # rows that this process is working on; a row in between that is not here was left behind
        self._running: dict[int, asyncio.Future[None]] = {}
        self._purged: datetime | None = None

    async def book(self, attempt: Attempt) -> Booked:
        """The appointment, new or as it was made before.

        Refused for the practice system's 404 and 409; KeyReused; Unavailable where the ledger
        can't be written or the first call is still running; OutcomeUnknown; and what
        `check_future` raises, once it is certain that nothing was made before.
        """
        try:
            await self._purge(attempt.now())
            async with asyncio.timeout(self._wait) as patience:
                row = await self._claim(attempt)
                patience.reschedule(None)
                if isinstance(row, Booked):
                    return row
        except StoreError as error:
            raise Unavailable from error
        except TimeoutError as error:
            raise Unavailable(1) from error
        # shielded: a caller who goes away leaves a booking that is finished, and known
        return await asyncio.shield(asyncio.ensure_future(self._work(attempt, row)))

    async def _claim(self, attempt: Attempt) -> "Booked | _Row":
        """An earlier outcome, or the row that this call is to work on, marked as running."""
        while True:
            row = await self._present(attempt)
            if row is None:
                attempt.check_future()
                row = await self._insert(attempt)
                if row is None:  # another call was quicker
                    continue
            elif row.fingerprint != attempt.fingerprint:
                raise KeyReused
            elif row.settled:
                return row.outcome_again()
            running = self._running.get(row.id)
            if running is not None:
                await asyncio.shield(running)
                continue
            self._running[row.id] = asyncio.get_running_loop().create_future()
            if row.fresh or await self._still(row):
                return row
            self._release(row)

    async def _present(self, attempt: Attempt) -> "_Row | None":
        """The row that counts for the attempt; one that is settled is forgotten after a day."""
        row = await self._find(attempt)
        if row is not None and row.settled and row.created_at <= attempt.now() - KEPT:
            await self._delete(row.id)
            return None
        return row

    async def _still(self, row: "_Row") -> bool:
        """Whether the row is as it was read: between the two its first call may have ended."""
        try:
            async with self._store.begin() as connection:
                state = select(bookings.c.state).where(bookings.c.id == row.id)
                return (await connection.execute(state)).scalar_one_or_none() == row.state
        except BaseException:
            self._release(row)
            raise

    def _release(self, row: "_Row") -> None:
        self._running.pop(row.id).set_result(None)

    async def _work(self, attempt: Attempt, row: "_Row") -> Booked:
        try:
            if not row.fresh:
                found = await self._look_up(attempt, row)
                if found is not None:
                    return Booked(found, replayed=True)
                attempt.check_future()
            return Booked(await self._create(attempt, row), replayed=False)
        finally:
            self._release(row)

    async def _look_up(self, attempt: Attempt, row: "_Row") -> Record | None:
        """What an attempt of unknown outcome left behind; None where it certainly left nothing."""
        try:
            found = await attempt.adapter.find_appointment(attempt.draft, row.created_at)
        except AdapterError as error:
            raise OutcomeUnknown("the practice system can't be asked") from error
        if found is not None:
            await self._settle(row.id, "done", record=orjson.dumps(found))
        return found

    async def _create(self, attempt: Attempt, row: "_Row") -> Record:
        try:
            await self._set(row.id, state="sent")
            record = await attempt.adapter.create_appointment(attempt.draft)
        except (NotFound, SlotTaken) as error:
            name = type(error).__name__
            if attempt.idempotency_key is None:
                await self._quietly(self._delete(row.id))
            else:
                await self._settle(row.id, "refused", outcome=name)
            raise Refused(name, replayed=False) from error
        except (OutcomeUnknown, BackendTimeout) as error:
            await self._settle(row.id, "unknown")
            raise OutcomeUnknown(str(error)) from error
        except StoreError as error:
            raise Unavailable from error
        except AdapterError:
            await self._quietly(self._delete(row.id))
            raise
        except Exception as error:  # a fault in an adapter says nothing about what was written
            await self._settle(row.id, "unknown")
            raise OutcomeUnknown("the adapter failed in the middle of a booking") from error
        except BaseException:
            await self._settle(row.id, "unknown")
            raise
        await self._settle(row.id, "done", record=orjson.dumps(record))
        return record

    async def _find(self, attempt: Attempt) -> "_Row | None":
        """The row of the same Idempotency-Key; without one, of the same request left unsettled."""
        statement = select(bookings).where(bookings.c.key_id == attempt.key_id)
        if attempt.idempotency_key is not None:
            statement = statement.where(
                bookings.c.idempotency_digest == _digest(attempt.idempotency_key)
            )
        else:
            statement = statement.where(
                bookings.c.idempotency_digest.is_(None),
                bookings.c.fingerprint == attempt.fingerprint,
                bookings.c.state.in_(("intended", "sent", "unknown")),
                bookings.c.id.not_in(list(self._running)),
            )
        async with self._store.begin() as connection:
            found = (await connection.execute(statement.order_by(bookings.c.id).limit(1))).first()
        return None if found is None else _Row(found)

    async def _insert(self, attempt: Attempt) -> "_Row | None":
        values = {
            "key_id": attempt.key_id,
            "idempotency_digest": _digest(attempt.idempotency_key),
            "fingerprint": attempt.fingerprint,
            "state": "intended",
            "created_at": attempt.draft.now,
        }
        try:
            async with self._store.begin() as connection:
                done = await connection.execute(insert(bookings).values(values))
                row_id = done.inserted_primary_key[0]  # type: ignore[index]  # one row
                found = await connection.execute(select(bookings).where(bookings.c.id == row_id))
                return _Row(found.one(), fresh=True)
        except IntegrityError:
            return None

    async def _set(self, row_id: int, **values: Any) -> None:
        async with self._store.begin() as connection:
            await connection.execute(update(bookings).where(bookings.c.id == row_id).values(values))

    async def _settle(self, row_id: int, state: str, **values: Any) -> None:
        """What happened has happened: where it can't be written, a later look-up will find it."""
        await self._quietly(self._set(row_id, state=state, **values))

    async def _delete(self, row_id: int) -> None:
        async with self._store.begin() as connection:
            await connection.execute(delete(bookings).where(bookings.c.id == row_id))

    async def _quietly(self, work: Awaitable[None]) -> None:
        try:
            await work
        except StoreError:
            return

    async def _purge(self, now: datetime) -> None:
        """Forget what is older than a day, at most every few minutes."""
        if self._purged is not None and now - self._purged < PURGE_EVERY:
            return
        settled = bookings.c.state.in_(("done", "refused"))
        old = settled & (bookings.c.created_at <= now - KEPT)
        stale = bookings.c.created_at <= now - UNKNOWN_KEPT
        async with self._store.begin() as connection:
            await connection.execute(delete(bookings).where(old | stale))
        self._purged = now


def _digest(idempotency_key: str | None) -> bytes | None:
    """What is kept of an Idempotency-Key: enough to know it again, whatever was put into it."""
    return None if idempotency_key is None else sha256(idempotency_key.encode()).digest()


class _Row:
    """A row as it was read; `fresh` where this call has just written it."""

    def __init__(self, row: Any, *, fresh: bool = False) -> None:
        self.id: int = row.id
        self.fingerprint: bytes = row.fingerprint
        self.created_at: datetime = row.created_at
        self.state: str = row.state
        self.settled = row.state in ("done", "refused")
        self.fresh = fresh
        self._row = row

    def outcome_again(self) -> Booked:
        """The first outcome once more: the record, or the refusal."""
        if self._row.state == "refused":
            raise Refused(self._row.outcome, replayed=True)
        return Booked(orjson.loads(self._row.record), replayed=True)
