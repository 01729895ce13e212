"""The example's cloud, as the conformance suite wants it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, time
from pathlib import Path

from yarl import URL

from adapters.base import Adapter, Trouble
from adapters.conformance import Place, Practice
from adapters.ids.seal import SealedIds
from examples.json_cloud.backend import Cloud
from examples.json_cloud.records import WEEK, ZONE, naive
from gateway.backend import shapes
from tests.adapters.ailing import Relay
from tests.adapters.clinic import NOW, SECRET
from tests.adapters.rest.cloud import connect, listening, new_cloud
from tests.adapters.shelf import Times
from tests.adapters.waits import Waits


class CloudPractice(Practice):
    """Its clients are listed in the order in which they came, so none can be put in front."""

    shapes = shapes()
    now = NOW
    zone = ZONE

    def __init__(self, cloud: Cloud, relay: Relay, url: str, folder: Path, waits: Waits) -> None:
        self.waits = waits
        self.patience = waits.read + 0.3
        self.cloud, self.relay = cloud, relay
        self.troubles: list[Trouble] = []
        self.times = Times()
        self._url, self._folder = url, folder

    def open(self) -> Adapter:
        read, booking = self.waits
        return connect(
            self._url,
            self._folder,
            troubles=self.troubles,
            timeout=read,
            booking_timeout=booking,
            times=self.times,
        )

    async def add_clients(self, count: int, *, front: bool) -> None:
        owners = self.cloud.records.owners
        first = max(owners) + 1
        for number in range(first, first + count):
            owners[number] = owners[1] | {"mail": f"new{number}@example.org"}

    async def asked(self) -> int:
        return sum(not each.endswith("/session") for each in self.cloud.calls)

    async def set_hours(self, vet: str, weekday: int, start: time, end: time) -> None:
        shift = {"day": WEEK[weekday - 1], "open": f"{start:%H:%M}", "close": f"{end:%H:%M}"}
        self.cloud.records.vets[vet.upper()]["week"] = [shift]

    async def add_absence(self, vet: str, start: datetime, end: datetime) -> None:
        away = {"vet": vet.upper(), "from": start.isoformat(), "to": end.isoformat()}
        self.cloud.records.absences.append(away)

    async def add_appointment(self, vet: str, start: datetime, end: datetime) -> str:
        number = self.cloud.desk_books(vet.upper(), start)
        self.cloud.records.visits[number]["ends_at"] = naive(end.astimezone(ZONE))
        return SealedIds(SECRET, "appointments").seal(number)

    async def cancel(self, appointment: str) -> None:
        number = SealedIds(SECRET, "appointments").unseal(appointment)
        self.cloud.records.visits[number]["state"] = "cancelled"

    async def write_unknown_code(self) -> Place:
        self.cloud.records.visits[7]["state"] = "?"
        return Place("appointments", SealedIds(SECRET, "appointments").seal(7), "status")

    async def write_unreadable(self) -> Place:
        self.cloud.records.animals[7]["born"] = "2020-02-31 00:00:00"
        return Place("patients", SealedIds(SECRET, "patients").seal(7), "birthDate")

    async def write_zero_date(self) -> Place:
        self.cloud.records.animals[8]["born"] = "0000-00-00 00:00:00"
        return Place("patients", SealedIds(SECRET, "patients").seal(8), "birthDate")

    async def stop(self) -> None:
        await self.relay.stop()

    async def slow(self) -> None:
        await self.relay.slow()

    async def garble(self) -> None:
        await self.relay.garble()

    async def mend(self) -> None:
        await self.relay.mend()


@asynccontextmanager
async def cloud_practice(folder: Path, waits: Waits) -> AsyncIterator[CloudPractice]:
    """A new cloud, behind a port of the test's own."""
    cloud = new_cloud()
    async with listening(cloud) as address:
        there = URL(address)
        relay = Relay(there.host or "", there.port or 80)
        await relay.open()
        try:
            yield CloudPractice(cloud, relay, str(there.with_port(relay.port)), folder, waits)
        finally:
            await relay.aclose()
