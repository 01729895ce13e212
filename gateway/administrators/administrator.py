"""Keeps administrators in the store, with their roles and what is kept of their passwords."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import uuid4

from msgspec import convert
from sqlalchemy import Delete, Update, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from gateway.store import Store
from gateway.store.engine import AsyncConnection
from gateway.store.tables import admin_sessions as sessions
from gateway.store.tables import administrators as table
from gateway.store.tables import members

LONGEST_NAME = 60
_name = re.compile(r"[\w.@' +-]+").fullmatch


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
                await prove(connection, administrator_id, instead_of)
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


async def prove(connection: AsyncConnection, administrator_id: str, kept: str) -> None:
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
