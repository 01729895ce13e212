"""What the ledger's transactions are made of: each on a connection that its caller holds."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from sqlalchemy import ColumnElement, CursorResult, and_, func, insert, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.booking.base import Allowance, Attempt
from gateway.booking.row import BETWEEN, Row
from gateway.booking.values import FOUND, digest_of
from gateway.store.tables import bookings

# Vets share so many turns, and keys as many: each is a row, and ids of vets that nobody has must
# not fill a table.
TURNS = 1024


def same_request(attempt: Attempt) -> Any:
    """The rows that count for the attempt, as Rows.find."""
    statement = select(bookings).where(bookings.c.key_id == attempt.key_id)
    if attempt.idempotency_key is not None:
        digest = digest_of(attempt.idempotency_key)
        return statement.where(bookings.c.idempotency_digest == digest)
    untold = and_(
        bookings.c.state == "done",
        bookings.c.outcome == FOUND,
        bookings.c.record.is_not(None),
    )
    return statement.where(
        bookings.c.idempotency_digest.is_(None),
        bookings.c.fingerprint == attempt.fingerprint,
        or_(bookings.c.state.in_(BETWEEN), untold),
    )


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
    """How many bookings a key has made, or may have made, of its allowance."""
    counted = select(func.count()).where(
        bookings.c.key_id == key_id,
        bookings.c.created_at >= allowance.since,
        bookings.c.created_at < allowance.until,
        bookings.c.state.in_((*BETWEEN, "done")),
    )
    return int((await connection.execute(counted)).scalar_one())


async def check_allowance(connection: AsyncConnection, attempt: Attempt) -> None:
    """LimitExceeded where the key may make no further booking; one key after the other.

    The turns of keys are others than those of vets, and each is taken after a vet's: nobody waits
    for two that wait for each other.
    """
    if attempt.allowance is None:
        return
    await connection.execute(_TURN, {"number": TURNS + _number(attempt.key_id)})
    number = await made(connection, attempt.key_id, attempt.allowance)
    attempt.allowance.check(number, attempt.now())


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
