"""The rows of the ledger: what is read and written of them, each time in one transaction."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import and_, delete, exists, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.base import Record, SlotTaken
from gateway.booking.base import Attempt, Refused
from gateway.booking.row import BETWEEN, LEFT, SETTLED, STATES, Outcome, Row
from gateway.booking.statements import (
    changed,
    insert_row,
    overlapping,
    same_request,
    take_turn,
    unchanged,
)
from gateway.booking.values import FOUND, done, intention, refused
from gateway.store.base import Store
from gateway.store.tables import bookings

T = TypeVar("T")
KEPT = timedelta(hours=24)
UNKNOWN_KEPT = timedelta(days=7)
# Transactions at once: more wait here, where it is their turn, and not for one of few connections.
AT_ONCE = 2
_KEPT_WHEN_GONE = (
    *("key_id", "fingerprint", "created_at", "reference"),
    *("vet_id", "starts_at", "ends_at", "draft", "claim", "sender", "sent_at"),
)


class Rows:
    """The table of bookings. Every method: StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._room = asyncio.Semaphore(AT_ONCE)

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

        Over what is not known the time counts as taken: the row is refused then. With `waits` what
        is under way for the vet at that time is in the way; always so is the very same request, as
        the two could be taken for one another. None where another call with the same key was
        quicker.
        """
        values = intention(attempt, owner, claim)

        async def inserted(connection: AsyncConnection) -> Row:
            await take_turn(connection, attempt.draft.vet_id)
            others = await overlapping(connection, values)
            if any(each.state == "unknown" for each in others):
                if attempt.idempotency_key is None:
                    raise Refused(SlotTaken.__name__, replayed=False)
                return await insert_row(connection, values | refused(SlotTaken.__name__))
            same = (each for each in others if each.fingerprint == attempt.fingerprint)
            first = next(iter(others) if waits else same, None)
            return await insert_row(connection, values) if first is None else first

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
        return await self._run(lambda connection: changed(connection, change))

    async def tell(self, row: Row) -> bool:
        """Whether it is this call that tells of a booking that was found."""
        this = and_(bookings.c.id == row.id, bookings.c.outcome == FOUND)
        told = update(bookings).where(this).values(outcome=None)
        return await self._run(lambda connection: changed(connection, told))

    async def hold(self, row: Row, record: Record, *, told: bool) -> bool | None:
        """Settle the row with this record; False where the appointment is another row's.

        None where the row is no longer its claim's.
        """
        other = bookings.alias()
        taken = exists().where(other.c.appointment_id == record.get("id"), other.c.id != row.id)
        this = and_(unchanged(row), bookings.c.state.not_in(SETTLED))
        values = done(record) | ({} if told else {"outcome": FOUND})
        settled = update(bookings).where(this).values(values)

        async def held(connection: AsyncConnection) -> bool | None:
            await take_turn(connection, row.vet_id or "")
            if (await connection.execute(select(taken))).scalar_one():
                return False
            return await changed(connection, settled) or None

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
        state = bookings.c.state
        counted = select(state, func.count(), func.min(bookings.c.created_at)).group_by(state)
        async with self._room, self._store.glance() as connection:
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

        await self._run(purged)

    async def _run(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        async with self._room:
            return await self._store.run(work)

    async def _read(self, wanted: Any) -> Sequence[Row]:
        async with self._room, self._store.glance() as connection:
            return [Row(each) for each in await connection.execute(wanted)]
