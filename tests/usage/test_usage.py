"""The usage of keys: counted in memory, added up in the store, kept for 35 days."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

import gateway.usage as counting
from gateway.background import RESTS
from gateway.contract.errors import GatewayError
from gateway.contract.operations import OPERATIONS
from gateway.store import Store, open_store, tables
from gateway.store.sqlite import _PRAGMAS
from gateway.store.tables import usage as usage_minutes
from gateway.store.tables import usage_days
from gateway.usage import (
    DROP_EVERY,
    NOBODY,
    CallSums,
    Slot,
    Usage,
    add,
    answered,
    by_day,
    drop,
    minute_of,
    recent,
)
from tests.heard import Heard
from tests.tables import descendants

NOW = datetime(2026, 3, 4, 10, 20, 30, tzinfo=UTC)
MANY = 2_000  # more than are written at once
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
EVER = datetime(1970, 1, 1, tzinfo=UTC)


async def by_minute(store: Store, key_id: str) -> Mapping[tuple[datetime, str], CallSums]:
    """(start of the minute, operation) -> a key's calls, in the order of time."""
    minute = usage_minutes.c.minute
    wanted = select(usage_minutes).where(usage_minutes.c.key_id == key_id).order_by(minute)
    async with store.begin() as connection:
        rows = await connection.execute(wanted)
        return {
            (EVER + number * MINUTE, operation): CallSums(*calls)
            for number, _, operation, *calls in rows
        }


class World:
    """Usages of one store, a wall clock and a clock that nobody sets."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now, self.clock = NOW, 1000.0
        self.watcher = Heard()

    def usage(self) -> Usage:
        return Usage(self.store, self.watcher, lambda: self.now, lambda: self.clock)

    def passes(self, time: timedelta) -> None:
        self.now += time
        self.clock += time.total_seconds()

    async def minutes(self, key_id: str = "k") -> dict[str, CallSums]:
        """`day hour:minute operation` -> a key's calls."""
        found = await by_minute(self.store, key_id)
        return {f"{when:%d %H:%M} {operation}": sums for (when, operation), sums in found.items()}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "gateway.db"


@pytest.fixture
def world(store: Store) -> World:
    return World(store)


@pytest.fixture
async def file_world(place: Path) -> AsyncIterator[World]:
    """The same over a file, which a test can lock."""
    store = open_store(place)
    await store.migrate()
    yield World(store)
    await store.aclose()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is locked says so at once."""
    pragmas = ("PRAGMA busy_timeout = 1", *_PRAGMAS[1:])
    monkeypatch.setattr("gateway.store.sqlite._PRAGMAS", pragmas)


def locked(place: Path) -> sqlite3.Connection:
    """The store's file, which nobody else can write until this is closed."""
    other = sqlite3.connect(place, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other


async def test_calls_are_added_up_by_minute_and_day_and_by_how_they_ended(world: World) -> None:
    usage = world.usage()
    for status in (200, 200, 201, 400, 404, 409, 413, 403, 401, 429, 429, 500, 502, 503, 504):
        usage.count("k", "get_client", status, 0.0)
    usage.count("k", "list_stock", 200, 0.0)
    await usage.turn()
    world.passes(MINUTE)
    usage.count("k", "get_client", 200, 0.0)
    await usage.turn()
    first = CallSums(answered=3, refused=4, forbidden=1, limited=2, failed=4, unauthorized=1)
    assert await world.minutes() == {
        "04 10:20 get_client": first,
        "04 10:20 list_stock": CallSums(answered=1),
        "04 10:21 get_client": CallSums(answered=1),
    }
    day = datetime(2026, 3, 4, tzinfo=UTC)
    assert await by_day(world.store, "k", NOW) == {
        (day, "get_client"): replace(first, answered=4),
        (day, "list_stock"): CallSums(answered=1),
    }
    assert world.watcher.said == []


async def test_what_time_calls_take_is_added_up_and_no_call_for_it(world: World) -> None:
    usage = world.usage()
    for seconds in (0.25, 1.0, 1.5, 3.0):
        usage.count("k", "get_client", 200, seconds)
    await usage.turn()
    usage.count("k", "get_client", 404, 0.25)
    await usage.turn()
    wanted = CallSums(answered=4, refused=1, micros=6_000_000, slow=2)
    assert await world.minutes() == {"04 10:20 get_client": wanted}
    assert [*(await by_day(world.store, "k", NOW)).values()] == [wanted]
    assert (wanted.calls, wanted.mean) == (5, 1.2)
    assert CallSums().mean == 0.0


async def test_whose_calls_nobody_knows_are_not_written(world: World) -> None:
    usage = world.usage()
    usage.count(NOBODY, "get_client", 401, 0.1)
    await usage.turn()
    await usage.aclose()
    assert await recent(world.store, EVER) == {}


async def test_the_calls_of_each_key_are_told_at_once_from_a_minute_on(world: World) -> None:
    usage = world.usage()
    for _ in range(3):
        for key_id in ("k", "other"):
            usage.count(key_id, "get_client", 200, 0.5)
        usage.count("k", "list_stock", 429, 0.25)
        await usage.turn()
        world.passes(MINUTE)
    found = await recent(world.store, NOW + MINUTE)
    assert found == {
        "k": CallSums(answered=2, limited=2, micros=1_500_000),
        "other": CallSums(answered=2, micros=1_000_000),
    }
    assert {type(each.micros) for each in found.values()} == {int}


async def test_answered_calls_are_told_by_key_and_operation_from_a_minute_on(
    world: World,
) -> None:
    usage = world.usage()
    for _ in range(40):
        for key_id in ("k", "other"):
            usage.count(key_id, "get_client", 200, 0.0)
        usage.count("k", "list_stock", 200, 0.0)
        usage.count("k", "list_stock", 404, 0.0)
        usage.count("refused", "list_stock", 404, 0.0)
        await usage.turn()
        world.passes(DAY)
    await usage.turn()
    end = world.now

    async def found(since: datetime, operations: list[str] | None = None) -> dict[str, int]:
        told = await answered(world.store, since, operations)
        return {f"{key_id} {operation}": calls for (key_id, operation), calls in told.items()}

    month = end - 30 * DAY
    assert await found(month) == {
        "k get_client": 30, "k list_stock": 30, "other get_client": 30
    }  # fmt: skip
    assert await found(month, ["list_stock"]) == {"k list_stock": 30}
    assert await found(month, []) == {}
    assert await found(month.replace(second=59), ["list_stock"]) == {"k list_stock": 30}
    assert await found(month + MINUTE, ["list_stock"]) == {"k list_stock": 29}
    assert await found(month - 2 * MINUTE, ["list_stock"]) == {"k list_stock": 30}
    assert await found(end - DAY, ["list_stock"]) == {"k list_stock": 1}
    assert await found(end + MINUTE) == {}


async def test_what_is_older_than_35_days_is_dropped_in_steps_and_nothing_else(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = world.usage()
    for _ in range(30):
        usage.count("k", "get_client", 200, 0.0)
        await usage.turn()
        world.passes(MINUTE)
    steps = []

    async def one_step(store: Store, before: datetime) -> bool:
        steps.append(len(await world.minutes()))
        return await drop(store, before)

    monkeypatch.setattr(counting, "drop", one_step)
    world.passes(35 * DAY - 5 * MINUTE)
    await usage.turn()
    assert sorted(await world.minutes()) == [f"04 10:{each} get_client" for each in range(45, 50)]
    assert steps == [30, 20, 10, 5]
    assert len(await by_day(world.store, "k", EVER)) == 1
    world.passes(DAY)
    await usage.turn()
    assert await world.minutes() == {}
    assert await by_day(world.store, "k", EVER) == {}


async def test_what_is_old_is_looked_for_once_an_hour_and_first_after_one(world: World) -> None:
    old = {(minute_of(NOW - 36 * DAY), "k", "get_client"): CallSums(answered=1)}
    usage = world.usage()
    for _ in range(2):
        await add(world.store, old)
        world.passes(timedelta(seconds=DROP_EVERY) - MINUTE)
        await usage.turn()
        assert len(await world.minutes()) == 1
        world.passes(MINUTE)
        await usage.turn()
        assert await world.minutes() == {}


@pytest.mark.parametrize("jump", [400 * DAY, -400 * DAY, 2 * MINUTE])
async def test_a_clock_that_is_set_loses_nothing(world: World, jump: timedelta) -> None:
    usage = world.usage()
    for days, calls in ((30, 1), (36, 7)):
        slot = (minute_of(NOW - days * DAY), "k", "get_client")
        await add(world.store, {slot: CallSums(answered=calls)})
    for step in (jump, MINUTE, -jump, MINUTE):
        usage.count("k", "get_client", 200, 0.0)
        world.now += step
        world.passes(timedelta(seconds=DROP_EVERY + 1))
        await usage.turn()
    assert await answered(world.store, EVER) == {("k", "get_client"): 1 + 7 + 4}
    world.passes(timedelta(seconds=RESTS))
    await usage.turn()
    assert sum((await answered(world.store, EVER)).values()) < 12, "what is old goes once it rests"
    assert (await answered(world.store, NOW - 31 * DAY))["k", "get_client"] >= 1


async def test_a_store_that_cannot_be_written_for_a_while_gets_all_of_it_later(
    impatient: None, file_world: World, place: Path
) -> None:
    usage = file_world.usage()
    with closing(locked(place)):
        for _ in range(3):
            usage.count("k", "get_client", 200, 0.0)
            await usage.turn()
            file_world.passes(MINUTE)
        assert file_world.watcher.said == [
            f"usage_unwritten: {place} is locked by another process: end that one, or wait for it"
        ]
        assert await file_world.minutes() == {}
    await usage.turn()
    assert sorted(await file_world.minutes()) == [
        f"04 10:{each} get_client" for each in (20, 21, 22)
    ]
    with closing(locked(place)):
        usage.count("k", "get_client", 200, 0.0)
        await usage.turn()
    await usage.aclose()
    assert (await file_world.minutes())["04 10:23 get_client"] == CallSums(answered=1)
    assert file_world.watcher.events == ["usage_unwritten", "usage_unwritten"]


async def test_beyond_a_bound_the_oldest_are_lost_and_that_is_said_once(
    impatient: None, file_world: World, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "MOST_WAITING", 2)
    usage = file_world.usage()
    with closing(locked(place)):
        for calls in (5, 4, 3, 2):
            for _ in range(calls):
                usage.count("k", "get_client", 200, 0.0)
            await usage.turn()
            file_world.passes(MINUTE)
    await usage.turn()
    assert file_world.watcher.said[1:] == ["usage_lost: 9"]
    assert file_world.watcher.counted["usage_dropped"] == 9
    assert [sums.answered for sums in (await file_world.minutes()).values()] == [3, 2]
    await usage.aclose()
    assert len(file_world.watcher.said) == 2


async def test_what_cannot_be_written_at_the_end_either_is_said(
    impatient: None, file_world: World, place: Path
) -> None:
    usage = file_world.usage()
    usage.start()
    usage.count("k", "get_client", 200, 0.0)
    with closing(locked(place)):
        await usage.aclose()
    assert file_world.watcher.said[1:] == ["usage_lost: 1"]
    assert file_world.watcher.counted["usage_dropped"] == 1


async def test_two_gateways_that_write_the_same_minute_add_up(
    world: World, store_place: str
) -> None:
    other_store = open_store(store_place)
    usages = [world.usage(), Usage(other_store, world.watcher, lambda: NOW, lambda: 0.0)]
    for _ in range(3):
        for usage in usages:
            for number in range(MANY):
                usage.count("k", f"operation {number}", 200, 0.0)
        await asyncio.gather(*(usage.turn() for usage in usages))
    await other_store.aclose()
    assert world.watcher.said == []
    found = await world.minutes()
    assert len(found) == MANY
    assert set(map(repr, found.values())) == {repr(CallSums(answered=6))}
    days = await by_day(world.store, "k", NOW)
    assert set(map(repr, days.values())) == {repr(CallSums(answered=6))}


async def test_a_write_is_whole_or_not_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = world.usage()
    usage.count("k", "get_client", 200, 0.0)
    really = tables.adding

    def wrong(connection: AsyncConnection, table: Table) -> Any:
        return None if table is usage_days else really(connection, table)

    with monkeypatch.context() as patched:
        patched.setattr(tables, "adding", wrong)
        await usage.turn()
    assert world.watcher.events == ["usage_unwritten"]
    assert await world.minutes() == {}
    await usage.turn()
    assert await world.minutes() == {"04 10:20 get_client": CallSums(answered=1)}


async def test_calls_that_end_while_others_are_written_count_too(world: World) -> None:
    usage = world.usage()
    usage.count("k", "get_client", 200, 0.0)
    writing = asyncio.create_task(usage.turn())
    while not writing.done():
        usage.count("k", "get_client", 200, 0.0)
        await asyncio.sleep(0)
    counted = sum(calls for calls, _, _ in usage._open.values())
    assert counted > 0
    await usage.turn()
    assert (await world.minutes())["04 10:20 get_client"].answered > counted
    assert sum(calls for calls, _, _ in usage._open.values()) == 0


async def test_the_end_waits_for_a_write_that_runs_and_makes_it_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def slow(store: Store, sums: Mapping[Slot, CallSums]) -> None:
        await add(store, sums)
        begun.set()
        await goes_on.wait()

    monkeypatch.setattr(counting, "add", slow)
    usage = world.usage()
    # the last second of a minute: it ends at once, and the task writes by itself
    world.now = NOW.replace(second=59, microsecond=999_999)
    usage.count("k", "get_client", 200, 0.0)
    usage.start()
    await begun.wait()
    usage.count("k", "get_client", 200, 0.0)
    ending = asyncio.create_task(usage.aclose())
    await asyncio.sleep(0)
    goes_on.set()
    await ending
    assert await world.minutes() == {"04 10:20 get_client": CallSums(answered=2)}


def test_every_status_is_counted_as_one_outcome() -> None:
    statuses = {kind.status for kind in descendants(GatewayError)} | {
        each.status for each in OPERATIONS
    }
    for status in statuses:
        sums = CallSums()
        sums.count(status, 2)
        assert sums.calls == 2
        assert (sums.answered == 2) == (status < 300)
        assert (sums.failed == 2) == (status >= 500)
        assert (sums.unauthorized == 2) == (status == 401)
