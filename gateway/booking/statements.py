"""What the ledger's transactions are made of: each on a connection that its caller holds."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from sqlalchemy import ColumnElement, CursorResult, and_, exists, func, insert, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.booking.base import Allowance, Attempt
from gateway.booking.row import BETWEEN, Row
from gateway.booking.values import FOUND, digest_of
from gateway.store.tables import bookings

# The rows that a request without an Idempotency-Key may find: undecided, or made and never told.
_UNTOLD = and_(
    bookings.c.idempotency_digest.is_(None),
    or_(
        bookings.c.state.in_(BETWEEN),
        and_(
            bookings.c.state == "done",
            bookings.c.outcome == FOUND,
            bookings.c.record.is_not(None),
        ),
    ),
)
# Vets share so many turns, and keys as many: each is a row, and ids of vets that nobody has must
# not fill a table.
TURNS = 1024


def same_request(attempt: Attempt) -> Any:
    """The rows that count for the attempt, as Rows.find."""
    statement = select(bookings).where(bookings.c.key_id == attempt.key_id)
    if attempt.idempotency_key is not None:
        digest = digest_of(attempt.idempotency_key)
        return statement.where(bookings.c.idempotency_digest == digest)
    return statement.where(_UNTOLD, bookings.c.fingerprint == attempt.fingerprint)


async def has_untold(connection: AsyncConnection, key_id: str) -> bool:
    """Whether a request without an Idempotency-Key may find a booking that nobody was told of."""
    untold = exists().where(bookings.c.key_id == key_id, _UNTOLD)
    return bool((await connection.execute(select(untold))).scalar_one())


def unchanged(row: Row) -> ColumnElement[bool]:
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


async def take_turn(connection: AsyncConnection, vet_id: str) -> None:
    """Let nobody else look or write for this vet until the transaction ends.

    It is the first statement of its transaction, so that what is read after it is not older.
    """
    await connection.execute(_TURN, {"number": _number(vet_id)})


async def made(connection: AsyncConnection, key_id: str, allowance: Allowance) -> int:
    """How many bookings a key has certainly made of its allowance."""
    of_day = _of_day(key_id, allowance)
    counted = select(func.count()).where(of_day, bookings.c.state == "done")
    return int((await connection.execute(counted)).scalar_one())


async def check_allowance(connection: AsyncConnection, attempt: Attempt) -> Row | None:
    """An undecided booking of the key that has to end first; None where there is room for one more.

    LimitExceeded where the key has made as many as it may. Where those under way or unknown may
    use up the rest, the answer is one of them: the oldest under way, else the oldest unknown one.

    Each key takes its turn. The turns of keys are others than those of vets, and each is taken
    after a vet's, so that no two transactions wait for each other.
    """
    allowance = attempt.allowance
    if allowance is None:
        return None
    await connection.execute(_TURN, {"number": TURNS + _number(attempt.key_id)})
    of_day = _of_day(attempt.key_id, allowance)
    undecided = select(bookings).where(of_day, bookings.c.state.in_(BETWEEN))
    ordered = undecided.order_by(bookings.c.state == "unknown", bookings.c.id)
    # before those made: one that is settled between the two statements counts in both, not in none
    found = (await connection.execute(ordered.limit(allowance.most))).all()
    number = await made(connection, attempt.key_id, allowance)
    allowance.check(number, attempt.now())
    return Row(found[0]) if number + len(found) >= allowance.most else None


def _of_day(key_id: str, allowance: Allowance) -> ColumnElement[bool]:
    asked_at = bookings.c.created_at
    return and_(
        bookings.c.key_id == key_id, asked_at >= allowance.since, asked_at < allowance.until
    )


def _number(name: str) -> int:
    return int.from_bytes(sha256(name.encode()).digest()[:4]) % TURNS


_TURN = text(
    "INSERT INTO turns (number, taken) VALUES (:number, 1)"
    " ON CONFLICT (number) DO UPDATE SET taken = (turns.taken + 1) % 1000000"
)


async def changed(connection: AsyncConnection, change: Any) -> bool:
    """Whether there was a row to change."""
    result: CursorResult[Any] = await connection.execute(change)
    return result.rowcount == 1


async def overlapping(connection: AsyncConnection, wanted: Mapping[str, Any]) -> Sequence[Row]:
    """What is under way or not known for the same vet at that time, the oldest first."""
    others = select(bookings).where(
        bookings.c.vet_id == wanted["vet_id"],
        bookings.c.state.in_(BETWEEN),
        bookings.c.starts_at < wanted["ends_at"],
        bookings.c.ends_at > wanted["starts_at"],
    )
    return [Row(each) for each in await connection.execute(others.order_by(bookings.c.id))]


async def insert_row(connection: AsyncConnection, values: Mapping[str, Any]) -> Row:
    """The row as it is written: its claim's."""
    result = await connection.execute(insert(bookings).values(dict(values)))
    row_id = result.inserted_primary_key[0]  # type: ignore[index]  # one row
    found = await connection.execute(select(bookings).where(bookings.c.id == row_id))
    return Row(found.one(), mine=True, fresh=True)
