"""The ledger: what was intended, sent, done, refused, or is not known, written before it happens.

One row per booking. A row with an Idempotency-Key keeps its outcome for a day: 201 and the
practice system's own 404 and 409; after any other outcome the key is free again. A row whose
outcome is not known is looked up in the practice system before anything is sent anew; an
appointment that another row holds is somebody else's.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from secrets import token_hex
from typing import Any

import orjson
from sqlalchemy import CursorResult, Update, delete, exists, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from adapters.base import (
    Adapter,
    AdapterError,
    BackendTimeout,
    Draft,
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
TIDY_EVERY = 10.0  # seconds between two looks at what could not be written
PURGE_EVERY = timedelta(minutes=10)
_SETTLED = ("done", "refused")
# What became of a row: the values to write, or None where it is to go.
Outcome = dict[str, Any] | None


class Ledger:
    """Books through an adapter, once; `wait` is how long a second call waits for the first.

    `failed` is called, once each time, when an outcome could not be written; it is kept and
    written later.
    """

    def __init__(
        self,
        store: Store,
        *,
        wait: float = 10.0,
        failed: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self._store = store
        self._wait = wait
        self._failed = failed
        # rows that this process is working on; a row in between that is not here was left behind
        self._running: dict[int, asyncio.Future[None]] = {}
        self._unwritten: dict[int, Outcome] = {}
        self._writing = asyncio.Lock()
        self._alike: dict[bytes, _Turns] = {}
        self._purged: datetime | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """How many outcomes could not be written yet."""
        return len(self._unwritten)

    def start(self, now: Callable[[], datetime]) -> None:
        """Tidy now and then, until `aclose`."""
        self._task = asyncio.create_task(self._keep_tidy(now), name="tidy the ledger")

    async def aclose(self) -> None:
        """Write what is not written, where that is possible; what runs has ended before."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        with contextlib.suppress(StoreError):
            await self._write_outcomes()

    async def tidy(self, now: datetime) -> None:
        """Write the outcomes that wait, and forget what is old. StoreError."""
        await self._write_outcomes()
        await self._purge(now)

    async def book(self, attempt: Attempt) -> Booked:
        """The appointment, new or as it was made before.

        Refused for the practice system's 404 and 409; KeyReused; Unavailable where the ledger
        can't be written or the first call is still running; OutcomeUnknown; and what
        `check_future` raises, once it is certain that nothing was made before.
        """
        try:
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
        if row is not None and row.id in self._unwritten:
            await self._write_outcomes()
            row = await self._find(attempt)
        if row is not None and row.settled and row.created_at <= attempt.now() - KEPT:
            await self._purge(attempt.now(), at_once=True)
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
            draft = replace(attempt.draft, reference=row.reference)
            # two that ask for just the same could be taken for one another: one after the other
            async with self._turn(attempt.fingerprint):
                if not row.fresh:
                    found = await self._look_up(attempt.adapter, draft, row)
                    if found is not None:
                        return Booked(found, replayed=True)
                    attempt.check_future()
                return Booked(await self._create(attempt, draft, row), replayed=False)
        finally:
            self._release(row)

    @contextlib.asynccontextmanager
    async def _turn(self, fingerprint: bytes) -> AsyncIterator[None]:
        turns = self._alike.setdefault(fingerprint, _Turns())
        turns.waiting += 1
        try:
            async with turns.lock:
                yield
        finally:
            turns.waiting -= 1
            if not turns.waiting:
                del self._alike[fingerprint]

    async def _look_up(self, adapter: Adapter, draft: Draft, row: "_Row") -> Record | None:
        """What an attempt of unknown outcome left behind; None where it certainly left nothing."""
        try:
            found = await adapter.find_appointments(draft, row.created_at)
        except AdapterError as error:
            raise OutcomeUnknown("the practice system can't be asked") from error
        except Exception as error:
            raise OutcomeUnknown("the adapter failed while it looked a booking up") from error
        try:
            # whose an appointment is may be among what waits
            await self._write_outcomes()
            for record in found:
                if await self._hold(row.id, record):
                    return record
        except StoreError as error:
            raise Unavailable from error
        return None

    async def _hold(self, row_id: int, record: Record) -> bool:
        """Settle the row with this record, unless the appointment is another row's."""
        other = bookings.alias()
        taken = exists().where(other.c.appointment_id == record.get("id"), other.c.id != row_id)
        claim = update(bookings).where(bookings.c.id == row_id, ~taken).values(_done(record))
        async with self._store.begin() as connection:
            done: CursorResult[Any] = await connection.execute(claim)
            return done.rowcount == 1

    async def _create(self, attempt: Attempt, draft: Draft, row: "_Row") -> Record:
        try:
            await self._write(row.id, {"state": "sent"})
        except StoreError as error:
            await self._settle(row.id, None)
            raise Unavailable from error
        try:
            record = await attempt.adapter.create_appointment(draft)
        except (NotFound, SlotTaken) as error:
            name = type(error).__name__
            kept = attempt.idempotency_key is not None
            await self._settle(row.id, {"state": "refused", "outcome": name} if kept else None)
            raise Refused(name, replayed=False) from error
        except (OutcomeUnknown, BackendTimeout) as error:
            await self._settle(row.id, {"state": "unknown"})
            raise OutcomeUnknown(str(error)) from error
        except AdapterError:
            await self._settle(row.id, None)
            raise
        except Exception as error:  # a fault in an adapter says nothing about what was written
            await self._settle(row.id, {"state": "unknown"})
            raise OutcomeUnknown("the adapter failed in the middle of a booking") from error
        except BaseException:
            await self._settle(row.id, {"state": "unknown"})
            raise
        await self._settle(row.id, _done(record))
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
            "reference": token_hex(8),
        }
        try:
            async with self._store.begin() as connection:
                done = await connection.execute(insert(bookings).values(values))
                row_id = done.inserted_primary_key[0]  # type: ignore[index]  # one row
                found = await connection.execute(select(bookings).where(bookings.c.id == row_id))
                return _Row(found.one(), fresh=True)
        except IntegrityError:
            return None

    async def _write(self, row_id: int, outcome: Outcome) -> None:
        # what is settled stays as it is
        this = (bookings.c.id == row_id) & bookings.c.state.not_in(_SETTLED)
        change: Update | Any = delete(bookings).where(this)
        if outcome is not None:
            change = update(bookings).where(this).values(outcome)
        async with self._store.begin() as connection:
            await connection.execute(change)

    async def _settle(self, row_id: int, outcome: Outcome) -> None:
        """What happened has happened: where it can't be written now, it is kept and written later.

        Should this process end before, the row is looked up like any that was left behind.
        """
        try:
            await self._write(row_id, outcome)
        except StoreError as error:
            self._unwritten[row_id] = outcome
            self._failed(error)

    async def _write_outcomes(self) -> None:
        # one at a time: a second that came late would undo what a retry has made of a row since
        async with self._writing:
            for row_id in list(self._unwritten):
                await self._write(row_id, self._unwritten[row_id])
                del self._unwritten[row_id]

    async def _keep_tidy(self, now: Callable[[], datetime]) -> None:
        while True:
            await asyncio.sleep(TIDY_EVERY)
            with contextlib.suppress(Exception):  # the store's own probe says so
                await self.tidy(now())

    async def _purge(self, now: datetime, *, at_once: bool = False) -> None:
        """Forget what is older than a day, at most every few minutes.

        Whose an appointment is stays known for as long as an unknown outcome may be looked up, and
        until it is over.
        """
        if not at_once and self._purged is not None and now - self._purged < PURGE_EVERY:
            return
        settled = bookings.c.state.in_(_SETTLED) & (bookings.c.created_at <= now - KEPT)
        gone = settled & bookings.c.appointment_id.is_(None)
        is_over = or_(bookings.c.ends_at.is_(None), bookings.c.ends_at <= now)
        stale = (bookings.c.created_at <= now - UNKNOWN_KEPT) & is_over
        forgotten = {"idempotency_digest": None, "record": None}
        async with self._store.begin() as connection:
            await connection.execute(delete(bookings).where(gone | stale))
            await connection.execute(update(bookings).where(settled).values(forgotten))
        self._purged = now


class _Turns:
    """Who works on the same request waits here; `waiting` counts who works too."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


def _done(record: Record) -> dict[str, Any]:
    return {
        "state": "done",
        "record": _kept(record),
        "appointment_id": record.get("id"),
        "ends_at": _end_of(record),
    }


def _end_of(record: Record) -> datetime | None:
    """When the appointment is over; where nobody says it, when it begins."""
    try:
        return datetime.fromisoformat(record.get("endTime") or record["scheduledAt"])
    except (KeyError, TypeError, ValueError):
        return None


def _kept(record: Record) -> bytes:
    """The record as JSON; a value that is none of JSON's is as good as no value."""
    try:
        return orjson.dumps(record)
    except TypeError:
        return orjson.dumps({name: _plain(value) for name, value in record.items()})


def _plain(value: Any) -> Any:
    try:
        return orjson.Fragment(orjson.dumps(value))
    except TypeError:
        return None


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
        self.settled = row.state in _SETTLED
        self.reference: str = row.reference or ""
        self.fresh = fresh
        self._row = row

    def outcome_again(self) -> Booked:
        """The first outcome once more: the record, or the refusal."""
        if self._row.state == "refused":
            raise Refused(self._row.outcome, replayed=True)
        return Booked(orjson.loads(self._row.record), replayed=True)
