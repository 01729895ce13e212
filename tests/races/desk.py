"""The practice's own desk, a process of its own, which takes no lock of ours.

Several clerks insert, move and cancel appointments from the first line on standard input until it
is closed. Some hold their transactions open before COMMIT, and some think better of it. Each change
that was committed is a line of the log: `here` or `gone`, with the monotonic times before BEGIN,
before COMMIT and after.
"""

import asyncio
import contextlib
import json
import random
import sqlite3
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, Protocol, TextIO

from sqlalchemy.engine import URL, make_url

from tests.adapters.servers import firebird_connection
from tests.races.practice import SLOT, STEP, VETS, starts_of

MOST_HELD = 5  # appointments that a clerk keeps; more are cancelled again


class Till(Protocol):
    """A connection of the desk's, in autocommit where no transaction was begun."""

    async def run(self, statement: str) -> int:
        """How many rows it changed; `collisions` when the server wants it tried again."""

    async def aclose(self) -> None: ...


class PostgresTill:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def run(self, statement: str) -> int:
        said = await self._connection.execute(statement)
        return int(said.split()[-1]) if said[-1].isdigit() else 0

    async def aclose(self) -> None:
        await self._connection.close()


class MysqlTill:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def run(self, statement: str) -> int:
        async with self._connection.cursor() as cursor:
            return int(await cursor.execute(statement))

    async def aclose(self) -> None:
        await self._connection.ensure_closed()


class FirebirdTill:
    """In threads; a transaction begins with its first statement, and waits for others' locks."""

    def __init__(self, connection: Any) -> None:
        self._connection, self._begun = connection, False

    async def run(self, statement: str) -> int:
        return await asyncio.to_thread(self._run, statement)

    def _run(self, statement: str) -> int:
        if statement == "BEGIN":
            self._begun = True
            return 0
        if statement in ("COMMIT", "ROLLBACK"):
            self._begun = False
            end = self._connection.commit if statement == "COMMIT" else self._connection.rollback
            if self._connection.is_active():
                end()
            return 0
        try:
            with contextlib.closing(self._connection.cursor()) as cursor:
                cursor.execute(statement)
                return int(cursor.affected_rows)
        finally:
            if not self._begun and self._connection.is_active():
                self._connection.commit()

    async def aclose(self) -> None:
        self._connection.close()


class SqliteTill:
    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(
            path, timeout=8, isolation_level=None, check_same_thread=False
        )

    async def run(self, statement: str) -> int:
        return (await asyncio.to_thread(self._connection.execute, statement)).rowcount

    async def aclose(self) -> None:
        self._connection.close()


async def open_till(address: URL) -> tuple[Till, type[Exception]]:
    """A connection, and what it raises."""
    if address.get_backend_name() == "postgresql":
        import asyncpg

        opened = await asyncpg.connect(address.render_as_string(hide_password=False))
        return PostgresTill(opened), asyncpg.PostgresError
    if address.get_backend_name() == "mysql":
        import asyncmy
        from asyncmy.errors import MySQLError

        made = await asyncmy.connect(
            host=address.host, port=address.port or 3306, user=address.username,
            password=address.password or "", db=address.database, autocommit=True,
        )  # fmt: skip
        return MysqlTill(made), MySQLError
    if address.get_backend_name() == "firebird":
        from firebird.driver import DatabaseError

        return FirebirdTill(firebird_connection(address)), DatabaseError
    return SqliteTill(address.database or ""), sqlite3.OperationalError


@dataclass(frozen=True)
class Held:
    """An appointment that a clerk made."""

    note: str
    vet: int
    start: datetime
    end: datetime

    def told(self) -> dict[str, Any]:
        return {"note": self.note, "vet": self.vet, "start": str(self.start), "end": str(self.end)}


Told = tuple[str, Held]


@dataclass
class Clerk:
    """Writes, holds, cancels; keeps nothing but what it made itself."""

    till: Till
    collisions: type[Exception]
    log: TextIO
    chance: random.Random
    days: Sequence[date]
    name: str
    slot_rows: bool
    longest: float
    held: list[Held] = field(default_factory=list)
    count: int = 0

    async def work(self, over: asyncio.Event) -> None:
        """Until the desk closes."""
        while not over.is_set():
            many = len(self.held) > MOST_HELD
            kind = "cancel" if many else self.chance.choice(["make"] * 7 + ["move", "cancel"])
            if kind != "make" and not self.held:
                continue
            with contextlib.suppress(self.collisions):
                await getattr(self, kind)()
            await asyncio.sleep(self.chance.uniform(0.0, 0.03))

    async def make(self) -> None:
        new = self._another()
        state = f"state = 'BOOKED', source = 'desk', note = '{new.note}'"
        statement = (
            f"UPDATE appointment SET {state} WHERE {_at(new)} AND state = 'FREE'"
            if self.slot_rows
            else "INSERT INTO appointment (vet, kind, starts, ends, state, note, source)"
            f" VALUES ({new.vet}, 1, '{new.start}', '{new.end}', 'BOOKED', '{new.note}', 'desk')"
        )
        if await self._commit([statement], [("here", new)]):
            self.held.append(new)

    async def move(self) -> None:
        if self.slot_rows:
            return
        old, new = self.held[0], self._another()
        new = Held(old.note, new.vet, new.start, new.end)
        statement = (
            f"UPDATE appointment SET vet = {new.vet}, starts = '{new.start}', ends = '{new.end}'"
            f" WHERE note = '{old.note}'"
        )
        if await self._commit([statement], [("gone", old), ("here", new)]):
            self.held[0] = new

    async def cancel(self) -> None:
        old = self.held[0]
        changed = "state = 'GONE'"
        if self.slot_rows:
            changed = "state = 'FREE', source = NULL, note = NULL"
        statement = f"UPDATE appointment SET {changed} WHERE note = '{old.note}'"
        if await self._commit([statement], [("gone", old)]):
            del self.held[0]

    def _another(self) -> Held:
        self.count += 1
        start = self.chance.choice(list(starts_of(self.chance.choice(list(self.days)))))
        end = start + (SLOT if self.slot_rows else STEP * self.chance.choice((1, 2, 3)))
        return Held(f"desk {self.name} {self.count}", self.chance.choice(VETS), start, end)

    async def _commit(self, statements: Sequence[str], told: Sequence[Told]) -> bool:
        """Whether it was committed; it is not when there was nothing to change, or on a whim."""
        begun = time.monotonic_ns()
        if self.chance.random() < 0.4:
            committing = time.monotonic_ns()
            changed = [await self.till.run(each) for each in statements]
            if 0 in changed:
                return False
        else:
            await self.till.run("BEGIN")
            try:
                changed = [await self.till.run(each) for each in statements]
                await asyncio.sleep(self.chance.uniform(0.003, self.longest))
            except self.collisions:
                await self.till.run("ROLLBACK")
                raise
            if 0 in changed or self.chance.random() < 0.15:
                await self.till.run("ROLLBACK")
                return False
            committing = time.monotonic_ns()
            await self.till.run("COMMIT")
        times = {"begun": begun, "committing": committing, "committed": time.monotonic_ns()}
        for what, each in told:
            self.log.write(json.dumps({"what": what, **each.told(), **times}) + "\n")
        return True


def _at(each: Held) -> str:
    return f"vet = {each.vet} AND starts = '{each.start}'"


async def main(orders: dict[str, Any], log: TextIO) -> None:
    """Open the desk when it is told to, say so, and work until standard input is closed."""
    address, over = make_url(orders["url"]), asyncio.Event()
    days = [date.fromisoformat(each) for each in orders["days"]]
    clerks = []
    for number in range(orders["clerks"]):
        till, collisions = await open_till(address)
        clerks.append(
            Clerk(
                till=till,
                collisions=collisions,
                log=log,
                chance=random.Random(f"{orders['seed']} {number}"),
                days=days,
                name=str(number),
                slot_rows=orders["slot_rows"],
                longest=orders["longest"],
            )
        )
    if await asyncio.to_thread(sys.stdin.readline):
        sys.stdout.write("open\n")
        sys.stdout.flush()
        working = [asyncio.create_task(each.work(over)) for each in clerks]
        await asyncio.to_thread(sys.stdin.read)
        over.set()
        await asyncio.gather(*working)
    for each in clerks:
        await each.till.aclose()


def work(orders: dict[str, Any]) -> None:
    """All that this process does; `orders` are those of `main`, and the path of the log."""
    with Path(orders["log"]).open("w", encoding="utf-8") as file:
        asyncio.run(main(orders, file))
