"""The rows of the ledger: what is read and written of them, each time in one transaction."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from datetime import datetime, timedelta
from hashlib import sha256
from secrets import token_hex
from types import SimpleNamespace
from typing import Any, TypeVar

import orjson
from sqlalchemy import (
    ColumnElement,
    CursorResult,
    and_,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.base import Record, SlotTaken
from gateway.booking.base import Attempt, Booked, Refused
from gateway.booking.drafts import written
from gateway.store.base import Store
from gateway.store.tables import bookings

T = TypeVar("T")
KEPT = timedelta(hours=24)
UNKNOWN_KEPT = timedelta(days=7)
SETTLED = ("done", "refused")
# What is written of a row that nobody works on any more.
LEFT = {"state": "unknown", "owner": None}
BETWEEN = ("intended", "sent", "unknown")
FOUND = "found"  # the outcome of a booking that was found when nobody asked
# Vets share so many turns: each is a row, and ids of vets that nobody has must not fill a table.
TURNS = 1024
# Transactions at once: more wait here, where it is their turn, and not for one of few connections.
AT_ONCE = 2
_KEPT_WHEN_GONE = (
    *("key_id", "fingerprint", "created_at", "reference"),
    *("vet_id", "starts_at", "ends_at", "draft", "claim", "sender", "sent_at"),
)
# What became of a row: the values to write, or None where it is to go.
Outcome = Mapping[str, Any] | None


class Row:
    """A row as it was read; `mine` where this call has just claimed it, `fresh` by writing it."""

    def __init__(self, row: Any, *, mine: bool = False, fresh: bool = False) -> None:
        self.id: int | None = row.id
        self.key_id: str = row.key_id
        self.digest: bytes | None = row.idempotency_digest
        self.fingerprint: bytes = row.fingerprint
        self.created_at: datetime = row.created_at
        self.state: str = row.state
        self.settled = row.state in SETTLED
        self.reference: str = row.reference or ""
        self.vet_id: str | None = row.vet_id
        self.starts_at: datetime | None = row.starts_at
        self.ends_at: datetime | None = row.ends_at
        self.draft: bytes | None = row.draft
        self.owner: str | None = row.owner
        self.claim: str | None = row.claim
        self.sender: str | None = row.sender
        self.sent_at: datetime | None = row.sent_at
        self.untold: bool = row.state == "done" and row.outcome == FOUND
        self.appointment_id: str | None = row.appointment_id
        self.error: str = row.outcome or ""
        self.mine = mine
        self.fresh = fresh
        self._row = row

    @classmethod
    def perhaps(cls, attempt: Attempt, owner: str, claim: str) -> "Row":
        """One of which it is not known whether it was written."""
        columns = dict.fromkeys(bookings.c.keys())
        return cls(SimpleNamespace(**columns | intention(attempt, owner, claim)))

    def taken(self, claim: str) -> "Row":
        """The same as it is if it was taken, which is not known."""
        row = copy(self)
        row.claim = claim
        return row

    def outcome_again(self) -> Booked:
        """The first outcome once more: the record, or the refusal."""
        if self._row.state == "refused":
            raise Refused(self._row.outcome, replayed=True)
        return Booked(orjson.loads(self._row.record), replayed=True)


class Rows:
    """The table of bookings. Every method: StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._room = asyncio.Semaphore(AT_ONCE)

    async def find(self, attempt: Attempt) -> Sequence[Row]:
        """The row of the same Idempotency-Key; without one, those of the same request.

        Of the latter only what is not settled, or was found and never told.
        """
        statement = select(bookings).where(bookings.c.key_id == attempt.key_id)
        if attempt.idempotency_key is not None:
            digest = _digest(attempt.idempotency_key)
            statement = statement.where(bookings.c.idempotency_digest == digest)
        else:
            untold = and_(
                bookings.c.state == "done",
                bookings.c.outcome == FOUND,
                bookings.c.record.is_not(None),
            )
            statement = statement.where(
                bookings.c.idempotency_digest.is_(None),
                bookings.c.fingerprint == attempt.fingerprint,
                or_(bookings.c.state.in_(BETWEEN), untold),
            )
        return await self._read(statement.order_by(bookings.c.id))

    async def read(self, row: Row) -> Row | None:
        """The same as it is now; None where it is gone."""
        same = bookings.c.reference.is_not_distinct_from(row.reference or None)
        found = await self._read(select(bookings).where(bookings.c.id == row.id, same))
        return found[0] if found else None

    async def between(self) -> Sequence[Row]:
        """All that is under way or not known, the oldest first."""
        wanted = select(bookings).where(bookings.c.state.in_(BETWEEN))
        return await self._read(wanted.order_by(bookings.c.id))

    async def insert(self, attempt: Attempt, owner: str, claim: str, *, waits: bool) -> Row | None:
        """A new row of what is intended; or another that is in the way.

        Over what is not known the time counts as taken: the row is refused then. With `waits` what
        is under way for the vet at that time is in the way; always so is the very same request, as
        the two could be taken for one another. None where another call with the same key was
        quicker.
        """
        values = intention(attempt, owner, claim)

        async def inserted(connection: AsyncConnection) -> Row:
            await _take_turn(connection, attempt.draft.vet_id)
            others = await _overlapping(connection, values)
            if any(each.state == "unknown" for each in others):
                if attempt.idempotency_key is None:
                    raise Refused(SlotTaken.__name__, replayed=False)
                return await _inserted(connection, values | refused(SlotTaken.__name__))
            same = (each for each in others if each.fingerprint == attempt.fingerprint)
            first = next(iter(others) if waits else same, None)
            return await _inserted(connection, values) if first is None else first

        try:
            return await self._run(inserted)
        except IntegrityError:
            return None

    async def restore(self, row: Row, outcome: Mapping[str, Any]) -> bool:
        """Write what came of a row that is gone; whether there is room for its key."""
        values = {name: getattr(row, name) for name in _KEPT_WHEN_GONE}
        values["idempotency_digest"] = row.digest
        restored = insert(bookings).values(values | dict(outcome))
        try:
            await self._run(lambda connection: connection.execute(restored))
        except IntegrityError:
            return False
        return True

    async def take(self, row: Row, owner: str, claim: str) -> Row | None:
        """The row, if it is still as it was read: from now on it is the owner's, and not known."""
        change = (
            update(bookings)
            .where(_unchanged(row), bookings.c.state == row.state)
            .values(owner=owner, claim=claim, state="unknown")
        )

        async def taken(connection: AsyncConnection) -> Row | None:
            if not await _changed(connection, change):
                return None
            found = await connection.execute(select(bookings).where(bookings.c.id == row.id))
            return Row(found.one(), mine=True)

        return await self._run(taken)

    async def write(self, row: Row, outcome: Outcome) -> bool:
        """Whether the row was still its claim's, and is now as told; what is settled stays."""
        this = and_(_unchanged(row), bookings.c.state.not_in(SETTLED))
        change: Any = delete(bookings).where(this)
        if outcome is not None:
            change = update(bookings).where(this).values(outcome)
        return await self._run(lambda connection: _changed(connection, change))

    async def tell(self, row: Row) -> bool:
        """Whether it is this call that tells of a booking that was found."""
        this = and_(bookings.c.id == row.id, bookings.c.outcome == FOUND)
        told = update(bookings).where(this).values(outcome=None)
        return await self._run(lambda connection: _changed(connection, told))

    async def hold(self, row: Row, record: Record, *, told: bool) -> bool | None:
        """Settle the row with this record; False where the appointment is another row's.

        None where the row is no longer its claim's.
        """
        other = bookings.alias()
        taken = exists().where(other.c.appointment_id == record.get("id"), other.c.id != row.id)
        this = and_(_unchanged(row), bookings.c.state.not_in(SETTLED))
        values = done(record) | ({} if told else {"outcome": FOUND})
        settled = update(bookings).where(this).values(values)

        async def held(connection: AsyncConnection) -> bool | None:
            await _take_turn(connection, row.vet_id or "")
            if (await connection.execute(select(taken))).scalar_one():
                return False
            return await _changed(connection, settled) or None

        return await self._run(held)

    async def abandon(self, row: Row) -> bool:
        """What becomes of a dead owner's row: what was only intended goes, all else is unknown."""
        outcome = None if row.state == "intended" else LEFT
        return await self.write(row, outcome)

    async def unknown(self) -> Sequence[tuple[str, datetime, datetime]]:
        """Vet, start and end of all that may or may not have been booked."""
        wanted = select(bookings.c.vet_id, bookings.c.starts_at, bookings.c.ends_at).where(
            bookings.c.state == "unknown", bookings.c.vet_id.is_not(None)
        )
        async with self._room, self._store.glance() as connection:
            return [(each[0], each[1], each[2]) for each in await connection.execute(wanted)]

    async def states(self) -> tuple[Mapping[str, int], datetime | None]:
        """How many rows are in each state, and since when the oldest is unknown."""
        counted = select(bookings.c.state, func.count()).group_by(bookings.c.state)
        oldest = select(func.min(bookings.c.created_at)).where(bookings.c.state == "unknown")
        async with self._room, self._store.begin() as connection:
            counts = {each[0]: each[1] for each in await connection.execute(counted)}
            since = (await connection.execute(oldest)).scalar_one_or_none()
        return dict.fromkeys((*BETWEEN, *SETTLED), 0) | counts, since

    async def purge(self, now: datetime) -> None:
        """Forget what is older than a day.

        Whose an appointment is stays known for as long as an unknown outcome may be looked up, and
        until it is over.
        """
        settled = bookings.c.state.in_(SETTLED) & (bookings.c.created_at <= now - KEPT)
        gone = settled & bookings.c.appointment_id.is_(None)
        is_over = or_(bookings.c.ends_at.is_(None), bookings.c.ends_at <= now)
        stale = (bookings.c.created_at <= now - UNKNOWN_KEPT) & is_over
        forgotten = {"idempotency_digest": None, "record": None}

        async def purged(connection: AsyncConnection) -> None:
            await connection.execute(delete(bookings).where(gone | stale))
            await connection.execute(update(bookings).where(settled).values(forgotten))

        await self._run(purged)

    async def _run(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        async with self._room:
            return await self._store.run(work)

    async def _read(self, wanted: Any) -> Sequence[Row]:
        async with self._room, self._store.glance() as connection:
            return [Row(each) for each in await connection.execute(wanted)]


def intention(attempt: Attempt, owner: str, claim: str) -> dict[str, Any]:
    """What is written before anything is sent."""
    draft = attempt.draft
    return {
        "key_id": attempt.key_id,
        "idempotency_digest": _digest(attempt.idempotency_key),
        "fingerprint": attempt.fingerprint,
        "state": "intended",
        "created_at": draft.now,
        "reference": token_hex(8),
        "vet_id": draft.vet_id,
        "starts_at": draft.scheduled_at,
        "ends_at": draft.scheduled_at + attempt.lasts,
        "draft": written(draft),
        "owner": owner,
        "claim": claim,
    }


def done(record: Record) -> dict[str, Any]:
    """What is written of a booking that was made."""
    values = _closed("done") | {"record": _kept(record), "appointment_id": record.get("id")}
    return values | {"ends_at": _end_of(record)}


def refused(error: str) -> dict[str, Any]:
    """What is written of a no."""
    return _closed("refused") | {"outcome": error, "ends_at": None}


def _closed(state: str) -> dict[str, Any]:
    return {"state": state, "owner": None, "draft": None, "outcome": None}


def _unchanged(row: Row) -> ColumnElement[bool]:
    """An id may be given again; a claim never is."""
    if row.id is None:  # it may have been written, or not
        of_request = and_(
            bookings.c.key_id == row.key_id, bookings.c.fingerprint == row.fingerprint
        )
        return and_(of_request, bookings.c.claim == row.claim)
    same = bookings.c.claim.is_not_distinct_from(row.claim)
    if row.claim is None:  # of a version that had none
        same = same & bookings.c.reference.is_not_distinct_from(row.reference or None)
    return and_(bookings.c.id == row.id, same)


async def _take_turn(connection: AsyncConnection, vet_id: str) -> None:
    """Let nobody else look or write for this vet until the transaction ends.

    It is the first statement of its transaction, so that what is read after it is not older.
    """
    number = int.from_bytes(sha256(vet_id.encode()).digest()[:4]) % TURNS
    await connection.execute(_TURN, {"number": number})


_TURN = text(
    "INSERT INTO turns (number, taken) VALUES (:number, 1)"
    " ON CONFLICT (number) DO UPDATE SET taken = (turns.taken + 1) % 1000000"
)


async def _changed(connection: AsyncConnection, change: Any) -> bool:
    result: CursorResult[Any] = await connection.execute(change)
    return result.rowcount == 1


async def _overlapping(connection: AsyncConnection, wanted: Mapping[str, Any]) -> Sequence[Row]:
    others = select(bookings).where(
        bookings.c.vet_id == wanted["vet_id"],
        bookings.c.state.in_(BETWEEN),
        bookings.c.starts_at < wanted["ends_at"],
        bookings.c.ends_at > wanted["starts_at"],
    )
    return [Row(each) for each in await connection.execute(others.order_by(bookings.c.id))]


async def _inserted(connection: AsyncConnection, values: Mapping[str, Any]) -> Row:
    result = await connection.execute(insert(bookings).values(dict(values)))
    row_id = result.inserted_primary_key[0]  # type: ignore[index]  # one row
    found = await connection.execute(select(bookings).where(bookings.c.id == row_id))
    return Row(found.one(), mine=True, fresh=True)


def _end_of(record: Record) -> datetime | None:
    """When the appointment is over; where nobody says it, when it begins."""
    with suppress(KeyError, TypeError, ValueError):
        return datetime.fromisoformat(record.get("endTime") or record["scheduledAt"])
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
