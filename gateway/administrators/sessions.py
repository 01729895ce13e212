"""Who is signed in: kept in the store, so that it outlasts a restart and can be ended anywhere."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import uuid4

from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.administrators.administrator import Administrator
from gateway.administrators.store import proved, read
from gateway.store import Store
from gateway.store.tables import admin_sessions as table
from gateway.store.tables import administrators

# A session ends so long after it began, and so long after it was last used.
LASTS = timedelta(hours=12)
IDLE = timedelta(minutes=30)
# Use within this time is not written anew.
NOTED_EVERY = timedelta(minutes=1)
_LONGEST_AGENT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A session of an administrator; `id` names it, but opens nothing."""

    id: str
    administrator: Administrator
    data: Mapping[str, Any]
    created_at: datetime
    seen_at: datetime
    address: str
    agent: str


def digest(token: str) -> bytes:
    """What is kept of the text that a browser holds."""
    return sha256(token.encode()).digest()


class SessionStore:
    """Begins, finds and ends sessions; every verb may raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def begin(
        self,
        administrator_id: str,
        password: str,
        data: Mapping[str, Any],
        now: datetime,
        address: str,
        agent: str,
    ) -> str:
        """A new one; the text for the browser, which is kept nowhere. Those that are over go.

        PasswordChanged where `password` is no longer what is kept of theirs.
        """
        token = secrets.token_urlsafe(32)
        row = {
            "digest": digest(token),
            "id": str(uuid4()),
            "administrator_id": administrator_id,
            "data": json.dumps(data),
            "created_at": now,
            "seen_at": now,
            "address": address,
            "agent": agent[:_LONGEST_AGENT],
        }
        over = (table.c.created_at <= now - LASTS) | (table.c.seen_at <= now - IDLE)
        signed_in = administrators.c.id == administrator_id

        async def begun(connection: AsyncConnection) -> None:
            await proved(connection, administrator_id, password)
            await connection.execute(
                update(administrators).where(signed_in).values(signed_in_at=now)
            )
            await connection.execute(delete(table).where(over))
            await connection.execute(insert(table).values(row))

        await self._store.run(begun)
        return token

    async def find(self, token: str, now: datetime, *, is_use: bool = True) -> SignedIn | None:
        """The session, unless it is over; that it is used now is noted where it `is_use`."""
        at = table.c.digest == digest(token)
        async with self._store.begin() as connection:
            row = (await connection.execute(_joined().where(at, *_lasting(now)))).one_or_none()
            if row is None:
                return None
            if is_use and now - row.seen_at >= NOTED_EVERY:
                await connection.execute(update(table).where(at).values(seen_at=now))
        return _read(row)

    async def save(self, token: str, data: Mapping[str, Any]) -> None:
        """Keep other data; of a session that is over, nothing."""
        changed = update(table).where(table.c.digest == digest(token))
        async with self._store.begin() as connection:
            await connection.execute(changed.values(data=json.dumps(data)))

    async def end(self, token: str) -> None:
        """That one."""
        async with self._store.begin() as connection:
            await connection.execute(delete(table).where(table.c.digest == digest(token)))

    async def end_one(self, session_id: str, *, of: str | None = None) -> bool:
        """The one with that id, if it is of that administrator; whether there was one."""
        gone = delete(table).where(table.c.id == session_id)
        if of is not None:
            gone = gone.where(table.c.administrator_id == of)
        async with self._store.begin() as connection:
            return (await connection.execute(gone)).rowcount == 1

    async def end_all(self) -> int:
        """Everybody's; how many there were."""
        async with self._store.begin() as connection:
            return (await connection.execute(delete(table))).rowcount

    async def list(self, now: datetime, *, of: str | None = None) -> Sequence[SignedIn]:
        """Those that are not over, the newest first; of one administrator or of all."""
        wanted = _joined().where(*_lasting(now)).order_by(table.c.created_at.desc())
        if of is not None:
            wanted = wanted.where(table.c.administrator_id == of)
        async with self._store.begin() as connection:
            return [_read(row) for row in await connection.execute(wanted)]


def _lasting(now: datetime) -> tuple[Any, Any]:
    return table.c.created_at > now - LASTS, table.c.seen_at > now - IDLE


def _joined() -> Any:
    session = [
        table.c.id.label("session_id"),
        table.c.data,
        table.c.created_at.label("begun_at"),
        table.c.seen_at,
        table.c.address,
        table.c.agent,
    ]
    return select(administrators, *session).join(
        administrators, administrators.c.id == table.c.administrator_id
    )


def _read(row: Row[Any]) -> SignedIn:
    return SignedIn(
        id=row.session_id,
        administrator=read(row),
        data=json.loads(row.data),
        created_at=row.begun_at,
        seen_at=row.seen_at,
        address=row.address,
        agent=row.agent,
    )
