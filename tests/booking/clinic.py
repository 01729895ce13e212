"""A clinic of the tests whose answers they decide, and ledgers of several processes before it."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.base import Draft, Record, Watched
from gateway.booking.base import Allowance, Booked, BookingRequest
from gateway.booking.ledger import Ledger
from gateway.booking.takeover import Owners
from gateway.contract.errors import InvalidField, InvalidRequest, KeyInvalid
from gateway.contract.window import BookingWindow
from gateway.store import Store
from gateway.store.tables import bookings
from tests.heard import Heard

NOW = datetime(2026, 3, 4, 10, tzinfo=UTC)
DAY, MINUTE = timedelta(hours=24), timedelta(minutes=1)
ONE, OTHER = b"1" * 32, b"2" * 32
WINDOW = BookingWindow(horizon=3650, lead_time=0, zone=UTC)
PAST = InvalidRequest(InvalidField("scheduledAt", "must be in the future"))


class Clinic:
    """A practice system whose answers a test decides, and which remembers what it made."""

    excludes, settle = True, 0.0

    def __init__(self) -> None:
        self.answers: list[Exception] = []
        self.made: list[Record] = []
        self.lost: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.asked: list[str] = []
        self.references: list[str] = []
        self.called = asyncio.Event()

    async def create_appointment(self, draft: Draft) -> Record:
        self.asked.append("create")
        self.called.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.answers:
            raise self.answers.pop(0)
        self.made.append({"id": f"a{len(self.made)}", "reason": draft.reason})
        self.references.append(draft.reference)
        if self.lost is not None:
            error, self.lost = self.lost, None
            raise error
        return self.made[-1]

    async def find_appointments(self, draft: Draft, since: datetime) -> list[Record]:
        self.asked.append("find")
        if self.answers:
            raise self.answers.pop(0)
        return self.made

    async def find_overwritten(self, appointments: object) -> Watched:
        return Watched()


class World:
    """A ledger over a real store, a clinic, and a clock."""

    def __init__(self, store: Store, folder: Path, owners: Owners) -> None:
        self.store = store
        self.folder = folder
        self.owners = owners
        self.heard = Heard()
        self.now = NOW
        self.jumped = timedelta()
        self.ledger = self.opened()
        self.clinic = Clinic()
        self.past = self.revoked = False

    def opened(
        self,
        store: Store | None = None,
        owners: Owners | None = None,
        wait: float = 60,
        looks: float = 0,
        seen: Path | None = None,
        **more: Any,
    ) -> Ledger:
        """A ledger of the same process, or of another; after a lost answer it looks not at once."""
        return Ledger(
            store or self.store,
            owners or self.owners,
            self.heard,
            lambda: self.now,
            wait=wait,
            looks=looks,
            clock=self.steady,
            seen=seen,
            **more,
        )

    def steady(self) -> float:
        """The clock that nobody sets."""
        return (self.now - self.jumped - NOW).total_seconds()

    def jump(self, by: timedelta) -> None:
        """Somebody sets the other one."""
        self.now += by
        self.jumped += by

    async def book(
        self,
        key: str | None = "k",
        fingerprint: bytes = ONE,
        who: str = "p",
        *,
        at: timedelta = DAY,
        vet: str = "v",
        patient: str = "p",
        through: Ledger | None = None,
        most: int | None = None,
    ) -> Booked:
        attempt = BookingRequest(
            key_id=who,
            idempotency_key=key,
            fingerprint=fingerprint,
            draft=Draft(
                client_id="c", patient_id=patient, vet_id=vet, scheduled_at=NOW + at,
                appointment_type_id=None, reason="r", is_urgent=False, now=self.now,
            ),
            adapter=self.clinic,  # type: ignore[arg-type]
            lasts=timedelta(minutes=30),
            check_time=self.check,
            check_key=self.check_key,
            now=lambda: self.now,
            allowance=None if most is None else self.allowance(most),
        )  # fmt: skip
        return await (through or self.ledger).book(attempt)

    def allowance(self, most: int) -> Allowance:
        """So many bookings on the day of NOW."""
        since = NOW.replace(hour=0)
        return Allowance(most=most, since=since, until=since + DAY)

    def check(self) -> None:
        if self.past:
            raise PAST

    def check_key(self) -> None:
        if self.revoked:
            raise KeyInvalid


async def another(world: World, *, lives: bool = True) -> Owners:
    """Another process of the same machine; one that does not live has died in an instant."""
    owners = Owners(world.store, world.folder)
    await owners.start()
    if not lives:
        await slain(owners)
    return owners


async def slain(owners: Owners) -> None:
    """Its end by kill -9: no counter moves on, and the kernel lets go of its lock."""
    assert owners._lock is not None
    await owners._beats.aclose()
    os.close(owners._lock)
    owners._lock = None


class Forgetful(Store):
    """The world's own store while the disk is full: it reads, and writes nothing."""

    full = False

    def __init__(self, store: Store) -> None:
        super().__init__(store.engine, store.place)

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        async with super().begin() as connection:
            if connection.dialect.name != "sqlite":
                if self.full:
                    await connection.exec_driver_sql("SET TRANSACTION READ ONLY")
                yield connection
                return
            if self.full:
                await connection.exec_driver_sql("PRAGMA query_only = 1")
            try:
                yield connection
            finally:
                await connection.exec_driver_sql("PRAGMA query_only = 0")


async def kept(world: World) -> list[str]:
    """The states of the rows in the ledger, the oldest first, with what is kept of a record."""
    async with world.store.begin() as connection:
        rows = await connection.execute(select(bookings).order_by(bookings.c.id))
        return [f"{row.state} {orjson.loads(row.record)['id']}" if row.record else row.state
                for row in rows]  # fmt: skip
