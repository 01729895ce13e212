"""What a record costs through the adapter, and the whole gateway, against asyncpg and orjson alone.

All ask the same PostgreSQL for the same rows by the same statement, with a few calls at once, in
turn, in one kind of event loop. The gateway is a process of its own, with its HTTP, its key, its
policy and its audit. Figures are CPU and the time on the clock; ratios are the medians of the
rounds' own, of the CPU.
"""

import asyncio
import itertools
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from shutil import copy
from typing import Any, NamedTuple

import asyncpg  # type: ignore[import-untyped]
import orjson
from sqlalchemy import Connection

from adapters.base import Query
from adapters.sql.adapter import SqlAdapter, SqlSession
from adapters.sql.engines.connection import HeardConnection
from bench.calls import Ask
from bench.load import Load
from bench.peers.farm import free_port
from bench.practices import Made, opened
from bench.servers import Server, measure
from bench.world import bench_key
from gateway.keys.store import KeyStore
from gateway.settings import load_settings
from gateway.settings.kinds import secret_text
from gateway.store import open_store

# Times the CPU of the driver alone: the adapter at most, and the whole gateway one day.
MOST, WANTED = 2.5, 2.5
CALLS, AT_ONCE, ROUNDS = 400, 8, 15
# Resources whose record is one statement.
RESOURCES = ("clients", "patients", "stock")


class Spent(NamedTuple):
    """Microseconds of a call: of the process's CPU, and on the clock."""

    cpu: float
    wall: float


class Row(NamedTuple):
    """A resource, and what its record costs in each round: alone, the adapter, the gateway."""

    resource: str
    alone: Sequence[Spent]
    adapter: Sequence[Spent]
    gateway: Sequence[Spent]

    def ratio(self, through: Sequence[Spent]) -> float:
        pairs = zip(self.alone, through, strict=True)
        return statistics.median(each.cpu / alone.cpu for alone, each in pairs)

    @property
    def is_over(self) -> bool:
        """Whether the adapter costs more than it may."""
        return self.ratio(self.adapter) > MOST


async def spent(ask: Ask) -> Spent:
    """The mean of some calls, a few at once; on the clock, what each adds."""

    async def some() -> None:
        for _ in range(CALLS // AT_ONCE):
            await ask()

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Spent(cpu / CALLS * 1e6, wall / CALLS * 1e6)


async def heard(adapter: SqlAdapter, resource: str, public_ids: Sequence[str]) -> list[Any]:
    """The statement of each record as the driver gets it: its text and its parameters."""

    async def look(session: SqlSession) -> list[Any]:
        connection: Connection = session.connection
        asked = HeardConnection(adapter.engine.opened(connection))
        for public_id in public_ids:
            await SqlSession(adapter, asked).reader(resource).one(public_id)
        kept = asked.driver.statements
        made = [kept.compiled(each, connection.dialect) for each in asked.questions]
        pairs = zip(made, asked.questions, strict=True)
        return [(each.text, each.bound(question.values)) for each, question in pairs]

    return await adapter.look(look)


async def bare(idle: list[Any], statements: Sequence[Any]) -> Ask:
    """Asks for the rows with the driver's own types, and makes JSON of them."""
    typed = []
    for text, bound in statements:
        types = (await idle[0].prepare(text)).get_parameters()
        whole = [int if each.name.startswith("int") else str for each in types]
        typed.append((text, [kind(each) for kind, each in zip(whole, bound, strict=True)]))
    turn = itertools.cycle(typed)

    async def ask() -> bytes:
        text, bound = next(turn)
        connection = idle.pop()
        row = await connection.fetchrow(text, *bound)
        idle.append(connection)
        return orjson.dumps(dict(row), default=str)

    return ask


@contextmanager
def serving(made: Made) -> Iterator[Server]:
    """The practice's gateway, beside what else opens its state."""
    configuration, port = made.folder / "bench.yaml", free_port()
    copy(made.folder / "gateway.yaml", configuration)
    with configuration.open("a") as file:
        file.write(f"listen: 127.0.0.1:{port}\noperations_listen: 127.0.0.1:0\n")
        file.write("admin_listen: 127.0.0.1:0\n")
    with Server("gateway", str(configuration), port) as server:
        yield server


async def secret_of(made: Made) -> str:
    """The secret of a new key."""
    store = open_store(f"sqlite:///{made.folder}/gateway.db")
    await store.migrate()
    secret = await KeyStore(store).add(bench_key())
    await store.aclose()
    return secret


def asked_of(server: Server, load: Load) -> Spent:
    """The mean of some calls of the gateway, as many at once."""
    wall = time.perf_counter()
    cpu = measure(server, load, CALLS)
    return Spent(cpu, (time.perf_counter() - wall) / CALLS * 1e6)


async def rows(made: Made) -> list[Row]:
    """The figures of every resource."""
    now, found = datetime.now(UTC), list[Row]()
    settings = load_settings(made.folder / "gateway.yaml", {})
    url = secret_text(settings.backend.url)
    idle = [await asyncpg.connect(url) for _ in range(AT_ONCE)]
    secret = await secret_of(made)
    async with opened(made) as adapter:
        with serving(made) as server:
            for resource in RESOURCES:
                page = await adapter.read_many(Query(resource=resource, now=now, limit=50))
                ids = [each["id"] for each in page.records]
                turn = itertools.cycle([Query(resource=resource, now=now, id=each) for each in ids])
                alone = await bare(idle, await heard(adapter, resource, ids))  # type: ignore[arg-type]
                through: Ask = lambda turn=turn: adapter.read_one(next(turn))  # type: ignore[misc]  # noqa: E731
                paths = [f"/api/v1/{resource}/{each}" for each in ids]
                load = Load(server.port, paths, secret, AT_ONCE, waits=True)
                rounds = [
                    (await spent(alone), await spent(through), asked_of(server, load))
                    for _ in range(ROUNDS + 1)
                ][1:]
                load.close()
                found.append(Row(resource, *map(list, zip(*rounds, strict=True))))
    for connection in idle:
        await connection.close()
    return found


def table(found: Sequence[Row]) -> Iterator[str]:
    """The lines to print, none where nothing was measured."""
    if not found:
        return
    yield (
        "one record, microseconds of CPU (on the clock): asyncpg and orjson alone, the adapter,"
        " the whole gateway"
    )
    for row in found:
        figures = [f"{row.resource:12} {_shown(row.alone)}"]
        figures += [f"{_shown(each)} {row.ratio(each):5.2f}" for each in (row.adapter, row.gateway)]
        yield "  ".join((*figures, "OVER" if row.is_over else "holds"))
    yield (
        "the ratios: of the CPU, the median of the rounds' own;"
        f" the adapter's at most {MOST}, the gateway's not bound, {WANTED} wanted"
    )


def _shown(spent: Sequence[Spent]) -> str:
    cpu, wall = map(statistics.median, zip(*spent, strict=True))
    return f"{cpu:7.1f} ({wall:7.1f})"
