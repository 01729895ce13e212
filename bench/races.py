"""`python -m bench.races`: bookings of one vet at once against the same one after another.

The ledger books through each kind of backend that is there: the sample clinic's SQLite, the cloud
of the examples over HTTP, and PostgreSQL and MariaDB where TEST_POSTGRES_URL and TEST_MARIADB_URL
name them. Ends with 1 where any takes longer at once than LIMIT times as long.
"""

import asyncio
import itertools
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

from adapters.base import Adapter, Draft, Query, Record
from adapters.sample import MAPPING, create
from adapters.wrappers.guard import Guarded, Limits
from bench.practices import EXAMPLES, made_practices
from examples.json_cloud.__main__ import HOST, configured, listening, serve
from examples.json_cloud.backend import BASE
from gateway.backend import bare_adapter_of
from gateway.booking.base import BookingRefused, BookingRequest
from gateway.booking.ledger import Ledger
from gateway.booking.line import TAKEN
from gateway.booking.takeover import Owners
from gateway.sealing import sealing_secret
from gateway.settings import load_settings
from gateway.store import open_store

LIMIT = 1.2
BOOKINGS = 40
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
# Room and patience for all of them, as this is not about shedding.
LIMITS = Limits(in_flight=2 * BOOKINGS, booking_timeout=60.0, patience=60.0)
Race = Sequence[datetime]


class _Silent:
    def report(self, event: str, error: BaseException | None = None, /, **details: Any) -> None:
        """What the ledger has to say is not what is measured here."""


class Booker:
    """Books for one vet; `asked` counts the bookings that the practice system is asked for."""

    def __init__(self, adapter: Adapter, ledger: Ledger) -> None:
        self._adapter, self._ledger, self.asked = adapter, ledger, 0
        self._number = itertools.count()
        self._create = adapter.create_appointment
        adapter.create_appointment = self._counted  # type: ignore[method-assign]

    async def _counted(self, draft: Draft) -> Record:
        self.asked += 1
        return await self._create(draft)

    async def learn(self) -> None:
        """Finds a vet, an animal and, day by day, the times that the vet has free."""
        now, guarded = datetime.now(UTC), Guarded(self._adapter, LIMITS)
        self._through = guarded

        async def some(resource: str, **values: Any) -> Sequence[Record]:
            query = Query(resource=resource, now=now, values=values)
            return (await guarded.read_many(query)).records

        self._vet = (await some("vets"))[0]["id"]
        owners = {each["id"] for each in await some("clients")}
        alive = (each for each in await some("patients") if each["status"] != "DECEASED")
        self._animal = next(each for each in alive if each["clientId"] in owners)
        self._type = (await some("appointmentTypes"))[0]["id"]
        self._free = list[datetime]()
        for ahead in range(3, 120):
            values = {"vetId": self._vet, "appointmentTypeId": self._type}
            slots = await some("slots", date=now.date() + timedelta(days=ahead), **values)
            until = now
            for start, end in ((slot["startTime"], slot["endTime"]) for slot in slots):
                if datetime.fromisoformat(start) >= until:
                    self._free.append(datetime.fromisoformat(start))
                    until = datetime.fromisoformat(end)

    def times(self, *, of_one: bool) -> Race:
        """Returns the starts of a race, none of which was asked for before."""
        count = 1 if of_one else BOOKINGS
        taken, self._free = self._free[:count], self._free[count:]
        return taken * (BOOKINGS // count)

    async def book(self, start: datetime) -> None:
        number = next(self._number)
        draft = Draft(
            client_id=self._animal["clientId"],
            patient_id=self._animal["id"],
            vet_id=self._vet,
            scheduled_at=start,
            appointment_type_id=self._type,
            reason=None,
            is_urgent=False,
            now=datetime.now(UTC),
        )
        request = BookingRequest(
            key_id=f"key {number}",
            idempotency_key=f"booking {number}",
            fingerprint=number.to_bytes(32),
            draft=draft,
            lasts=timedelta(minutes=30),
            adapter=self._through,
            check_time=lambda: None,
            check_key=lambda: None,
            now=lambda: datetime.now(UTC),
        )
        try:
            await self._ledger.book(request)
        except BookingRefused as error:
            if error.error != TAKEN:
                raise


async def seconds_of(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


async def one_by_one(booker: Booker, race: Race) -> None:
    for start in race:
        await booker.book(start)


async def at_once(booker: Booker, race: Race) -> None:
    await asyncio.gather(*map(booker.book, race))


async def compare(booker: Booker, *, of_one: bool) -> tuple[float, float, int]:
    """Returns the medians of both in seconds, and how often a race of the last round asked."""
    ways: Sequence[Callable[[Booker, Race], Awaitable[None]]] = (one_by_one, at_once)
    spent: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for way, found in zip(ways, spent, strict=True):
            booker.asked = 0
            found.append(await seconds_of(way(booker, booker.times(of_one=of_one))))
    return statistics.median(spent[0]), statistics.median(spent[1]), booker.asked


@asynccontextmanager
async def booking(configuration: Path) -> AsyncIterator[Booker]:
    """A ledger before the practice system of a configuration."""
    settings = load_settings(configuration, {})
    store = open_store(f"sqlite:///{configuration.parent}/ledger.db")
    await store.migrate()
    secret = await sealing_secret(settings, store)
    adapter = await bare_adapter_of(settings, secret, lambda trouble: None, store)
    owners = Owners(store, configuration.parent)
    await owners.start()
    ledger = Ledger(store, owners, _Silent(), lambda: datetime.now(UTC), wait=60.0)
    try:
        yield Booker(adapter, ledger)
    finally:
        await ledger.aclose()
        await owners.aclose()
        await adapter.aclose()
        await store.aclose()


@contextmanager
def sample(folder: Path) -> Iterator[Path]:
    create(folder / "clinic.db", today=datetime.now(UTC).date())
    configuration = folder / "gateway.yaml"
    backend = f"backend:\n  url: sqlite:///clinic.db\n  mapping: {MAPPING}\n"
    configuration.write_text(f"state: .\n{backend}", "utf-8")
    yield configuration


@contextmanager
def cloud(folder: Path) -> Iterator[Path]:
    taken, begun = listening(0), Event()
    address = f"http://{HOST}:{taken.getsockname()[1]}{BASE}"
    Thread(target=lambda: asyncio.run(serve(taken, begun)), daemon=True).start()
    begun.wait()
    yield configured(folder, address)


@contextmanager
def server(name: str, folder: Path) -> Iterator[Path]:
    url, day = os.environ[f"TEST_{name.upper()}_URL"], datetime.now(UTC).date()
    names = {f"race_{day:%Y%m%d}": 0.5}
    with made_practices(EXAMPLES[name], url, names, folder, keep=False) as made:
        yield made[0].folder / "gateway.yaml"


def practices(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yields the name of each kind of backend that is there, and what makes its configuration."""
    kinds: dict[str, Callable[[Path], Any]] = {"sqlite": sample, "rest": cloud}
    kinds |= {
        name: partial(server, name) for name in EXAMPLES if f"TEST_{name.upper()}_URL" in os.environ
    }
    for name, make in kinds.items():
        own = folder / name
        own.mkdir(mode=0o700)
        yield name, make(own)


async def figures(configuration: Path) -> list[tuple[str, float, float, int]]:
    async with booking(configuration) as booker:
        await booker.learn()
        await booker.book(booker.times(of_one=True)[0])  # warms up
        found = []
        for what, of_one in (("for one time", True), ("for as many times", False)):
            found.append((what, *await compare(booker, of_one=of_one)))
        return found


def main() -> None:
    """Prints a line for each kind of backend and of race."""
    is_over = False
    print(f"{BOOKINGS} bookings of one vet, medians of {ROUNDS} rounds")
    with TemporaryDirectory() as folder:
        for name, made in practices(Path(folder)):
            with made as configuration:
                for what, alone, together, asked in asyncio.run(figures(configuration)):
                    ratio = together / alone
                    is_over = is_over or ratio > LIMIT
                    print(
                        f"{name:9} {what:18} one by one {alone:6.2f} s, at once {together:6.2f} s,"
                        f" ratio {ratio:5.2f}, the practice is asked {asked} times"
                    )
    sys.exit(1 if is_over else 0)


if __name__ == "__main__":
    main()
