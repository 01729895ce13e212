"""Bookings of which nobody knows, and how those ended of which nobody knew: for people to look at.

How one ended is written in the transaction that ends it, so that neither is without the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.booking.drafts import read_draft
from gateway.booking.row import Row
from gateway.store.base import Store
from gateway.store.tables import adding, bookings, resolved_bookings

KEPT = timedelta(days=7)
_LAST_WORD = ("resolved_at", "appointment_id", "told")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A booking that was sent and may or may not have been made; its time is blocked.

    `since` is when it was asked for. It `is_asked_again` while a call of its partner looks it up;
    one that is not `is_legible` can only be looked up by people.
    """

    key_id: str
    vet_id: str | None
    starts_at: datetime | None
    ends_at: datetime | None
    since: datetime
    is_asked_again: bool
    is_legible: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """How one ended: an appointment, or none and its time is free again.

    `is_told` where its partner asked again and was told; else the gateway found it out by itself.
    """

    key_id: str
    vet_id: str | None
    starts_at: datetime | None
    since: datetime
    at: datetime
    appointment_id: str | None
    is_told: bool


async def unknown(store: Store, most: int) -> Sequence[Unknown]:
    """Those of which nobody knows, the oldest first. StoreError."""
    wanted = select(bookings).where(bookings.c.state == "unknown").order_by(bookings.c.id)
    async with store.begin() as connection:
        rows = [Row(each) for each in await connection.execute(wanted.limit(most))]
    return [
        Unknown(
            key_id=row.key_id,
            vet_id=row.vet_id,
            starts_at=row.starts_at,
            ends_at=row.ends_at,
            since=row.created_at,
            is_asked_again=row.owner is not None,
            is_legible=read_draft(row.draft, row.reference) is not None,
        )
        for row in rows
    ]


async def resolved(store: Store, since: datetime, most: int) -> Sequence[Resolved]:
    """How those ended that did since then, the latest first. StoreError."""
    columns = resolved_bookings.c
    wanted = select(resolved_bookings).where(columns.resolved_at >= since)
    async with store.begin() as connection:
        rows = await connection.execute(wanted.order_by(columns.resolved_at.desc()).limit(most))
        return [
            Resolved(
                key_id=row.key_id,
                vet_id=row.vet_id,
                starts_at=row.starts_at,
                since=row.created_at,
                at=row.resolved_at,
                appointment_id=row.appointment_id,
                is_told=bool(row.told),
            )
            for row in rows
        ]


async def note(
    connection: AsyncConnection, row: Row, at: datetime, appointment: str | None, *, told: bool
) -> None:
    """How it ended; where that was said before, this is the last word."""
    statement = adding(connection, resolved_bookings).values(
        reference=_name_of(row),
        key_id=row.key_id,
        vet_id=row.vet_id,
        starts_at=row.starts_at,
        created_at=row.created_at,
        resolved_at=at,
        appointment_id=appointment,
        told=int(told),
    )
    last = {name: statement.excluded[name] for name in _LAST_WORD}
    await connection.execute(
        statement.on_conflict_do_update(index_elements=["reference"], set_=last)
    )


async def take_back(connection: AsyncConnection, row: Row) -> None:
    """What was said of its end: it is not known again."""
    said = resolved_bookings.c.reference == _name_of(row)
    await connection.execute(delete(resolved_bookings).where(said))


async def forget(connection: AsyncConnection, now: datetime) -> None:
    """What is older than a week."""
    old = resolved_bookings.c.resolved_at <= now - KEPT
    await connection.execute(delete(resolved_bookings).where(old))


def _name_of(row: Row) -> str:
    return row.reference or f"row {row.id}"
