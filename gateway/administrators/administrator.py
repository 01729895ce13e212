"""Keeps administrators and their sessions in the store, and recognizes their browsers.

A known browser (a device) holds a token that lets nobody in. Wrong passwords from it are counted
apart from those of strangers, so that strangers who guess at a name do not keep its owner out
(OWASP, "Slow Down Online Guessing Attacks with Device Cookies"). The token is signed with what is
kept of the password, so that it ends with the password, and the store needs no table of devices.
"""

import hmac
import json
import re
import secrets
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any
from uuid import uuid4

from msgspec import convert
from sqlalchemy import Delete, Row, Update, delete, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.store import Store
from gateway.store.tables import admin_sessions as sessions
from gateway.store.tables import administrators as table
from gateway.store.tables import members

LONGEST_NAME = 60
_name = re.compile(r"[\w.@' +-]+").fullmatch
# A session ends this long after its beginning, or after its last use.
LASTS = timedelta(hours=12)
IDLE = timedelta(minutes=30)
# A session's use is noted at most once in this time.
NOTED_EVERY = timedelta(minutes=1)
# How long a device's token is valid; signing in renews it.
DEVICE_LASTS = timedelta(days=180)
_LONGEST_AGENT = 200


class Role(StrEnum):
    """What one may do: all (`admin`), all but keys and people (`operator`), or read (`auditor`)."""

    ADMIN = "admin"
    OPERATOR = "operator"
    AUDITOR = "auditor"


class Right(StrEnum):
    """What a page or an action requires."""

    READ = "read"
    KEYS = "keys"  # make, change, rotate and revoke keys
    POLICY = "policy"  # approve or decline a waiting policy
    CHECK = "check"  # examine the practice system, verify the audit
    PEOPLE = "people"  # manage administrators and everybody's sessions


RIGHTS: Mapping[Role, frozenset[Right]] = {
    Role.ADMIN: frozenset(Right),
    Role.OPERATOR: frozenset({Right.READ, Right.POLICY, Right.CHECK}),
    Role.AUDITOR: frozenset({Right.READ}),
}


class NameTaken(Exception):
    """Another administrator has that name."""


class LastAdmin(Exception):
    """The change would remove the last administrator with the role admin, who can make keys."""


class PasswordChanged(Exception):
    """Another password was set since this one was read."""


class NoSuchAdministrator(LookupError):
    """Nobody has that id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Administrator:
    """A user of the panel; times are in UTC. With `one_time` they must choose a password next."""

    id: str
    name: str
    role: Role
    one_time: bool
    created_at: datetime
    signed_in_at: datetime | None = None

    def may(self, right: Right) -> bool:
        return right in RIGHTS[self.role]


@dataclass(frozen=True, slots=True)
class Credential:
    """An administrator, and what is kept of the password, "" where no password lets them in."""

    administrator: Administrator
    password: str


def name_of(text: str) -> str:
    """Returns the name as it is kept; raises ValueError, with the remedy, where it is not valid."""
    name = unicodedata.normalize("NFC", " ".join(text.split()))
    if not 1 <= len(name) <= LONGEST_NAME or _name(name) is None:
        raise ValueError(
            f"write a name of 1 to {LONGEST_NAME} letters, digits, blanks and . @ ' + - _"
        )
    return name


def name_key(name: str) -> str:
    """Returns what two spellings of one name have in common."""
    return unicodedata.normalize("NFKC", " ".join(name.split())).casefold()


class AdministratorStore:
    """The administrators in the store; every method may raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(self) -> Sequence[Administrator]:
        statement = select(table).order_by(table.c.name_key)
        return [_read(row) for row in await self._store.rows(statement)]

    async def find(self, name: str) -> Credential | None:
        """Returns the one with that name, however it is spelt."""
        return await self._one(table.c.name_key == name_key(name))

    async def get(self, administrator_id: str) -> Credential | None:
        return await self._one(table.c.id == administrator_id)

    async def _one(self, condition: Any) -> Credential | None:
        rows = await self._store.rows(select(table).where(condition))
        return Credential(_read(rows[0]), rows[0].password) if rows else None

    async def add(
        self, name: str, role: Role, password: str, now: datetime, *, one_time: bool
    ) -> Administrator:
        """Adds an administrator with what is kept of a password; raises NameTaken."""
        added = Administrator(
            id=str(uuid4()), name=name, role=role, one_time=one_time, created_at=now
        )
        row = asdict(added) | {"role": role.value, "one_time": int(one_time)}
        row |= {"name_key": name_key(name), "password": password}
        try:
            await self._store.change(insert(table).values(row))
        except IntegrityError as error:
            raise NameTaken(name) from error
        return added

    async def set_password(
        self,
        administrator_id: str,
        password: str,
        *,
        one_time: bool,
        instead_of: str | None = None,
        role: Role | None = None,
    ) -> None:
        """Sets what is kept of a password, and the role if given, and ends their sessions.

        Raises NoSuchAdministrator, LastAdmin, or PasswordChanged where the present password is not
        `instead_of`. Then nothing changes.
        """
        values = {"password": password, "one_time": int(one_time)}
        changed = update(table).values(values | ({} if role is None else {"role": role.value}))

        async def change(connection: AsyncConnection) -> None:
            if instead_of is not None:
                await _prove(connection, administrator_id, instead_of)
            await _alter(connection, administrator_id, changed, takes_role=role is not None)
            await _sign_out(connection, administrator_id)

        await self._store.run(change)

    async def use_up(self, administrator_id: str, kept: str) -> bool:
        """Marks a one-time password as used; returns whether it was unused."""
        used = _same(administrator_id, kept).values({table.c.password: ""})
        return await self._store.change(used) == 1

    async def set_role(self, administrator_id: str, role: Role) -> None:
        """Sets the role; raises NoSuchAdministrator, LastAdmin."""
        changed = update(table).values(role=role.value)
        await self._store.run(
            lambda connection: _alter(connection, administrator_id, changed, takes_role=True)
        )

    async def remove(self, administrator_id: str) -> None:
        """Removes one and ends their sessions; raises NoSuchAdministrator, LastAdmin."""

        async def remove(connection: AsyncConnection) -> None:
            await _sign_out(connection, administrator_id)
            await _alter(connection, administrator_id, delete(table), takes_role=True)

        await self._store.run(remove)


async def _prove(connection: AsyncConnection, administrator_id: str, kept: str) -> None:
    """Locks a password for the transaction; raises PasswordChanged where it is another."""
    result = await connection.execute(_same(administrator_id, kept).values(password=kept))
    if result.rowcount != 1:
        raise PasswordChanged


def _same(administrator_id: str, kept: str) -> Update:
    return update(table).where(table.c.id == administrator_id, table.c.password == kept)


async def _alter(
    connection: AsyncConnection, administrator_id: str, change: Update | Delete, *, takes_role: bool
) -> None:
    """Changes or deletes one row; raises LastAdmin where that would leave no admin."""
    admins = select(table.c.id).where(table.c.role == Role.ADMIN.value).order_by(table.c.id)
    if takes_role:
        # another transaction that takes one away waits here, and counts those who are left then
        await connection.execute(admins.with_for_update())
    if (await connection.execute(change.where(table.c.id == administrator_id))).rowcount == 0:
        raise NoSuchAdministrator(administrator_id)
    if takes_role and (await connection.execute(admins.limit(1))).first() is None:
        raise LastAdmin


async def _sign_out(connection: AsyncConnection, administrator_id: str) -> None:
    theirs = sessions.c.administrator_id == administrator_id
    await connection.execute(delete(sessions).where(theirs))


def _read(row: Any) -> Administrator:
    return convert(members(row), Administrator, strict=False)


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
            await _prove(connection, administrator_id, password)
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
