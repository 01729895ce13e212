"""The store's shelf for the times of appointments that the practice system's clock cannot tell."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.base import BackendUnavailable
from gateway.store import Store, StoreError
from gateway.store.tables import adding, booked_times


class StoredTimes:
    """A BookedTimes in the gateway's own store; what it cannot do is BackendUnavailable.

    They are kept for good: a partner may ask for an appointment years later.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def remember(self, appointment: str, begins: datetime, ends: datetime) -> None:
        """Keep it, where it is not known yet."""
        row = {"appointment_id": appointment, "starts_at": begins, "ends_at": ends}

        async def added(connection: AsyncConnection) -> None:
            new = adding(connection, booked_times).on_conflict_do_nothing()
            await connection.execute(new, row)

        try:
            await self._store.run(added)
        except StoreError as error:
            raise BackendUnavailable(f"a booked time cannot be kept: {error}") from error

    async def find(self, appointments: Sequence[str]) -> Mapping[str, tuple[datetime, datetime]]:
        """Those that are known."""
        wanted = select(booked_times).where(booked_times.c.appointment_id.in_(appointments))
        try:
            async with self._store.begin() as connection:
                rows = (await connection.execute(wanted)).all()
        except StoreError as error:
            raise BackendUnavailable(f"booked times cannot be looked up: {error}") from error
        return {row.appointment_id: (row.starts_at, row.ends_at) for row in rows}
