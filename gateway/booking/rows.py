"""The rows of the ledger: what is read and written of them, each time in one transaction."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Any, TypeVar

from sqlalchemy import and_, delete, exists, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.base import Record
from gateway.booking import unsettled
from gateway.booking.base import Allowance, Attempt
from gateway.booking.drafts import is_of_patient
from gateway.booking.room import Room
from gateway.booking.row import BETWEEN, LEFT, SETTLED, STATES, Outcome, Row
from gateway.booking.statements import (
    changed,
    check_allowance,
    has_untold,
    insert_row,
    made,
    overlapping,
    same_request,
    take_turn,
    unchanged,
)
from gateway.booking.values import FOUND, done, intention
from gateway.store.base import Store
from gateway.store.tables import bookings

T = TypeVar("T")
KEPT = timedelta(hours=24)
UNKNOWN_KEPT = timedelta(days=7)
_KEPT_WHEN_GONE = (
    *("key_id", "fingerprint", "created_at", "reference"),
    *("vet_id", "starts_at", "ends_at", "draft", "sent_at"),
)


class Rows:
    """The table of bookings. Every method: StoreError."""

    def __init__(
        self, store: Store, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._store = store
        self._now = now
        self._room = Room()

    async def find(self, attempt: Attempt) -> Sequence[Row]:
        """The row of the same Idempotency-Key; without one, those of the same request.

        Of the latter only what is not settled, or was found and never told.
        """
        return await self._read(same_request(attempt).order_by(bookings.c.id))

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

        What is not known for the vet at that time is in the way; with `waits` so is what is under
        way; always so is what a practice system without references could take for it, and what may
        use up the caller's allowance. None where another call with the same Idempotency-Key was
        quicker. LimitExceeded where the allowance is used up.
        """
        values = intention(attempt, owner, claim)

        async def inserted(connection: AsyncConnection) -> Row:
            await take_turn(connection, attempt.draft.vet_id)
            undecided = await check_allowance(connection, attempt)
            if undecided is not None:
                return undecided
            others = await overlapping(connection, values)
            in_way = (
                each
                for each in others
                if waits or each.state == "unknown" or _is_alike(each, attempt)
            )
            first = next(in_way, None)
            return await insert_row(connection, values) if first is None else first

        try:
            return await self._run(inserted)
        except IntegrityError:
            return None

    async def made(self, key_id: str, allowance: Allowance) -> int:
        """How many bookings a key has certainly made of its allowance."""
        async with self._room.taken(), self._store.glance() as connection:
            return await made(connection, key_id, allowance)

    async def has_untold(self, key_id: str) -> bool:
        """Whether a request without an Idempotency-Key may find a booking nobody was told of."""
        async with self._room.taken(), self._store.glance() as connection:
            return await has_untold(connection, key_id)

    async def in_doubt(self, row: Row) -> Sequence[Row]:
        """The others that nobody works on and nobody knows of, for its vet at its time."""
        same_time = {"vet_id": row.vet_id, "starts_at": row.starts_at, "ends_at": row.ends_at}
        async with self._room.taken(), self._store.glance() as connection:
            others = await overlapping(connection, same_time)
        return [
            each
            for each in others
            if each.state == "unknown" and each.owner is None and each.id != row.id
        ]

    async def restore(self, row: Row, outcome: Mapping[str, Any]) -> bool | None:
        """Write what came of a row that is gone; False where its key has another row by now.

        None where its appointment is another row's.
        Its claim is a new one, and its sender nobody: since when the old one is not known says
        nothing about it.
        """
        values = {name: getattr(row, name) for name in _KEPT_WHEN_GONE}
        values |= {"idempotency_digest": row.digest}
        values |= {"claim": token_hex(16), "sender": token_hex(16)}
        restored = insert(bookings).values(values | dict(outcome))

        async def write(connection: AsyncConnection) -> bool | None:
            await take_turn(connection, row.vet_id or "")
            if await _is_held(connection, outcome.get("appointment_id")):
                return None
            await connection.execute(restored)
            # whoever let it go may have said that it was not made
            made = outcome.get("appointment_id")
            if made is None:
                await unsettled.take_back(connection, row)
            else:
                await unsettled.note(connection, row, self._now(), made, told=True)
            return True

        try:
            return await self._run(write)
        except IntegrityError:
            return False

    async def take(self, row: Row, owner: str, claim: str) -> Row | None:
        """The row, if it is still as it was read: from now on it is the owner's, and not known."""
        change = (
            update(bookings)
            .where(unchanged(row), bookings.c.state == row.state)
            .values(owner=owner, claim=claim, state="unknown")
        )

        async def taken(connection: AsyncConnection) -> Row | None:
            if not await changed(connection, change):
                return None
            found = await connection.execute(select(bookings).where(bookings.c.id == row.id))
            return Row(found.one(), mine=True)

        return await self._run(taken)

    async def write(self, row: Row, outcome: Outcome) -> bool:
        """Whether the row was still its claim's, and is now as told; what is settled stays."""
        this = and_(unchanged(row), bookings.c.state.not_in(SETTLED))
        change: Any = delete(bookings).where(this)
        if outcome is not None:
            change = update(bookings).where(this).values(outcome)

        async def written(connection: AsyncConnection) -> bool:
            if not await changed(connection, change):
                return False
            if row.state == "unknown" and (outcome is None or outcome["state"] in SETTLED):
                made = None if outcome is None else outcome.get("appointment_id")
                await unsettled.note(connection, row, self._now(), made, told=bool(outcome))
            return True

        return await self._run(written)

    async def tell(self, row: Row) -> bool:
        """Whether it is this call that tells of a booking that was found."""
        this = and_(bookings.c.id == row.id, bookings.c.outcome == FOUND)
        told = update(bookings).where(this).values(outcome=None)
        return await self._run(lambda connection: changed(connection, told))

    async def mark_untold(self, key_id: str, appointment_id: str) -> None:
        """A booking without an Idempotency-Key that was not told after all: as if it was found."""
        made = and_(bookings.c.key_id == key_id, bookings.c.appointment_id == appointment_id)
        this = made & bookings.c.idempotency_digest.is_(None) & (bookings.c.state == "done")
        untold = update(bookings).where(this).values(outcome=FOUND)
        await self._run(lambda connection: connection.execute(untold))

    async def hold(self, row: Row, record: Record, *, told: bool) -> bool | None:
        """Settle the row with this record; False where the appointment is another row's.

        None where the row is no longer its claim's.
        """
        this = and_(unchanged(row), bookings.c.state.not_in(SETTLED))
        values = done(record) | ({} if told else {"outcome": FOUND})
        settled = update(bookings).where(this).values(values)

        async def held(connection: AsyncConnection) -> bool | None:
            await take_turn(connection, row.vet_id or "")
            if await _is_held(connection, record.get("id"), but=row.id):
                return False
            if not await changed(connection, settled):
                return None
            if row.state == "unknown":
                made = values["appointment_id"]
                await unsettled.note(connection, row, self._now(), made, told=told)
            return True

        return await self._run(held)

    async def of(self, owner: str) -> Sequence[Row]:
        """All that this process is at work on."""
        wanted = select(bookings).where(bookings.c.state.in_(BETWEEN), bookings.c.owner == owner)
        return await self._read(wanted.order_by(bookings.c.id))

    async def abandon(self, row: Row) -> bool:
        """What becomes of a row that nobody works on: what was intended goes, all else is unknown.

        False where it has changed since it was read.
        """
        same = and_(unchanged(row), bookings.c.state == row.state)
        change: Any = delete(bookings).where(same)
        if row.state != "intended":
            claim = row.claim or token_hex(16)  # a version that had none left it
            change = update(bookings).where(same).values(LEFT | {"claim": claim})
        return await self._run(lambda connection: changed(connection, change))

    async def unknown(self) -> Sequence[tuple[str, datetime, datetime]]:
        """Vet, start and end of all that may or may not have been booked."""
        wanted = select(bookings.c.vet_id, bookings.c.starts_at, bookings.c.ends_at).where(
            bookings.c.state == "unknown", bookings.c.vet_id.is_not(None)
        )
        async with self._room.taken(), self._store.glance() as connection:
            return [(each[0], each[1], each[2]) for each in await connection.execute(wanted)]

    async def states(self) -> tuple[Mapping[str, int], datetime | None]:
        """How many rows are in each state, and since when the oldest is unknown."""
        state = bookings.c.state
        counted = select(state, func.count(), func.min(bookings.c.created_at)).group_by(state)
        async with self._room.taken(), self._store.glance() as connection:
            found = (await connection.execute(counted)).all()
        counts = {each[0]: each[1] for each in found}
        since = next((each[2] for each in found if each[0] == "unknown"), None)
        return dict.fromkeys(STATES, 0) | counts, since

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
            await unsettled.forget(connection, now)

        await self._run(purged)

    async def _run(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        async with self._room.taken():
            return await self._store.run(work)

    async def _read(self, wanted: Any) -> Sequence[Row]:
        async with self._room.taken(), self._store.glance() as connection:
            return [Row(each) for each in await connection.execute(wanted)]


def _is_alike(row: Row, attempt: Attempt) -> bool:
    """Whether a look-up without a reference could take one of them for the other."""
    draft = attempt.draft
    at_once = row.starts_at == draft.scheduled_at and row.vet_id == draft.vet_id
    alike = at_once and is_of_patient(row.draft, draft.patient_id)
    return alike or row.fingerprint == attempt.fingerprint


async def _is_held(
    connection: AsyncConnection, appointment: str | None, but: int | None = -1
) -> bool:
    """Whether a row, but that one, has the appointment; one without an id is nobody's."""
    taken = exists().where(bookings.c.appointment_id == (appointment or ""), bookings.c.id != but)
    return bool((await connection.execute(select(taken))).scalar_one())
