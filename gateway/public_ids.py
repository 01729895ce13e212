"""The store's shelf for public ids: which key of the practice system each stands for."""

from collections.abc import Mapping, Sequence

from sqlalchemy import bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.base import BackendUnavailable
from gateway.store import Store, StoreError
from gateway.store.tables import adding, public_ids


class StoredIds:
    """An IdTable in the gateway's own store; what it cannot do is BackendUnavailable."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def remember(self, resource: str, keys: Mapping[str, str]) -> None:
        """Keep those that are not known yet."""
        try:
            known = await self.find(resource, list(keys))
            rows = [
                {"public_id": public_id, "resource": resource, "key": key}
                for public_id, key in keys.items()
                if public_id not in known
            ]
            if rows:
                await self._add(rows)
        except StoreError as error:
            raise BackendUnavailable(f"public ids cannot be kept: {error}") from error

    async def respell(self, resource: str, keys: Mapping[str, str]) -> None:
        """Keep all of them, in the place of what was kept."""
        known = await self.find(resource, list(keys))
        others = [
            {"which": public_id, "new": key}
            for public_id, key in keys.items()
            if known.get(public_id, key) != key
        ]
        changed = (
            update(public_ids)
            .where(public_ids.c.public_id == bindparam("which"))
            .where(public_ids.c.resource == resource)
            .values(key=bindparam("new"))
        )
        try:
            if others:
                rows = _in_one_order(others)
                await self._store.run(lambda connection: connection.execute(changed, rows))
        except StoreError as error:
            raise BackendUnavailable(f"public ids cannot be kept: {error}") from error
        new = {public_id: key for public_id, key in keys.items() if public_id not in known}
        if new:
            await self.remember(resource, new)

    async def find(self, resource: str, public_ids_: Sequence[str]) -> Mapping[str, str]:
        """Public id -> key, of those that are known."""
        wanted = (
            select(public_ids.c.public_id, public_ids.c.key)
            .where(public_ids.c.public_id.in_(public_ids_))
            .where(public_ids.c.resource == resource)
        )
        try:
            async with self._store.begin() as connection:
                return {row.public_id: row.key for row in await connection.execute(wanted)}
        except StoreError as error:
            raise BackendUnavailable(f"public ids cannot be looked up: {error}") from error

    async def _add(self, rows: list[dict[str, str]]) -> None:
        async def added(connection: AsyncConnection) -> None:
            # another process may have been quicker with one of them
            await connection.execute(
                adding(connection, public_ids).on_conflict_do_nothing(), _in_one_order(rows)
            )

        await self._store.run(added)


def _in_one_order(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Two processes that write the same rows do not wait for each other's."""
    return sorted(rows, key=lambda row: next(iter(row.values())))
