"""The small practice on three kinds of server, as the conformance suite wants it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, time, timedelta
from pathlib import Path

from sqlalchemy.engine import make_url

from adapters.base import Adapter, AdapterOptions
from adapters.conformance import Place
from adapters.seal import Sealer
from adapters.sql.adapter import SqlAdapter
from gateway.backend import shapes
from tests.adapters.ailing import Ailing, AilingFile, Relay
from tests.adapters.clinic import SECRET
from tests.adapters.sample_practice import (
    BOOKING_TIMEOUT,
    READ_TIMEOUT,
    SqlPractice,
    key,
    place,
)
from tests.races.practice import Practice as Made
from tests.races.practice import practice

PORTS = {"postgresql": 5432, "mariadb": 3306}
ROWS = 120
_OLD = datetime(2025, 9, 1, 9)


def _more() -> tuple[str, ...]:
    """Enough rows of everything that pages differ in their length."""
    numbers = range(10, 10 + ROWS)
    starts = {each: _OLD + timedelta(days=each) for each in numbers}
    return (
        _insert("client", [f"({n}, 'Cy', 'Cole', '{starts[n]}')" for n in numbers]),
        _insert("patient", [f"({n}, {n}, 'Kit')" for n in numbers]),
        _insert("kind", [f"({n}, 'Kind {n}', 30)" for n in numbers]),
        _insert(
            "appointment (id, vet, kind, starts, ends, state, urgent, made)",
            [
                f"({n}, 1, 2, '{at}', '{at + timedelta(minutes=30)}', 'DONE', FALSE, '{at}')"
                for n, at in starts.items()
            ],
        ),
        _insert("attendance (appointment, patient, client)", [f"({n}, {n}, {n})" for n in numbers]),
        _insert(
            "consultation (appointment, patient, vet, begun)",
            [f"({n}, {n}, 1, '{at}')" for n, at in starts.items()],
        ),
        _insert("invoice (client, number, total)", [f"({n}, 'F{n}', 5)" for n in numbers]),
        _insert("line (invoice, label, total)", [f"({n - 9}, 'Visit', 5)" for n in numbers]),
        _insert("payment (invoice, amount)", [f"({n - 9}, 5)" for n in numbers]),
        _insert("stock (name, quantity, least)", [f"('Item {n}', {n}, 40)" for n in numbers]),
    )


def _insert(into: str, rows: list[str]) -> str:
    return f"INSERT INTO {into} VALUES {', '.join(rows)}"


class SmallPractice(SqlPractice):
    """Its adapters reach the server through a port of the test's own."""

    def __init__(self, made: Made, folder: Path, ailing: Ailing, url: str) -> None:
        super().__init__(ailing)
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
                timeout=READ_TIMEOUT,
                booking_timeout=BOOKING_TIMEOUT,
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
        return Sealer(SECRET, "appointments").seal(number)

    async def cancel(self, appointment: str) -> None:
        number = key("appointments", appointment)
        await self.made.run(f"UPDATE appointment SET state = 'GONE' WHERE id = {number}")

    async def write_unknown_code(self) -> Place:
        await self.made.run("UPDATE appointment SET state = '?' WHERE id = 20")
        return place("appointments", 20, "status")

    async def write_zero_date(self) -> Place:
        zero = "0000-00-00 00:00:00" if self.made.kind == "mariadb" else "1900-01-01 00:00:00"
        relaxed = ("SET SESSION sql_mode = ''",) if self.made.kind == "mariadb" else ()
        await self.made.run(*relaxed, f"UPDATE client SET changed = '{zero}' WHERE id = 20")
        return place("clients", 20, "updatedAt")


@asynccontextmanager
async def small_practice(kind: str, folder: Path) -> AsyncIterator[SmallPractice]:
    """A new one on that kind of server; skips where none is given."""
    with practice(kind, folder, *_more()) as made:
        if kind == "sqlite":
            ailing: Ailing = AilingFile(folder / "practice.db")
            url = made.url
        else:
            address = make_url(made.url)
            relay = Relay(address.host or "", address.port or PORTS[kind])
            await relay.open()
            ailing = relay
            url = address.set(host="127.0.0.1", port=relay.port).render_as_string(
                hide_password=False
            )
        opened = SmallPractice(made, folder, ailing, url)
        try:
            with opened.counting():
                yield opened
        finally:
            await ailing.aclose()
