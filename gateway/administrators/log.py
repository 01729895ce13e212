"""Keeps deeds in the store for the panel's pages; the audit's chains hold the same, sealed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from msgspec import convert
from sqlalchemy import delete, func, insert, select

from gateway.store import Store
from gateway.store.engine import AsyncConnection
from gateway.store.tables import admin_deeds as table
from gateway.store.tables import members

DONE, FAILED = "done", "failed"
LOOKED = "record looked at"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """Who did what to what, without secrets; `number` is its place in the log, 0 before that."""

    at: datetime
    who: str
    deed: str
    subject: str = ""
    outcome: str = DONE
    details: Mapping[str, Any]
    number: int = 0


@dataclass(frozen=True, slots=True)
class Looks:
    """How often somebody looked at a real record, first and last."""

    who: str
    times: int
    first: datetime
    last: datetime


class DeedLog:
    """The deeds in the store; every method may raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, deed: Deed) -> None:
        await self._store.run(lambda connection: self.enter(connection, deed))

    @staticmethod
    async def enter(connection: AsyncConnection, deed: Deed) -> None:
        """Adds a deed within a transaction."""
        row = asdict(deed) | {"details": json.dumps(deed.details)}
        del row["number"]
        await connection.execute(insert(table).values(row))

    async def last(
        self,
        most: int,
        *,
        subject: str | None = None,
        deeds: Sequence[str] = (),
        who: str = "",
        before: int | None = None,
    ) -> Sequence[Deed]:
        """Returns the newest deeds first, of one subject, some kinds or one name where given.

        Begins below the number `before`, where given.
        """
        statement = select(table).order_by(table.c.id.desc()).limit(most)
        if subject is not None:
            statement = statement.where(table.c.subject == subject)
        if deeds:
            statement = statement.where(table.c.deed.in_(deeds))
        if who:
            statement = statement.where(table.c.who == who)
        if before is not None:
            statement = statement.where(table.c.id < before)
        return [
            convert(members(row) | {"details": json.loads(row.details), "number": row.id}, Deed)
            for row in await self._store.rows(statement)
        ]

    async def forget(self, before: date) -> None:
        """Deletes the deeds before that day, in UTC, which the audit has dropped too."""
        await self._store.change(delete(table).where(table.c.at < _begin(before)))

    async def looks(
        self, resource: str, record: str, since: date | None = None, until: date | None = None
    ) -> Sequence[Looks]:
        """Returns who looked at a record, the first to look first; both days, in UTC, count."""
        first, last = func.min(table.c.at).label("first"), func.max(table.c.at).label("last")
        statement = (
            select(table.c.who, func.count().label("times"), first, last)
            .where(table.c.subject == record, table.c.deed == LOOKED, table.c.outcome == DONE)
            .where(table.c.details == json.dumps({"resource": resource}))
            .group_by(table.c.who)
            .order_by(first, table.c.who)
        )
        if since is not None:
            statement = statement.where(table.c.at >= _begin(since))
        if until is not None and until < date.max:
            statement = statement.where(table.c.at < _begin(until + timedelta(days=1)))
        return [Looks(*row) for row in await self._store.rows(statement)]


def _begin(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
