"""The rows of the ledger: what is read and written of them, each in one bounded transaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from secrets import token_hex
from typing import Any

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

from adapters.base import Record
from gateway.booking.base import (
    BETWEEN,
    FOUND,
    LEFT,
    SETTLED,
    STATES,
    Allowance,
    BookingRequest,
    LedgerRow,
    Outcome,
    digest_of,
    done,
)
from gateway.store.base import BoundedStore, Store
from gateway.store.tables import adding, bookings, resolved_bookings

KEPT = timedelta(hours=24)
UNKNOWN_KEPT = RESOLVED_KEPT = timedelta(days=7)
# Vets share so many turns, and keys as many: each is a row, and ids of vets that nobody has must
# not fill a table.
TURNS = 1024
_TURN = text(
    "INSERT INTO turns (number, taken) VALUES (:number, 1)"
    " ON CONFLICT (number) DO UPDATE SET taken = (turns.taken + 1) % 1000000"
)
# The rows that a request without an Idempotency-Key may find: undecided, or made and never told.
_MADE_UNTOLD = and_(
    bookings.c.state == "done", bookings.c.outcome == FOUND, bookings.c.record.is_not(None)
)
_UNTOLD = bookings.c.idempotency_digest.is_(None) & or_(bookings.c.state.in_(BETWEEN), _MADE_UNTOLD)
_KEPT_WHEN_GONE = (
    *("key_id", "idempotency_digest", "fingerprint", "created_at", "reference"),
    *("vet_id", "starts_at", "ends_at", "draft", "sent_at"),
)
_LAST_WORD = ("resolved_at", "appointment_id", "told")


class LedgerRows:
    """The table of bookings; every method raises StoreError, in time, but for `insert` and `take`.

    Whoever asks for these two has to know what they wrote too late.
    """

    def __init__(
        self, store: Store, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._store = BoundedStore(store)
        self._now = now

    async def find(self, request: BookingRequest) -> Sequence[LedgerRow]:
        """The row of the same Idempotency-Key; without one, those of the same request.

        Of the latter only what is not settled, or was found and never told.
        """
        wanted = select(bookings).where(bookings.c.key_id == request.key_id)
        if request.idempotency_key is None:
            wanted = wanted.where(_UNTOLD, bookings.c.fingerprint == request.fingerprint)
        else:
            digest = digest_of(request.idempotency_key)
            wanted = wanted.where(bookings.c.idempotency_digest == digest)
        return await self._read(wanted)

    async def read(self, row: LedgerRow) -> LedgerRow | None:
        """The same as it is now; None where it is gone."""
        same = and_(bookings.c.id == row.id, bookings.c.reference == row.reference)
        found = await self._read(select(bookings).where(same))
        return found[0] if found else None

    async def between(self, owner: str | None = None) -> Sequence[LedgerRow]:
        """All that is under way or not known, or what one process is at work on; oldest first."""
        wanted = select(bookings).where(bookings.c.state.in_(BETWEEN))
        return await self._read(
            wanted if owner is None else wanted.where(bookings.c.owner == owner)
        )

    async def in_doubt(self, row: LedgerRow) -> Sequence[LedgerRow]:
        """The others that nobody works on and nobody knows of, for its vet at its time."""
        others = await self._read(_overlapping(row))
        return [
            other
            for other in others
            if other.state == "unknown" and other.owner is None and other.id != row.id
        ]

    async def made(self, key_id: str, allowance: Allowance) -> int:
        """How many bookings a key has certainly made of its allowance."""
        return await self._store.glance(lambda connection: _made(connection, key_id, allowance))

    async def has_untold(self, key_id: str) -> bool:
        """Whether a request without an Idempotency-Key may find a booking nobody was told of."""
        untold = select(exists().where(bookings.c.key_id == key_id, _UNTOLD))
        return await self._store.glance(lambda connection: _scalar(connection, untold))

    async def unknown(self) -> Sequence[tuple[str, datetime, datetime]]:
        """Vet, start and end of all that may or may not have been booked."""
        columns = (bookings.c.vet_id, bookings.c.starts_at, bookings.c.ends_at)
        found = await self._all(select(*columns).where(bookings.c.state == "unknown"))
        return [(vet, start, end) for vet, start, end in found]

    async def states(self) -> tuple[Mapping[str, int], datetime | None]:
        """How many rows are in each state, and since when the oldest is unknown."""
        state = bookings.c.state
        counted = select(state, func.count(), func.min(bookings.c.created_at)).group_by(state)
        found = {name: (count, since) for name, count, since in await self._all(counted)}
        counts = {name: found.get(name, (0, None))[0] for name in STATES}
        return counts, found.get("unknown", (0, None))[1]

    async def insert(
        self, row: LedgerRow, request: BookingRequest, *, waits: bool
    ) -> LedgerRow | None:
        """A new row of what is intended; or another that is in the way.

        What is not known for the vet at that time is in the way; with `waits` so is what is under
        way; always so is what a practice system without references could take for it, and what may
        use up the caller's allowance. None where another call with the same Idempotency-Key was
        quicker. LimitExceeded where the allowance is used up.
        """
        columns = {name: value for name, value in asdict(row).items() if name in bookings.c}
        del columns["id"]

        async def inserted(connection: AsyncConnection) -> LedgerRow:
            await _take_turn(connection, row.vet_id)
            undecided = await _check_allowance(connection, request)
            if undecided is not None:
                return undecided
            for other in await _rows(connection, _overlapping(row)):
                if waits or other.state == "unknown" or other.is_like(request):
                    return other
            result = await connection.execute(insert(bookings).values(columns))
            row_id = result.inserted_primary_key[0]  # type: ignore[index]  # one row
            return replace(row, id=row_id, mine=True, fresh=True)

        try:
            return await self._store.transact(inserted)
        except IntegrityError:
            return None

    async def take(self, row: LedgerRow, owner: str, claim: str) -> LedgerRow | None:
        """The row, if it is still as it was read: from now on it is the owner's, and not known."""
        values = {"owner": owner, "claim": claim, "state": "unknown"}
        same = _unchanged(row) & (bookings.c.state == row.state)
        is_taken = await self._store.transact(
            lambda connection: _is_changed(connection, update(bookings).where(same).values(values))
        )
        return replace(row, **values, mine=True) if is_taken else None  # type: ignore[arg-type]

    async def restore(self, row: LedgerRow, outcome: Mapping[str, Any]) -> bool | None:
        """Write what came of a row that is gone; False where its key has another row by now.

        None where its appointment is another row's.
        Its claim is a new one, and its sender nobody: since when the old one is not known says
        nothing about it.
        """
        values = {name: getattr(row, name) for name in _KEPT_WHEN_GONE}
        values |= {"claim": token_hex(16), "sender": token_hex(16)}
        made = outcome.get("appointment_id")

        async def restored(connection: AsyncConnection) -> bool | None:
            await _take_turn(connection, row.vet_id)
            if await _is_held(connection, made):
                return None
            await connection.execute(insert(bookings).values(values | dict(outcome)))
            # whoever let it go may have said that it was not made
            if made is None:
                said = resolved_bookings.c.reference == row.reference
                await connection.execute(delete(resolved_bookings).where(said))
            else:
                await _note(connection, row, self._now(), made, told=True)
            return True

        try:
            return await self._store.run(restored)
        except IntegrityError:
            return False

    async def write(self, row: LedgerRow, outcome: Outcome) -> bool:
        """Whether the row was still its claim's, and is now as told; what is settled stays."""
        this = _unchanged(row) & bookings.c.state.not_in(SETTLED)
        change: Any = delete(bookings).where(this)
        if outcome is not None:
            change = update(bookings).where(this).values(outcome)

        async def written(connection: AsyncConnection) -> bool:
            if not await _is_changed(connection, change):
                return False
            if row.state == "unknown" and (outcome is None or outcome["state"] in SETTLED):
                made = None if outcome is None else outcome.get("appointment_id")
                await _note(connection, row, self._now(), made, told=bool(outcome))
            return True

        return await self._store.run(written)

    async def hold(self, row: LedgerRow, record: Record, *, told: bool) -> bool | None:
        """Settle the row with this record; False where the appointment is another row's.

        None where the row is no longer its claim's.
        """
        this = _unchanged(row) & bookings.c.state.not_in(SETTLED)
        values = done(record) | ({} if told else {"outcome": FOUND})
        made = values["appointment_id"]

        async def held(connection: AsyncConnection) -> bool | None:
            await _take_turn(connection, row.vet_id)
            if await _is_held(connection, made, but=row.id):
                return False
            if not await _is_changed(connection, update(bookings).where(this).values(values)):
                return None
            if row.state == "unknown":
                await _note(connection, row, self._now(), made, told=told)
            return True

        return await self._store.run(held)

    async def tell(self, row: LedgerRow) -> bool:
        """Whether it is this call that tells of a booking that was found."""
        this = and_(bookings.c.id == row.id, bookings.c.outcome == FOUND)
        return await self._change(update(bookings).where(this).values(outcome=None))

    async def mark_untold(self, key_id: str, appointment_id: str) -> None:
        """A booking without an Idempotency-Key that was not told after all: as if it was found."""
        made = and_(bookings.c.key_id == key_id, bookings.c.appointment_id == appointment_id)
        this = made & bookings.c.idempotency_digest.is_(None) & (bookings.c.state == "done")
        await self._change(update(bookings).where(this).values(outcome=FOUND))

    async def abandon(self, row: LedgerRow) -> bool:
        """What becomes of a row that nobody works on: what was intended goes, all else is unknown.

        False where it has changed since it was read.
        """
        same = _unchanged(row) & (bookings.c.state == row.state)
        if row.state == "intended":
            return await self._change(delete(bookings).where(same))
        return await self._change(update(bookings).where(same).values(LEFT))

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
        old = resolved_bookings.c.resolved_at <= now - RESOLVED_KEPT

        async def purged(connection: AsyncConnection) -> None:
            await connection.execute(delete(bookings).where(gone | stale))
            await connection.execute(update(bookings).where(settled).values(forgotten))
            await connection.execute(delete(resolved_bookings).where(old))

        await self._store.run(purged)

    async def _change(self, change: Any) -> bool:
        return await self._store.run(lambda connection: _is_changed(connection, change))

    async def _all(self, wanted: Any) -> Sequence[Any]:
        async def read(connection: AsyncConnection) -> Sequence[Any]:
            return (await connection.execute(wanted)).all()

        return await self._store.glance(read)

    async def _read(self, wanted: Any) -> Sequence[LedgerRow]:
        return await self._store.glance(lambda connection: _rows(connection, wanted))


async def _scalar(connection: AsyncConnection, wanted: Any) -> Any:
    return (await connection.execute(wanted)).scalar_one()


async def _rows(connection: AsyncConnection, wanted: Any) -> Sequence[LedgerRow]:
    found = await connection.execute(wanted.order_by(bookings.c.id))
    return [LedgerRow(**row) for row in found.mappings()]


def _unchanged(row: LedgerRow) -> ColumnElement[bool]:
    """An id may be given again; a claim never is."""
    is_claimed = bookings.c.claim == row.claim
    if row.id is None:  # it may have been written, or not
        of_request = bookings.c.fingerprint == row.fingerprint
        return and_(is_claimed, bookings.c.key_id == row.key_id, of_request)
    return and_(is_claimed, bookings.c.id == row.id)


async def _take_turn(connection: AsyncConnection, vet_id: str | None) -> None:
    """Let nobody else look or write for this vet until the transaction ends.

    It is the first statement of its transaction, so that what is read after it is not older.
    """
    await connection.execute(_TURN, {"number": _number(vet_id or "")})


async def _check_allowance(
    connection: AsyncConnection, request: BookingRequest
) -> LedgerRow | None:
    """An undecided booking of the key that has to end first; None where there is room for one more.

    LimitExceeded where the key has made as many as it may. Where those under way or unknown may
    use up the rest, the answer is one of them: the oldest under way, else the oldest unknown one.

    Each key takes its turn. The turns of keys are others than those of vets, and each is taken
    after a vet's, so that no two transactions wait for each other.
    """
    allowance = request.allowance
    if allowance is None:
        return None
    await connection.execute(_TURN, {"number": TURNS + _number(request.key_id)})
    undecided = _of_day(request.key_id, allowance) & bookings.c.state.in_(BETWEEN)
    ordered = select(bookings).where(undecided).order_by(bookings.c.state == "unknown")
    # before those made: one that is settled between the two statements counts in both, not in none
    found = await _rows(connection, ordered.limit(allowance.most))
    made = await _made(connection, request.key_id, allowance)
    allowance.check(made, request.now())
    return found[0] if made + len(found) >= allowance.most else None


async def _made(connection: AsyncConnection, key_id: str, allowance: Allowance) -> int:
    made = _of_day(key_id, allowance) & (bookings.c.state == "done")
    return int(await _scalar(connection, select(func.count()).where(made)))


def _of_day(key_id: str, allowance: Allowance) -> ColumnElement[bool]:
    asked_at = bookings.c.created_at
    return and_(
        bookings.c.key_id == key_id, asked_at >= allowance.since, asked_at < allowance.until
    )


def _number(name: str) -> int:
    return int.from_bytes(sha256(name.encode()).digest()[:4]) % TURNS


async def _is_changed(connection: AsyncConnection, change: Any) -> bool:
    """Whether there was a row to change."""
    result: CursorResult[Any] = await connection.execute(change)
    return result.rowcount == 1


def _overlapping(row: LedgerRow) -> Any:
    """What is under way or not known for the same vet at that time."""
    return select(bookings).where(
        bookings.c.vet_id == row.vet_id,
        bookings.c.state.in_(BETWEEN),
        bookings.c.starts_at < row.ends_at,
        bookings.c.ends_at > row.starts_at,
    )


async def _is_held(
    connection: AsyncConnection, appointment: str | None, but: int | None = -1
) -> bool:
    """Whether a row, but that one, has the appointment; one without an id is nobody's."""
    taken = exists().where(bookings.c.appointment_id == (appointment or ""), bookings.c.id != but)
    return bool(await _scalar(connection, select(taken)))


async def _note(
    connection: AsyncConnection, row: LedgerRow, at: datetime, made: str | None, *, told: bool
) -> None:
    """How one of unknown outcome ended; where that was said before, this is the last word."""
    statement = adding(connection, resolved_bookings).values(
        reference=row.reference,
        key_id=row.key_id,
        vet_id=row.vet_id,
        starts_at=row.starts_at,
        created_at=row.created_at,
        resolved_at=at,
        appointment_id=made,
        told=int(told),
    )
    last = {name: statement.excluded[name] for name in _LAST_WORD}
    await connection.execute(
        statement.on_conflict_do_update(index_elements=["reference"], set_=last)
    )
