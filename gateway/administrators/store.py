"""The administrators in the store; every verb may raise StoreError."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.administrators.administrator import Administrator, name_key
from gateway.administrators.roles import Role
from gateway.store import Store
from gateway.store.tables import admin_sessions
from gateway.store.tables import administrators as table


class NameTaken(Exception):
    """Another administrator has that name."""


class LastAdmin(Exception):
    """Nobody else has the role admin: without one no key can be made any more."""


class PasswordChanged(Exception):
    """Somebody has set another password since this one was looked at."""


class NoSuchAdministrator(LookupError):
    """Nobody has that id."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An administrator, and what is kept of the password: "" where none lets in."""

    administrator: Administrator
    password: str


class AdministratorStore:
    """Adds, finds, changes and removes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(self) -> Sequence[Administrator]:
        """All of them, by name."""
        async with self._store.begin() as connection:
            rows = await connection.execute(select(table).order_by(table.c.name_key))
            return [read(row) for row in rows]

    async def count(self) -> int:
        """How many there are."""
        async with self._store.glance() as connection:
            found = await connection.execute(select(func.count()).select_from(table))
            return int(found.scalar_one())

    async def find(self, name: str) -> Kept | None:
        """Whoever has that name, however it is spelt."""
        return await self._one(table.c.name_key == name_key(name))

    async def get(self, administrator_id: str) -> Kept | None:
        """Whoever has that id."""
        return await self._one(table.c.id == administrator_id)

    async def _one(self, wanted: Any) -> Kept | None:
        async with self._store.begin() as connection:
            row = (await connection.execute(select(table).where(wanted))).one_or_none()
        return None if row is None else Kept(read(row), row.password)

    async def add(
        self, name: str, role: Role, password: str, now: datetime, *, one_time: bool
    ) -> Administrator:
        """Somebody new, with what is kept of a password; NameTaken."""
        made = Administrator(
            id=str(uuid4()), name=name, role=role, one_time=one_time, created_at=now
        )
        row = {
            "id": made.id,
            "name": name,
            "name_key": name_key(name),
            "role": role.value,
            "password": password,
            "one_time": int(one_time),
            "created_at": now,
        }
        try:
            async with self._store.begin() as connection:
                await connection.execute(insert(table).values(row))
        except IntegrityError as error:
            raise NameTaken(name) from error
        return made

    async def set_password(
        self,
        administrator_id: str,
        password: str,
        *,
        one_time: bool,
        instead_of: str | None = None,
        role: Role | None = None,
    ) -> None:
        """Another one from now on; whoever is signed in with the one before it no longer is.

        With it another role, where one is given; else LastAdmin, and neither is changed.
        NoSuchAdministrator; PasswordChanged where it was to be set `instead_of` one, by what is
        kept of that, and another one is in its place.
        """

        async def changed(connection: AsyncConnection) -> None:
            if instead_of is not None:
                await proved(connection, administrator_id, instead_of)
            values = {"password": password, "one_time": int(one_time)}
            if role is not None:
                await _hold_admins(connection)
                values["role"] = role.value
            await _change(connection, administrator_id, values)
            if role is not None:
                await _check_one_is_left(connection)
            await _sign_out(connection, administrator_id)

        await self._store.run(changed)

    async def use_up(self, administrator_id: str, kept: str) -> bool:
        """Whether a password that counts once was still to be used; from now on it is not."""
        used = (
            update(table)
            .where(table.c.id == administrator_id, table.c.password == kept)
            .values(password="")  # nosec B106 - none that lets anybody in
        )
        async with self._store.begin() as connection:
            return (await connection.execute(used)).rowcount == 1

    async def set_role(self, administrator_id: str, role: Role) -> None:
        """Another role from now on; NoSuchAdministrator, LastAdmin."""

        async def changed(connection: AsyncConnection) -> None:
            await _hold_admins(connection)
            await _change(connection, administrator_id, {"role": role.value})
            await _check_one_is_left(connection)

        await self._store.run(changed)

    async def remove(self, administrator_id: str) -> None:
        """Gone, and signed out; NoSuchAdministrator, LastAdmin."""

        async def removed(connection: AsyncConnection) -> None:
            await _hold_admins(connection)
            await _sign_out(connection, administrator_id)
            gone = await connection.execute(delete(table).where(table.c.id == administrator_id))
            if gone.rowcount == 0:
                raise NoSuchAdministrator(administrator_id)
            await _check_one_is_left(connection)

        await self._store.run(removed)


async def proved(connection: AsyncConnection, administrator_id: str, kept: str) -> None:
    """That password is still theirs, to the end of the transaction; else PasswordChanged."""
    same = update(table).where(table.c.id == administrator_id, table.c.password == kept)
    if (await connection.execute(same.values(password=kept))).rowcount == 0:
        raise PasswordChanged


async def _change(
    connection: AsyncConnection, administrator_id: str, values: dict[str, Any]
) -> None:
    changed = update(table).where(table.c.id == administrator_id).values(values)
    if (await connection.execute(changed)).rowcount == 0:
        raise NoSuchAdministrator(administrator_id)


async def _sign_out(connection: AsyncConnection, administrator_id: str) -> None:
    gone = admin_sessions.c.administrator_id == administrator_id
    await connection.execute(delete(admin_sessions).where(gone))


_admins = select(table.c.id).where(table.c.role == Role.ADMIN.value).order_by(table.c.id)


async def _hold_admins(connection: AsyncConnection) -> None:
    """Whoever takes one of them away too waits, and counts those who are left then."""
    await connection.execute(_admins.with_for_update())


async def _check_one_is_left(connection: AsyncConnection) -> None:
    if (await connection.execute(_admins.limit(1))).first() is None:
        raise LastAdmin


def read(row: Any) -> Administrator:
    """The administrator in a row of the table."""
    return Administrator(
        id=row.id,
        name=row.name,
        role=Role(row.role),
        one_time=bool(row.one_time),
        created_at=row.created_at,
        signed_in_at=row.signed_in_at,
    )
