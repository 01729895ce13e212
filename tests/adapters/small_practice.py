"""The small practice on four kinds of server, as the conformance suite wants it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, time, timedelta
from pathlib import Path
from time import monotonic

from adapters.base import Adapter, AdapterOptions
from adapters.conformance import Place
from adapters.ids.seal import SealedIds
from adapters.sql.adapter import SqlAdapter
from adapters.wrappers.cache import Cached
from adapters.wrappers.guard import Guarded, Limits
from adapters.wrappers.memory import LocalMemory
from gateway.backend import remembered, shapes
from gateway.settings import Settings
from tests.adapters.ailing import Ailing, AilingFile, relayed
from tests.adapters.clinic import SECRET
from tests.adapters.sample_practice import (
    SqlPractice,
    key,
    place,
)
from tests.adapters.servers import by_odbc
from tests.adapters.waits import Waits
from tests.races.practice import HOURS, practice
from tests.races.practice import Practice as Made

ROWS, FIRST = 120, 100_000
_OLD = datetime(2025, 9, 1, 9)  # noqa: DTZ001 - the clock on the wall


def kept_rows() -> tuple[str, ...]:
    """Enough rows that pages differ in their length, of what no test changes."""
    numbers = range(FIRST, FIRST + ROWS)
    return (
        _insert("patient", [f"({n}, {n}, 'Kit')" for n in numbers]),
        _insert("kind", [f"({n}, 'Kind {n}', 30)" for n in numbers[:60]]),
        _insert(
            "consultation (appointment, patient, vet, begun)",
            [f"({n}, {n}, 1, '{at}')" for n, at in _days()],
        ),
        _insert("invoice (client, number, total)", [f"({n}, 'F{n}', 5)" for n in numbers]),
        _insert("line (invoice, label, total)", [f"({n - FIRST}, 'Visit', 5)" for n in numbers]),
        _insert("payment (invoice, amount)", [f"({n - FIRST}, 5)" for n in numbers]),
        _insert("stock (name, quantity, least)", [f"('Item', {n - FIRST}, 40)" for n in numbers]),
    )


def _changing() -> tuple[str, ...]:
    """Take away what tests add, and put back what they change."""
    numbers = range(FIRST, FIRST + ROWS)
    tables = ("hours", "absence", "journal", "appointment", "attendance", "client")
    return (
        *(f"DELETE FROM {each}" for each in tables),
        HOURS,
        _insert("client", [f"({n}, 'Cy', 'Cole', '{at}')" for n, at in _days()]),
        _insert(
            "appointment (id, vet, kind, starts, ends, state, urgent, made)",
            [
                f"({n}, 1, 2, '{at}', '{at + timedelta(minutes=30)}', 'DONE', FALSE, '{at}')"
                for n, at in _days()
            ],
        ),
        _insert("attendance (appointment, patient, client)", [f"({n}, {n}, {n})" for n in numbers]),
    )


def _days() -> Iterator[tuple[int, datetime]]:
    return ((FIRST + number, _OLD + timedelta(days=number)) for number in range(ROWS))


def _insert(into: str, rows: list[str]) -> str:
    return f"INSERT INTO {into} VALUES {', '.join(rows)}"


class SmallPractice(SqlPractice):
    """Its adapters reach the server through a port of the test's own.

    A server that says nothing at all is also asked, on another connection, to stop: two seconds.
    """

    def __init__(self, made: Made, folder: Path, ailing: Ailing, url: str, waits: Waits) -> None:
        self.slack = 0.3 if made.kind == "sqlite" else 1.8
        super().__init__(ailing, waits)
        self.made, self.url = made, url
        self._mapping = folder / "small.yaml"
        self._mapping.write_text(made.mapping)

    def open(self) -> Adapter:
        return SqlAdapter(
            AdapterOptions(
                url=self.url,
                mapping=self._mapping,
                secret=SECRET,
                shapes=shapes(),
                report=self.troubles.append,
                timeout=self.waits.read,
                booking_timeout=self.waits.booking,
                times=self.times,
            )
        )

    async def add_clients(self, count: int, *, front: bool) -> None:
        numbers = self.numbers(count, front=front)
        rows = [f"({each}, 'New', 'Noon', '2026-03-04 09:00:00')" for each in numbers]
        await self.made.run(_insert("client", rows))

    async def set_hours(self, vet: str, weekday: int, start: time, end: time) -> None:
        number = key("vets", vet)
        await self.made.run(
            f"DELETE FROM hours WHERE vet = {number}",
            f"INSERT INTO hours VALUES ({number}, {weekday}, '{start:%H:%M}', '{end:%H:%M}')",
        )

    async def add_absence(self, vet: str, start: datetime, end: datetime) -> None:
        span = f"'{self.local(start)}', '{self.local(end)}'"
        await self.made.run(
            f"INSERT INTO absence (vet, starts, ends) VALUES ({key('vets', vet)}, {span})"
        )

    async def add_appointment(self, vet: str, start: datetime, end: datetime) -> str:
        span = f"'{self.local(start)}', '{self.local(end)}'"
        made = await self.made.run(
            "INSERT INTO appointment (vet, kind, starts, ends, state, urgent)"
            f" VALUES ({key('vets', vet)}, 2, {span}, 'BOOKED', FALSE) RETURNING id"
        )
        number = made[0][0]
        await self.made.run(
            f"INSERT INTO attendance (appointment, patient, client) VALUES ({number}, 1, 1)"
        )
        return SealedIds(SECRET, "appointments").seal(number)

    async def cancel(self, appointment: str) -> None:
        number = key("appointments", appointment)
        await self.made.run(f"UPDATE appointment SET state = 'GONE' WHERE id = {number}")

    async def write_unknown_code(self) -> Place:
        await self.made.run(f"UPDATE appointment SET state = '?' WHERE id = {FIRST}")
        return place("appointments", FIRST, "status")

    async def write_zero_date(self) -> Place:
        zero = "0000-00-00 00:00:00" if self.made.kind == "mariadb" else "1900-01-01 00:00:00"
        relaxed = ("SET SESSION sql_mode = ''",) if self.made.kind == "mariadb" else ()
        await self.made.run(*relaxed, f"UPDATE client SET changed = '{zero}' WHERE id = {FIRST}")
        return place("clients", FIRST, "updatedAt")


class OdbcPractice(SmallPractice):
    """The same through an ODBC driver."""

    def __init__(self, made: Made, folder: Path, ailing: Ailing, url: str, waits: Waits) -> None:
        super().__init__(made, folder, ailing, by_odbc(url), waits)
        if made.kind == "sqlite":  # its driver takes 09:00 in a column of the type TIME for nothing
            text = made.mapping
            for name in ("opens", "closes"):
                text = text.replace(f": {name}", f": CAST({name} AS TEXT)")
            self._mapping.write_text(text)


class GuardedPractice(SmallPractice):
    """The same behind a guard."""

    def open(self) -> Adapter:
        read, booking = self.waits
        return Guarded(super().open(), Limits(timeout=read, booking_timeout=booking))


class CachedPractice(GuardedPractice):
    """And before it a memory, with the times of a gateway whose settings say nothing of them.

    To settle is to let an hour pass for the memory: longer than anything is remembered.
    """

    ahead = 0.0

    def open(self) -> Adapter:
        memory = LocalMemory(10_000, 1 << 24, clock=lambda: monotonic() + self.ahead)
        return Cached(super().open(), remembered(Settings()), memory)

    async def settle(self) -> None:
        self.ahead += 3_600


@contextmanager
def small_server(kind: str, folder: Path) -> Iterator[Made]:
    """One on that kind of server, for many tests; skips where none is given."""
    with practice(kind, folder, *kept_rows()) as made:
        yield made


@asynccontextmanager
async def small_practice(
    made: Made, folder: Path, waits: Waits, how: type[SmallPractice] = SmallPractice
) -> AsyncIterator[SmallPractice]:
    """It for one test, with the same rows for each."""
    begin, end = ("START TRANSACTION", "COMMIT") if made.kind != "sqlite" else ("BEGIN", "COMMIT")
    await made.run(begin, *_changing(), end)
    ailing, url = await _ailing(made)
    opened = how(made, folder, ailing, url, waits)
    try:
        with opened.counting():
            yield opened
    finally:
        await ailing.aclose()


async def _ailing(made: Made) -> tuple[Ailing, str]:
    """What can be done to it, and where adapters reach it."""
    if made.kind == "sqlite":
        return AilingFile(Path(made.url.removeprefix("sqlite:///"))), made.url
    return await relayed(made.url)
