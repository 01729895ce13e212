"""The store on PostgreSQL: begun by many, right when many write, bounded when it fails."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from pydantic import SecretStr
from sqlalchemy import event, text, update
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.keys.store import KeyStore
from gateway.sealing import sealing_secret
from gateway.settings import BackendSettings, StartRefused, load_settings
from gateway.store import Store, StoreError, open_store
from gateway.store.base import HEAD
from gateway.store.postgres import CONNECTIONS, FREE, MIGRATING, STATEMENT
from gateway.store.tables import meta, revisions
from tests.adapters.servers import execute_async, postgres_database
from tests.forwarder import Forwarder, forwarder
from tests.store.stages import bring_to, stop_half_way

SLACK = 0.5  # seconds: this machine does other things too


@pytest.fixture
def empty() -> Iterator[str]:
    with postgres_database() as url:
        yield url


@pytest.fixture
def place(postgres_tables: str) -> Iterator[str]:
    """The address of a database that has the tables."""
    with postgres_database(options=f"TEMPLATE {postgres_tables.rpartition('/')[2]}") as url:
        yield url


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = open_store(url)
    try:
        yield store
    finally:
        await store.aclose()


@asynccontextmanager
async def wired(url: str) -> AsyncIterator[tuple[Store, Forwarder]]:
    """A store whose wire can be cut."""
    address = make_url(url)
    async with forwarder(address.port or 5432) as wire:
        through = address.set(host="127.0.0.1", port=wire.port)
        async with opened(through.render_as_string(hide_password=False)) as store:
            yield store, wire


async def took(work: Awaitable[object]) -> tuple[float, str]:
    """Seconds, and what the store said."""
    began = time.monotonic()
    try:
        await work
    except StoreError as error:
        return time.monotonic() - began, str(error)
    return time.monotonic() - began, ""


async def value_of(store: Store) -> int:
    async with store.begin() as connection:
        row = await connection.execute(text("SELECT value FROM revisions WHERE name = 'keys'"))
        return int(row.scalar_one())


# Begun by many


BEGIN = """
import asyncio, sys
from gateway.store import open_store
async def main():
    store = open_store(sys.argv[1])
    sys.stdin.readline()
    await store.migrate()
    await store.ping()
    await store.aclose()
print("ready", flush=True)
asyncio.run(main())
"""


@pytest.mark.long
def test_processes_that_begin_a_new_database_at_once_wait_for_each_other(empty: str) -> None:
    command = [sys.executable, "-c", BEGIN, empty]
    processes = [Popen(command, stdin=PIPE, stdout=PIPE, text=True) for _ in range(3)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.communicate("\n", timeout=60)
    assert [process.returncode for process in processes] == [0, 0, 0]


async def test_who_comes_second_waits_for_the_one_that_migrates_however_long(empty: str) -> None:
    lock = f"SELECT pg_advisory_xact_lock({MIGRATING})"
    async with opened(empty) as first, opened(empty) as second:
        async with first.begin() as connection:
            await connection.execute(text(lock))
            waits = asyncio.create_task(second.migrate())
            await asyncio.sleep(0.3)
            assert not waits.done()
        await waits
        await second.ping()


async def test_a_database_of_a_later_version_is_refused(place: str) -> None:
    await execute_async(place, "UPDATE alembic_version SET version_num = '9999'")
    async with opened(place) as store:
        with pytest.raises(StoreError, match="belongs to a later version"):
            await store.migrate()


async def test_a_store_that_begins_is_what_all_migrations_make(empty: str, place: str) -> None:
    async with opened(empty) as store:
        await bring_to(store, "head")
    assert await shape(empty) == await shape(place)


async def shape(url: str) -> list[object]:
    """Columns, constraints and indexes, and the first rows."""
    columns = (
        "SELECT table_name, column_name, data_type, character_maximum_length, is_nullable,"
        " column_default FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1,"
        " ordinal_position"
    )
    constraints = (
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2"
    )
    indexes = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"
    rows = ("SELECT * FROM revisions ORDER BY name", "SELECT * FROM alembic_version")
    asked = (columns, constraints, indexes, *rows)
    return [await execute_async(url, each) for each in asked]


async def test_a_migration_that_was_interrupted_left_nothing(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(empty) as store:
        with monkeypatch.context() as patched:
            patched.setattr("gateway.store.tables.version.create", stop_half_way)
            with pytest.raises(SystemExit):
                await store.migrate()
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        assert await execute_async(empty, tables) == [(0,)]
        await store.migrate()
        await store.ping()
    assert await execute_async(empty, "SELECT * FROM alembic_version") == [(HEAD,)]


async def test_nodes_with_another_sealing_secret_are_refused(place: str, tmp_path: Path) -> None:
    def node(name: str, secret: str) -> object:
        backend = BackendSettings(secret=SecretStr(secret * 32))
        (tmp_path / name).mkdir()
        changes = {"state": tmp_path / name, "backend": backend}
        return load_settings(None, {}).model_copy(update=changes)

    async with opened(place) as store:
        nodes = [node("a", "ab"), node("b", "ab"), node("c", "cd")]
        ends = await asyncio.gather(
            *(sealing_secret(each, store) for each in nodes),  # type: ignore[arg-type]
            return_exceptions=True,
        )
        assert sum(isinstance(each, StartRefused) for each in ends) in {1, 2}
        assert len({each for each in ends if isinstance(each, bytes)}) == 1


# Many at once


async def test_what_counts_on_counts_every_time(place: str) -> None:
    more = update(revisions).values(value=revisions.c.value + 1)
    async with opened(place) as one, opened(place) as two:

        async def count(store: Store) -> None:
            for _ in range(50):
                await store.run(lambda connection: connection.execute(more))

        async with asyncio.TaskGroup() as tasks:
            for each in (one, two) * 3:
                tasks.create_task(count(each))
        assert await value_of(one) == 300


async def test_of_two_that_wait_for_each_other_one_runs_again(place: str) -> None:
    met, runs = asyncio.Barrier(2), 0
    async with opened(place) as store:

        def crosswise(names: tuple[str, str]) -> Callable[[AsyncConnection], Awaitable[None]]:
            first = True

            async def work(connection: AsyncConnection) -> None:
                nonlocal runs, first
                runs += 1
                for name in names:
                    added = update(revisions).where(revisions.c.name == name)
                    await connection.execute(added.values(value=revisions.c.value + 1))
                    if first:
                        first = False
                        await met.wait()

            return work

        await execute_async(
            place, "ALTER DATABASE " + place.rpartition("/")[2] + " SET deadlock_timeout = '50ms'"
        )
        orders = (("keys", "policy"), ("policy", "keys"))
        await asyncio.gather(*(store.run(crosswise(each)) for each in orders))
        assert await value_of(store) == 2
        assert runs == 3


async def test_what_is_in_its_own_way_for_ever_is_told(place: str) -> None:
    runs = 0

    async def never(connection: AsyncConnection) -> None:
        nonlocal runs
        runs += 1
        await connection.execute(text("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$"))

    async with opened(place) as store:
        with pytest.raises(StoreError, match="too many write the same at once"):
            await store.run(never)
    assert runs == 4


async def test_what_another_database_says_is_not_tried_again(place: str) -> None:
    runs = 0

    async def wrong(connection: AsyncConnection) -> None:
        nonlocal runs
        runs += 1
        await connection.execute(text("SELECT nothing FROM nowhere"))

    async with opened(place) as store:
        with pytest.raises(StoreError):
            await store.run(wrong)
    assert runs == 1


# When it fails


async def test_a_database_that_hangs_costs_no_more_than_its_bound(place: str) -> None:
    async with wired(place) as (store, wire):
        await asyncio.gather(*(store.ping() for _ in range(CONNECTIONS)))
        wire.hang()
        ends = await asyncio.gather(*(took(store.meta("a")) for _ in range(3 * CONNECTIONS)))
        for seconds, said in ends:
            assert seconds < FREE + STATEMENT + SLACK
            assert "did not answer in time" in said or "all connections to it are in use" in said
        assert sum(seconds > FREE + SLACK for seconds, _ in ends) <= 2 * CONNECTIONS
        wire.flow()
        assert await took(store.ping()) < (SLACK, "")


async def test_a_commit_without_an_answer_is_told_in_time(place: str) -> None:
    async with wired(place) as (store, wire):

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(meta.insert().values(name="a", value="b"))
            wire.hang()

        seconds, said = await took(store.run(work))
        assert seconds < STATEMENT + SLACK
        assert "did not answer in time" in said
        wire.flow()
        await store.ping()


async def test_connections_that_died_meanwhile_are_not_used(place: str) -> None:
    async with wired(place) as (store, wire):
        await asyncio.gather(*(store.ping() for _ in range(CONNECTIONS)))
        wire.cut()
        await asyncio.sleep(0.05)
        ends = await asyncio.gather(*(took(store.meta("a")) for _ in range(CONNECTIONS)))
        assert [said for _, said in ends] == [""] * CONNECTIONS


async def test_a_server_that_is_away_is_told_at_once_and_found_again(place: str) -> None:
    async with wired(place) as (store, wire):
        await store.ping()
        await wire.refuse()
        await asyncio.sleep(0.05)
        seconds, said = await took(store.meta("a"))
        assert seconds < STATEMENT
        assert "refuses connections" in said
        await wire.listen()
        assert (await took(store.ping()))[1] == ""


async def test_who_leaves_while_it_hangs_waits_for_nothing(place: str) -> None:
    async with wired(place) as (store, wire):
        await store.ping()
        wire.hang()
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await store.meta("a")
        assert time.monotonic() - began < STATEMENT + SLACK
        wire.flow()
        await store.ping()


async def test_the_locks_of_a_gateway_that_stopped_are_let_go(place: str) -> None:
    async with opened(place) as store, store.glance() as connection:
        shown = await connection.execute(text("SHOW idle_in_transaction_session_timeout"))
        assert shown.scalar_one() == "5s"
        shown = await connection.execute(text("SHOW statement_timeout"))
        assert shown.scalar_one() == "2s"


async def test_a_standby_is_not_ready(place: str) -> None:
    name = place.rpartition("/")[2]
    await execute_async(place, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    async with opened(place) as store:
        with pytest.raises(StoreError, match="takes no writes: name the primary"):
            await store.ping()


async def test_no_message_holds_what_opens_the_database(place: str) -> None:
    address = make_url(place).set(password="hunter2-secret")
    wrong = (
        address.set(username="nobody_of_that_name"),
        address.set(database="nothing_of_that_name"),
        address.set(port=1),
        address.set(host="nowhere.invalid"),
    )
    said = []
    for each in wrong:
        async with opened(each.render_as_string(hide_password=False)) as store:
            said.append((await took(store.ping()))[1])
    for expected, found in zip(
        ("refuses the user or the password", "is not there", "refuses conn", "has no address"),
        said,
        strict=True,
    ):
        assert expected in found
        assert "hunter2" not in found
        assert "nobody" not in found


@pytest.mark.parametrize(
    "url", ["postgresql://u:hunter2@h:port/d", "postgresql://u:hunter2@[::1/d"]
)
def test_an_address_that_is_none_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(StoreError, match="must be an address such as postgresql://") as raised:
        open_store(url)
    assert "hunter2" not in str(raised.value)
    assert raised.value.__cause__ is None


async def test_following_the_keys_costs_one_statement_outside_of_a_transaction(place: str) -> None:
    async with opened(place) as store:
        keys = KeyStore(store)
        revision, _ = await keys.changes(-1)
        sent: list[str] = []
        engine = store.engine.sync_engine
        event.listen(engine, "before_cursor_execute", lambda *call: sent.append(call[2]))
        for _ in range(5):
            assert await keys.changes(revision) == (revision, {})
        assert len(sent) == 5
        assert all("revisions" in each for each in sent)
        async with store.glance() as connection:
            # within a transaction both would be of one moment
            clocks = [
                (await connection.execute(text("SELECT now()"))).scalar_one() for _ in range(2)
            ]
        assert clocks[0] < clocks[1]
