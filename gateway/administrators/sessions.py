"""Who is signed in, and which browsers have signed in before.

Sessions are kept in the store, so that they outlast a restart and can be ended anywhere.

A known browser (a device) holds a token that lets nobody in. Wrong passwords from it are counted
apart from those of strangers, so that strangers who guess at a name do not keep its owner out
(OWASP, "Slow Down Online Guessing Attacks with Device Cookies"). What is kept of the password signs
the token: a token of somebody else, or of an earlier password, is none, and the store needs none.
"""

import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import uuid4

from msgspec import convert
from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.administrators.administrator import Administrator, Credential, prove
from gateway.store import Store
from gateway.store.tables import admin_sessions as table
from gateway.store.tables import administrators, members

# A session ends so long after it began, and so long after it was last used.
LASTS = timedelta(hours=12)
IDLE = timedelta(minutes=30)
# Use within this time is not written anew.
NOTED_EVERY = timedelta(minutes=1)
# A device's token that was not renewed by signing in for so long is none.
DEVICE_LASTS = timedelta(days=180)
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
        """Returns the token of a new session, which is kept nowhere; deletes those that are over.

        Raises PasswordChanged where `password` is no longer what is kept of theirs.
        """
        token = secrets.token_urlsafe(32)
        row = {
            "digest": _digest(token),
            "id": str(uuid4()),
            "administrator_id": administrator_id,
            "data": json.dumps(data),
            "created_at": now,
            "seen_at": now,
            "address": address,
            "agent": agent[:_LONGEST_AGENT],
        }
        over = (table.c.created_at <= now - LASTS) | (table.c.seen_at <= now - IDLE)
        theirs = administrators.c.id == administrator_id

        async def begin(connection: AsyncConnection) -> None:
            await prove(connection, administrator_id, password)
            await connection.execute(update(administrators).where(theirs).values(signed_in_at=now))
            await connection.execute(delete(table).where(over))
            await connection.execute(insert(table).values(row))

        await self._store.run(begin)
        return token

    async def find(self, token: str, now: datetime, *, is_use: bool = True) -> SignedIn | None:
        """Returns the session, unless it is over; notes where it `is_use` that it is used now."""
        same = table.c.digest == _digest(token)
        async with self._store.begin() as connection:
            row = (await connection.execute(_lasting(now).where(same))).one_or_none()
            if row is None:
                return None
            if is_use and now - row.seen_at >= NOTED_EVERY:
                await connection.execute(update(table).where(same).values(seen_at=now))
        return _read(row)

    async def save(self, token: str, data: Mapping[str, Any]) -> None:
        """Keeps other data; of a session that is over, nothing."""
        same = update(table).where(table.c.digest == _digest(token))
        await self._store.change(same.values(data=json.dumps(data)))

    async def end(self, token: str) -> None:
        await self._store.change(delete(table).where(table.c.digest == _digest(token)))

    async def end_one(self, session_id: str, *, of: str | None = None) -> bool:
        """Ends the one with that id, if it is of that administrator; returns whether it was one."""
        theirs = () if of is None else (table.c.administrator_id == of,)
        return await self._store.change(delete(table).where(table.c.id == session_id, *theirs)) == 1

    async def end_all(self) -> int:
        """Returns how many there were."""
        return await self._store.change(delete(table))

    async def list(self, now: datetime, *, of: str | None = None) -> Sequence[SignedIn]:
        """Returns those that are not over, the newest first; of one administrator or of all."""
        wanted = _lasting(now).order_by(table.c.created_at.desc())
        if of is not None:
            wanted = wanted.where(table.c.administrator_id == of)
        return [_read(row) for row in await self._store.rows(wanted)]


def device_token(administrator_id: str, password: str, now: datetime) -> str:
    """Returns a new token for whoever has just signed in; `password` is what is kept of theirs."""
    device, made_at = secrets.token_urlsafe(16), str(int(now.timestamp()))
    return f"{device}.{made_at}.{_seal(administrator_id, password, device, made_at)}"


def device_of(token: str, kept: Credential | None, now: datetime) -> str | None:
    """Returns what names the device; None where the token is not one of this administrator."""
    device, _, rest = token.partition(".")
    made_at, _, seal = rest.partition(".")
    if kept is None or not kept.password or not token.isascii() or not made_at.isdigit():
        return None
    known = _seal(kept.administrator.id, kept.password, device, made_at)
    if not hmac.compare_digest(seal, known):
        return None
    return device if now - datetime.fromtimestamp(int(made_at), UTC) < DEVICE_LASTS else None


def _seal(administrator_id: str, password: str, device: str, made_at: str) -> str:
    if not password:
        raise ValueError("nothing seals a device of somebody whom no password lets in")
    text = f"device {administrator_id} {device} {made_at}"
    return hmac.new(password.encode(), text.encode(), "sha256").hexdigest()


def _digest(token: str) -> bytes:
    return sha256(token.encode()).digest()


def _lasting(now: datetime) -> Any:
    return (
        select(administrators, table)
        .join(administrators, administrators.c.id == table.c.administrator_id)
        .where(table.c.created_at > now - LASTS, table.c.seen_at > now - IDLE)
    )


def _read(row: Row[Any]) -> SignedIn:
    # what both tables have, a row has twice
    owner = members(row)
    own = {"id": row.id_1, "created_at": row.created_at_1, "data": json.loads(row.data)}
    return convert(owner | own | {"administrator": owner}, SignedIn, strict=False)
