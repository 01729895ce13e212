"""What one record costs through the adapter, against asyncpg and orjson alone for the same row.

Both ask the same PostgreSQL for the same rows by the same statement, in turn, in one process. The
figures are this process's CPU and the time on the clock; ratios are the medians of the pairs'.
"""

import itertools
import statistics
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import asyncpg  # type: ignore[import-untyped]
import orjson
from sqlalchemy import Connection

from adapters.base import Query
from adapters.sql.adapter import SqlAdapter, SqlSession
from adapters.sql.engines.connection import HeardConnection
from bench.calls import Ask
from bench.practices import Made, opened
from gateway.settings import load_settings
from gateway.settings.kinds import secret_text

MOST = 2.5
CALLS, ROUNDS = 200, 15
# Resources whose record is one statement.
RESOURCES = ("clients", "patients", "stock")


class Spent(NamedTuple):
    """Microseconds of a call: of this process's CPU, and on the clock."""

    cpu: float
    wall: float


class Row(NamedTuple):
    """A resource, and what its record costs alone and through the adapter, pair by pair."""

    resource: str
    alone: Sequence[Spent]
    adapter: Sequence[Spent]

    @property
    def ratio(self) -> float:
        pairs = zip(self.alone, self.adapter, strict=True)
        return statistics.median(adapter.cpu / alone.cpu for alone, adapter in pairs)

    @property
    def is_over(self) -> bool:
        """Whether it costs more than it may."""
        return self.ratio > MOST


async def spent(ask: Ask) -> Spent:
    """The mean of some calls, one after the other."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(CALLS):
        await ask()
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


async def bare(connection: Any, statements: Sequence[Any]) -> Ask:
    """Asks for the rows with the driver's own types, and makes JSON of them."""
    typed = []
    for text, bound in statements:
        types = (await connection.prepare(text)).get_parameters()
        whole = [int if each.name.startswith("int") else str for each in types]
        typed.append((text, [kind(each) for kind, each in zip(whole, bound, strict=True)]))
    turn = itertools.cycle(typed)

    async def ask() -> bytes:
        text, bound = next(turn)
        row = await connection.fetchrow(text, *bound)
        return orjson.dumps(dict(row), default=str)

    return ask


async def rows(made: Made) -> list[Row]:
    """The figures of every resource."""
    now, found = datetime.now(UTC), list[Row]()
    settings = load_settings(made.folder / "gateway.yaml", {})
    connection = await asyncpg.connect(secret_text(settings.backend.url))
    async with opened(made) as adapter:
        for resource in RESOURCES:
            page = await adapter.read_many(Query(resource=resource, now=now, limit=50))
            ids = [each["id"] for each in page.records]
            turn = itertools.cycle([Query(resource=resource, now=now, id=each) for each in ids])
            alone = await bare(connection, await heard(adapter, resource, ids))  # type: ignore[arg-type]
            through: Ask = lambda turn=turn: adapter.read_one(next(turn))  # type: ignore[misc]  # noqa: E731
            pairs = [(await spent(alone), await spent(through)) for _ in range(ROUNDS + 1)][1:]
            found.append(Row(resource, [a for a, _ in pairs], [b for _, b in pairs]))
    await connection.close()
    return found


def table(found: Sequence[Row]) -> Iterator[str]:
    """The lines to print, none where nothing was measured."""
    if not found:
        return
    yield "one record, microseconds of CPU (on the clock): asyncpg and orjson alone, the adapter"
    for row in found:
        alone, adapter = (
            "{:6.1f} ({:6.1f})".format(*map(statistics.median, zip(*each, strict=True)))
            for each in (row.alone, row.adapter)
        )
        verdict = "OVER" if row.is_over else "holds"
        yield f"{row.resource:12} {alone:>20} {adapter:>20} {row.ratio:6.2f}  {verdict}"
    yield f"the ratio: of the CPU, the median of the pairs' own; at most {MOST}"
