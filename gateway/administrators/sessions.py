"""Keeps the sessions of administrators in the store, and recognizes their browsers.

A known browser (a device) holds a token that lets nobody in. Wrong passwords from it are counted
apart from those of strangers, so that strangers who guess at a name do not keep its owner out
(OWASP, "Slow Down Online Guessing Attacks with Device Cookies"). The token is signed with what is
kept of the password, so that it ends with the password, and the store needs no table of devices.
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

from gateway.administrators.administrator import Administrator, Credential, prove
from gateway.store import Store
from gateway.store.engine import AsyncConnection
from gateway.store.tables import admin_sessions as sessions
from gateway.store.tables import administrators as table
from gateway.store.tables import members

# A session ends this long after its beginning, or after its last use.
LASTS = timedelta(hours=12)
IDLE = timedelta(minutes=30)
# A session's use is noted at most once in this time.
NOTED_EVERY = timedelta(minutes=1)
# How long a device's token is valid; signing in renews it.
DEVICE_LASTS = timedelta(days=180)
_LONGEST_AGENT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A session of an administrator; its `id` is no secret, unlike its token."""

    id: str
    administrator: Administrator
    data: Mapping[str, Any]
    created_at: datetime
    seen_at: datetime
    address: str
    agent: str


class SessionStore:
    """The sessions in the store; every method may raise StoreError."""

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
        """Begins a session and returns its token, which is not kept; deletes ended sessions.

        Raises PasswordChanged where `password` is no longer what is kept.
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
        over = (sessions.c.created_at <= now - LASTS) | (sessions.c.seen_at <= now - IDLE)
        theirs = table.c.id == administrator_id

        async def begin(connection: AsyncConnection) -> None:
            await prove(connection, administrator_id, password)
            await connection.execute(update(table).where(theirs).values(signed_in_at=now))
            await connection.execute(delete(sessions).where(over))
            await connection.execute(insert(sessions).values(row))

        await self._store.run(begin)
        return token

    async def find(self, token: str, now: datetime, *, is_use: bool = True) -> SignedIn | None:
        """Returns the session, unless it is over; notes the time of use where it `is_use`."""
        same = sessions.c.digest == digest(token)
        async with self._store.begin() as connection:
            row = (await connection.execute(_lasting(now).where(same))).one_or_none()
            if row is None:
                return None
            if is_use and now - row.seen_at >= NOTED_EVERY:
                await connection.execute(update(sessions).where(same).values(seen_at=now))
        return _session(row)

    async def save(self, token: str, data: Mapping[str, Any]) -> None:
        """Replaces the data of a session; does nothing where the session has ended."""
        same = update(sessions).where(sessions.c.digest == digest(token))
        await self._store.change(same.values(data=json.dumps(data)))

    async def end(self, token: str) -> None:
        await self._store.change(delete(sessions).where(sessions.c.digest == digest(token)))

    async def end_one(self, session_id: str, *, of: str | None = None) -> None:
        """Ends the session with that id, if it is of that administrator, where one is given."""
        theirs = () if of is None else (sessions.c.administrator_id == of,)
        await self._store.change(delete(sessions).where(sessions.c.id == session_id, *theirs))

    async def end_all(self) -> int:
        """Ends every session; returns how many there were."""
        return await self._store.change(delete(sessions))

    async def list(self, now: datetime, *, of: str | None = None) -> Sequence[SignedIn]:
        """Returns the sessions that last, the newest first; of one administrator or of all."""
        statement = _lasting(now).order_by(sessions.c.created_at.desc())
        if of is not None:
            statement = statement.where(sessions.c.administrator_id == of)
        return [_session(row) for row in await self._store.rows(statement)]


def device_token(administrator_id: str, password: str, now: datetime) -> str:
    """Returns a new token for the browser of an administrator; `password` is what is kept."""
    device, made_at = secrets.token_urlsafe(16), str(int(now.timestamp()))
    return f"{device}.{made_at}.{_seal(administrator_id, password, device, made_at)}"


def device_of(token: str, kept: Credential | None, now: datetime) -> str | None:
    """Returns the id of the device; None where the token is not a valid one of theirs."""
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


def digest(token: str) -> bytes:
    return sha256(token.encode()).digest()


def _lasting(now: datetime) -> Any:
    return (
        select(table, sessions)
        .join(table, table.c.id == sessions.c.administrator_id)
        .where(sessions.c.created_at > now - LASTS, sessions.c.seen_at > now - IDLE)
    )


def _session(row: Row[Any]) -> SignedIn:
    # a row has the columns of both tables, those with the same name as name_1
    owner = members(row)
    own = {"id": row.id_1, "created_at": row.created_at_1, "data": json.loads(row.data)}
    return convert(owner | own | {"administrator": owner}, SignedIn, strict=False)
