"""Reads and writes the rows of the ledger, each time in one bounded transaction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from secrets import token_hex
from typing import Any

from sqlalchemy import Row, Select, and_, delete, exists, func, insert, or_, select, text, update
from sqlalchemy.exc import IntegrityError

from gateway.booking import base
from gateway.booking.base import Allowance, BookingRequest, LedgerRow, LostClaim, Outcome
from gateway.store.base import BoundedStore, changed
from gateway.store.engine import AsyncConnection
from gateway.store.tables import adding, bookings, resolved_bookings

# Turns that all vets share, and as many that all keys share. Each is a row, and made-up ids of vets
# must not fill the table.
TURNS = 1024
_TURN = text(
    "INSERT INTO turns (number, taken) VALUES (:number, 1)"
    " ON CONFLICT (number) DO UPDATE SET taken = (turns.taken + 1) % 1000000"
)
_row = bookings.c
_IS_BETWEEN, _IS_SETTLED = _row.state.in_(base.BETWEEN), _row.state.in_(base.SETTLED)
_IS_UNKNOWN = _row.state == "unknown"
# The rows that a request without an Idempotency-Key may find: undecided, or made and never told.
_UNTOLD = _row.idempotency_digest.is_(None) & or_(
    _IS_BETWEEN,
    and_(_row.state == "done", _row.outcome == base.FOUND, _row.record.is_not(None)),
)


class LedgerRows(BoundedStore):
    """The table of bookings. Every method raises StoreError, in time but for `insert` and `take`.

    The callers of these two must know what was written too late.
    """

    async def find(self, request: BookingRequest) -> Sequence[LedgerRow]:
        """Returns the row of the Idempotency-Key; without one, untold rows of the same request."""
        is_own, digest = _row.key_id == request.key_id, base.digest_of(request.idempotency_key)
        if digest is None:
            return await self._read(is_own, _UNTOLD, _row.fingerprint == request.fingerprint)
        # nosemgrep: digests-are-compared-in-constant-time - the database compares, in a statement
        return await self._read(is_own, _row.idempotency_digest == digest)

    async def read(self, row: LedgerRow) -> LedgerRow | None:
        """Returns the row as it is now; None where it is gone."""
        same = _row.id == row.id, _row.reference == row.reference
        return next(iter(await self._read(*same)), None)

    async def between(self, owner: str | None = None) -> Sequence[LedgerRow]:
        """Returns the rows that are under way or unknown, of one owner or all, oldest first."""
        return await self._read(_IS_BETWEEN, *([] if owner is None else [_row.owner == owner]))

    async def in_doubt(self, row: LedgerRow) -> Sequence[LedgerRow]:
        """Returns the other unknown rows for its vet at its time on which nobody works."""
        is_left = _IS_UNKNOWN & _row.owner.is_(None)
        return await self._read(_overlaps(row), is_left, _row.id != row.id)

    async def made(self, key_id: str, allowance: Allowance) -> int:
        """Returns how many bookings a key has certainly made of its allowance."""
        return int((await self.rows(_made(key_id, allowance)))[0][0])

    async def has_untold(self, key_id: str) -> bool:
        """Returns whether a request without an Idempotency-Key may find an untold booking."""
        untold = select(_row.id).where(_row.key_id == key_id, _UNTOLD).limit(1)
        return bool(await self.rows(untold))

    async def unknown(self) -> Sequence[tuple[str, datetime, datetime]]:
        """Returns vet, start and end of all that may or may not have been booked."""
        columns = select(_row.vet_id, _row.starts_at, _row.ends_at)
        return [(*row,) for row in await self.rows(columns.where(_IS_UNKNOWN))]

    async def oldest_unknown(self, most: int) -> Sequence[LedgerRow]:
        """Returns the oldest unknown rows; one that has an owner is being looked up."""
        return await self._read(_IS_UNKNOWN, most=most)

    async def latest_resolved(self, since: datetime, most: int) -> Sequence[Any]:
        """Returns the latest of the rows of resolved_bookings that were resolved since then."""
        at = resolved_bookings.c.resolved_at
        resolved = select(resolved_bookings).where(at >= since)
        return await self.rows(resolved.order_by(at.desc()).limit(most))

    async def states(self) -> tuple[Mapping[str, int], datetime | None]:
        """Returns how many rows are in each state, and since when the oldest is unknown."""
        columns = select(_row.state, func.count(), func.min(_row.created_at))
        values = {state: rest for state, *rest in await self.rows(columns.group_by(_row.state))}
        counts = {state: values.get(state, (0,))[0] for state in base.STATES}
        return counts, values.get("unknown", (0, None))[1]

    async def insert(
        self, row: LedgerRow, request: BookingRequest, *, waits: bool
    ) -> LedgerRow | None:
        """Inserts the row and returns it, or returns another that is in the way.

        In the way is what is unknown for the vet at that time; with `waits` also what is under way;
        always what a look-up without a reference could take for it, and what may use up the
        allowance. Returns None where another call with the same Idempotency-Key was faster. Raises
        LimitExceeded where the allowance is used up.
        """

        async def inserted(connection: AsyncConnection) -> LedgerRow:
            await _take_turn(connection, row.vet_id)
            undecided = await _check_allowance(connection, request)
            if undecided is not None:
                return undecided
            for other in _ledger_rows(await connection.execute(_wanted(_overlaps(row)))):
                if waits or other.state == "unknown" or other.is_like(request):
                    return other
            result = await connection.execute(insert(bookings).values(_columns(row)))
            return replace(row, id=result.inserted_primary_key[0])  # type: ignore[index]  # one row

        try:
            return await self.transact(inserted)
        except IntegrityError:
            return None

    async def take(self, row: LedgerRow, owner: str, claim: str) -> LedgerRow | None:
        """Takes the row over, as unknown; returns None where it is not as it was read."""
        values = {"owner": owner, "claim": claim, "state": "unknown"}
        change = update(bookings).where(_is_as_read(row)).values(values)
        is_taken = await self.transact(lambda connection: changed(connection, change))
        return replace(row, **values) if is_taken else None  # type: ignore[arg-type]

    async def restore(self, row: LedgerRow, outcome: Mapping[str, Any]) -> bool:
        """Writes the outcome of a row that is gone; returns False where its appointment is taken.

        Raises LostClaim where its key has another row by now. Claim and sender are new, so that
        nothing that is known of the old ones counts for it.
        """
        values = _columns(row) | {"claim": token_hex(16), "sender": token_hex(16), **outcome}
        made = outcome.get("appointment_id")

        async def restored(connection: AsyncConnection) -> bool:
            await _take_turn(connection, row.vet_id)
            if await _is_held(connection, made):
                return False
            await connection.execute(insert(bookings).values(values))
            # the process that deleted it may have noted that it was not made
            if made is None:
                noted = resolved_bookings.c.reference == row.reference
                await connection.execute(delete(resolved_bookings).where(noted))
            else:
                await _note(connection, row, outcome)
            return True

        try:
            return await self.run(restored)
        except IntegrityError as error:
            raise LostClaim from error

    async def write(self, row: LedgerRow, outcome: Outcome) -> bool:
        """Writes the outcome to the row; returns False where its appointment is another row's.

        Raises LostClaim where the row has another claim, or is settled: what is settled stays.
        """
        this = _is_claimed(row) & ~_IS_SETTLED
        change: Any = delete(bookings).where(this)
        if outcome is not None:
            change = update(bookings).where(this).values(outcome)

        async def written(connection: AsyncConnection) -> bool:
            if outcome is not None and "appointment_id" in outcome:
                await _take_turn(connection, row.vet_id)
                if await _is_held(connection, outcome["appointment_id"], but=row.id):
                    return False
            if not await changed(connection, change):
                raise LostClaim
            if row.state == "unknown" and (outcome is None or outcome["state"] in base.SETTLED):
                await _note(connection, row, outcome)
            return True

        return await self.run(written)

    async def tell(self, row: LedgerRow) -> bool:
        """Marks a booking that was found as told; returns whether this call did so."""
        this = and_(_row.id == row.id, _row.outcome == base.FOUND)
        return await self.change(update(bookings).where(this).values(outcome=None)) == 1

    async def mark_untold(self, key_id: str, appointment_id: str) -> None:
        """Marks a booking without an Idempotency-Key that was not told after all as found."""
        made = and_(_row.key_id == key_id, _row.appointment_id == appointment_id)
        this = made & _row.idempotency_digest.is_(None) & (_row.state == "done")
        await self.change(update(bookings).where(this).values(outcome=base.FOUND))

    async def abandon(self, row: LedgerRow) -> None:
        """Deletes an intended row, and makes any other unknown, unless it is not as it was read."""
        is_intended = row.state == "intended"
        change = delete(bookings) if is_intended else update(bookings).values(base.LEFT)
        await self.change(change.where(_is_as_read(row)))

    async def purge(self, now: datetime, kept: timedelta, booked_kept: timedelta) -> None:
        """Deletes outcomes older than `kept`, and what is left of bookings after `booked_kept`.

        A row of an appointment that was or may have been made stays until the appointment is over.
        """
        settled = _IS_SETTLED & (_row.created_at <= now - kept)
        gone = settled & _row.appointment_id.is_(None)
        is_over = or_(_row.ends_at.is_(None), _row.ends_at <= now)
        stale = (_row.created_at <= now - booked_kept) & is_over
        forgotten = {"idempotency_digest": None, "record": None}
        old = resolved_bookings.c.resolved_at <= now - booked_kept

        async def purged(connection: AsyncConnection) -> None:
            await connection.execute(delete(bookings).where(gone | stale))
            await connection.execute(update(bookings).where(settled).values(forgotten))
            await connection.execute(delete(resolved_bookings).where(old))

        await self.run(purged)

    async def _read(self, *which: Any, most: int | None = None) -> Sequence[LedgerRow]:
        return _ledger_rows(await self.rows(_wanted(*which).limit(most)))


def _wanted(*which: Any) -> Select[Any]:
    return select(bookings).where(*which).order_by(_row.id)


def _ledger_rows(rows: Iterable[Row[Any]]) -> Sequence[LedgerRow]:
    return [LedgerRow(**row._asdict()) for row in rows]


def _columns(row: LedgerRow) -> dict[str, Any]:
    return {name: value for name, value in asdict(row).items() if name != "id"}


def _is_claimed(row: LedgerRow) -> Any:
    """Returns a condition by the claim: an id may be given again, a claim never is."""
    is_claimed = _row.claim == row.claim
    if row.id is None:  # it may have been written, or not
        return and_(is_claimed, _row.key_id == row.key_id, _row.fingerprint == row.fingerprint)
    return and_(is_claimed, _row.id == row.id)


def _is_as_read(row: LedgerRow) -> Any:
    return _is_claimed(row) & (_row.state == row.state)


def _overlaps(row: LedgerRow) -> Any:
    """Returns a condition for what is under way or unknown for the same vet at that time."""
    is_at_once = and_(_row.starts_at < row.ends_at, _row.ends_at > row.starts_at)
    return and_(_row.vet_id == row.vet_id, _IS_BETWEEN, is_at_once)


def _of_day(key_id: str, allowance: Allowance) -> Any:
    is_asked_then = and_(_row.created_at >= allowance.since, _row.created_at < allowance.until)
    return and_(_row.key_id == key_id, is_asked_then)


def _made(key_id: str, allowance: Allowance) -> Any:
    return select(func.count()).where(_of_day(key_id, allowance), _row.state == "done")


async def _take_turn(connection: AsyncConnection, vet_id: str | None, first: int = 0) -> None:
    """Keeps others from reading or writing for this vet until the transaction ends.

    It is the first statement of its transaction, so that what is read after it is not older.
    """
    number = int.from_bytes(sha256((vet_id or "").encode()).digest()[:4]) % TURNS
    await connection.execute(_TURN, {"number": first + number})


async def _check_allowance(
    connection: AsyncConnection, request: BookingRequest
) -> LedgerRow | None:
    """Returns an undecided booking of the key that has to end first; None where there is room.

    Raises LimitExceeded where the key has made as many as it may. Where those under way or unknown
    may use up the rest, it returns the oldest under way, else the oldest unknown one.

    A key's turn is taken after a vet's, and their numbers differ, so that no two transactions
    deadlock.
    """
    key_id, allowance = request.key_id, request.allowance
    if allowance is None:
        return None
    await _take_turn(connection, key_id, first=TURNS)
    # read first: a row that is settled between the two statements counts in both, not in none
    of_day = _wanted(_of_day(key_id, allowance), _IS_BETWEEN)
    undecided = _ledger_rows(await connection.execute(of_day))
    made = int((await connection.execute(_made(key_id, allowance))).scalar_one())
    allowance.check(made, request.now())
    if made + len(undecided) < allowance.most:
        return None
    return min(undecided, key=lambda row: row.state == "unknown")


async def _is_held(
    connection: AsyncConnection, appointment: str | None, but: int | None = -1
) -> bool:
    """Returns whether a row, but that one, has the appointment; one without an id is nobody's."""
    taken = exists().where(_row.appointment_id == (appointment or ""), _row.id != but)
    return bool((await connection.execute(select(taken))).scalar_one())


async def _note(connection: AsyncConnection, row: LedgerRow, outcome: Outcome) -> None:
    """Notes how an unknown booking ended; where that was noted before, this is the last word."""
    last = {
        "resolved_at": datetime.now(UTC),
        "appointment_id": outcome and outcome.get("appointment_id"),
        "told": int(outcome is not None and outcome["outcome"] != base.FOUND),
    }
    kept = ("reference", "key_id", "vet_id", "starts_at", "created_at")
    new = last | {name: getattr(row, name) for name in kept}
    statement = adding(connection, resolved_bookings).values(new)
    await connection.execute(
        statement.on_conflict_do_update(index_elements=["reference"], set_=last)
    )
