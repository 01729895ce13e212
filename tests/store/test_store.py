"""The gateway's own database: made, brought up to date, and refused in a sentence."""

import asyncio
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import delete, insert

from gateway.store import Store, StoreError, migrations, open_store
from gateway.store.base import HEAD
from gateway.store.sqlite import WAIT_MS
from gateway.store.tables import meta, metadata
from tests.store.stages import bring_to, release_next, stop_half_way

# What a store of the first release is, row by row; it never changes.
FIRST_RELEASE = Path(__file__).with_name("first_release.sql")


def at(path: Path) -> Store:
    return open_store(f"sqlite:///{path}")


async def test_migrations_make_the_tables_that_the_code_works_with(tmp_path: Path) -> None:
    store = at(tmp_path / "g.db")
    await bring_to(store, "head")
    await store.migrate()
    async with store.engine.connect() as connection:
        difference = await connection.run_sync(
            lambda it: compare_metadata(MigrationContext.configure(it), metadata)
        )
    await store.aclose()
    assert difference == []


async def test_a_store_of_the_first_release_is_brought_to_what_one_is_that_begins(
    tmp_path: Path,
) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.executescript(FIRST_RELEASE.read_text())
    first, begun = at(tmp_path / "a.db"), at(tmp_path / "b.db")
    for store in (first, begun):
        await store.migrate()
        await store.aclose()
    assert _dump(tmp_path / "a.db") == _dump(tmp_path / "b.db")


async def test_a_store_that_begins_is_what_all_migrations_make(tmp_path: Path) -> None:
    begun, brought = at(tmp_path / "a.db"), at(tmp_path / "b.db")
    await begun.migrate()
    await bring_to(brought, "head")
    await begun.aclose()
    await brought.aclose()
    assert _dump(tmp_path / "a.db") == _dump(tmp_path / "b.db")


def _dump(path: Path) -> list[str]:
    """All tables, indexes and rows, as statements; however these are quoted and broken."""
    with closing(sqlite3.connect(path)) as connection:
        return sorted(" ".join(line.replace('"', "").split()) for line in connection.iterdump())


def test_head_is_the_newest_migration() -> None:
    assert ScriptDirectory(migrations.__path__[0]).get_heads() == [HEAD]


async def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/gateway.db")
    await store.migrate()
    await store.set_meta_once("a", "b")
    modes = _modes(tmp_path)
    await store.aclose()
    assert "gateway.db" in modes
    assert set(modes.values()) == {0o600}


def _modes(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()}


async def test_a_store_of_a_later_version_is_refused(tmp_path: Path) -> None:
    store = at(tmp_path / "g.db")
    await store.migrate()
    await store.aclose()
    with closing(sqlite3.connect(tmp_path / "g.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    later = at(tmp_path / "g.db")
    with pytest.raises(StoreError, match="belongs to a later version"):
        await later.migrate()
    await later.aclose()


async def test_a_store_of_before_the_first_release_is_refused(tmp_path: Path) -> None:
    store = at(tmp_path / "g.db")
    await store.migrate()
    async with store.begin() as connection:
        await connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0014'")
    before = _dump(tmp_path / "g.db")
    with pytest.raises(StoreError, match=r"before the first release \(its tables are at 0014"):
        await store.migrate()
    await store.aclose()
    assert _dump(tmp_path / "g.db") == before


async def test_what_is_set_once_stays(tmp_path: Path) -> None:
    store = at(tmp_path / "g.db")
    await store.migrate()
    assert await store.meta("a") is None
    assert await store.set_meta_once("a", "1") == "1"
    assert await store.set_meta_once("a", "2") == "1"
    assert await store.meta("a") == "1"
    await store.aclose()


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "g.db").write_bytes(b"no database at all" * 100)
    store = at(tmp_path / "g.db")
    with pytest.raises(StoreError, match="is no SQLite database"):
        await store.migrate()
    await store.aclose()


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    store = at(tmp_path / "none" / "g.db")
    with pytest.raises(StoreError, match="can't be opened"):
        await store.migrate()
    await store.aclose()


async def test_a_locked_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.store.sqlite._PRAGMAS", ("PRAGMA busy_timeout = 1",))
    store = at(tmp_path / "g.db")
    with closing(sqlite3.connect(tmp_path / "g.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="is locked by another process"):
            await store.migrate()
    await store.aclose()


def test_a_database_that_is_not_possible_is_refused() -> None:
    with pytest.raises(StoreError, match="oracle is not possible; use sqlite"):
        open_store("oracle://x:secret@host/db")


@pytest.mark.parametrize("begun", [False, True])
async def test_many_that_migrate_at_once_make_the_tables_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    stores, head = [at(tmp_path / "g.db") for _ in range(6)], HEAD
    if begun:
        await stores[0].migrate()
        head = release_next(monkeypatch, tmp_path)
    await asyncio.gather(*(store.migrate() for store in stores))
    for store in stores:
        await store.aclose()
    with closing(sqlite3.connect(tmp_path / "g.db")) as connection:
        assert connection.execute("SELECT name FROM revisions").fetchall() == [
            ("keys",),
            ("policy",),
        ]
        assert connection.execute("SELECT * FROM alembic_version").fetchall() == [(head,)]


async def test_a_migration_keeps_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = at(tmp_path / "g.db")
    await store.migrate()
    await store.set_meta("a", "1")
    head = release_next(monkeypatch, tmp_path)
    await store.migrate(make=False)
    async with store.begin() as connection:
        noted = await connection.exec_driver_sql(
            "SELECT count(*) FROM revisions WHERE note IS NULL"
        )
        assert noted.scalar_one() == 2
    assert (await store.meta("a"), await store.version()) == ("1", head)
    await store.aclose()


async def test_who_begins_a_new_store_waits_for_another_who_does(tmp_path: Path) -> None:
    store = at(tmp_path / "g.db")
    with closing(sqlite3.connect(tmp_path / "g.db", isolation_level=None)) as other:
        other.execute("CREATE TABLE other (n)")
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO other VALUES (1)")
        opening = asyncio.create_task(store.ping())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(opening), 0.2)
        other.execute("COMMIT")
    with pytest.raises(StoreError, match="can't be used"):  # it has no tables yet
        await opening
    await store.migrate()
    await store.ping()
    await store.aclose()


@pytest.mark.parametrize("begun", [False, True])
async def test_a_migration_that_was_interrupted_left_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    store = at(tmp_path / "g.db")
    if begun:
        await store.migrate()
        release_next(monkeypatch, tmp_path)
    before = _dump(tmp_path / "g.db")
    with monkeypatch.context() as patched:
        patched.setattr("alembic.op.create_index", stop_half_way)
        patched.setattr("gateway.store.tables.version.create", stop_half_way)
        with pytest.raises(SystemExit):
            await store.migrate()
    assert _dump(tmp_path / "g.db") == before
    await store.migrate()
    await store.ping()
    await store.aclose()


@pytest.mark.parametrize("folder", ["50% off", "a?b", "x#y", "%41", "file:z"])
async def test_a_path_is_taken_as_it_is(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    path = tmp_path / folder / "g?mode=ro.db"
    store = open_store(path)
    await store.migrate()
    await store.aclose()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM alembic_version").fetchall() == [(HEAD,)]


async def test_a_file_that_came_in_the_place_of_the_stores_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.db"
    store = at(path)
    await store.migrate()
    await store.ping()
    backup = shutil.copy(path, tmp_path / "backup.db")
    shutil.move(backup, path)
    for work in (store.ping, lambda: store.set_meta_once("a", "b"), lambda: store.meta("a")):
        with pytest.raises(
            StoreError, match="was replaced by another file: put the former one back"
        ):
            await work()
    shutil.move(path, tmp_path / "away.db")
    with pytest.raises(StoreError, match="is gone"):
        await store.ping()
    await store.aclose()


async def test_a_store_that_cannot_be_written_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.store.sqlite.PING_MS", 1)
    store = at(tmp_path / "g.db")
    await store.migrate()
    with closing(sqlite3.connect(tmp_path / "g.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="is locked by another process"):
            await store.ping()
    await store.ping()
    async with store.begin() as connection:
        waits = await connection.exec_driver_sql("PRAGMA busy_timeout")
        assert waits.scalar_one() == WAIT_MS
    await store.aclose()


async def test_a_close_that_is_cancelled_is_done_to_its_end_and_says_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = at(tmp_path / "gateway.db")
    await store.migrate()
    ending = asyncio.create_task(store.aclose())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert not caplog.records


@pytest.mark.parametrize("times", [1, 3])
async def test_a_transaction_that_is_cancelled_keeps_nobody_from_writing(
    tmp_path: Path, times: int
) -> None:
    store = at(tmp_path / "gateway.db")
    await store.migrate()
    is_held, let_go = threading.Event(), threading.Event()

    def hold() -> bool:
        is_held.set()
        return let_go.wait(30)

    async def work() -> None:
        async with store.begin() as connection:
            await connection.execute(insert(meta).values(name="a", value="b"))
            driver: Any = (await connection.get_raw_connection()).driver_connection
            await driver.create_function("hold", 0, hold)
            await connection.exec_driver_sql("SELECT hold()")

    working = asyncio.create_task(work())
    assert await asyncio.to_thread(is_held.wait, 30)
    for _ in range(times):
        working.cancel()
        await asyncio.sleep(0)
    let_go.set()
    # the traceback holds the statement, so that no collector frees it here
    with pytest.raises(asyncio.CancelledError) as raised:
        await working
    await store.aclose()
    with closing(sqlite3.connect(tmp_path / "gateway.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert other.execute("SELECT count(*) FROM meta WHERE name = 'a'").fetchone() == (0,)
    assert raised.tb is not None


async def test_what_there_is_one_of_is_replaced_and_stays_so(store: Store) -> None:
    for value in ("1", "2"):
        await store.set_meta("a", value)
        assert await store.meta("a") == value
    assert await store.set_meta_once("a", "3") == "2"


async def test_what_is_deleted_is_overwritten(tmp_path: Path) -> None:
    store = at(tmp_path / "g.db")
    await store.migrate()
    secret = "a reason that nobody else is to read"
    await store.set_meta("a", secret)
    await store.aclose()
    assert secret.encode() in (tmp_path / "g.db").read_bytes()
    store = at(tmp_path / "g.db")
    async with store.begin() as connection:
        await connection.execute(delete(meta))
    await store.aclose()
    assert secret.encode() not in (tmp_path / "g.db").read_bytes()


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_store_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    store = at(tmp_path / "g.db")
    assert await store.version() is None
    for look in (store.ping, lambda: store.meta("a"), lambda: store.migrate(make=False)):
        with pytest.raises(StoreError):
            await look()
    assert files(tmp_path) == []
    (tmp_path / "g.db").touch()
    assert await store.version() is None
    with pytest.raises(StoreError, match="has no tables of a gateway"):
        await store.migrate(make=False)
    await store.aclose()
    assert files(tmp_path) == ["g.db"]


async def test_a_machine_without_room_for_a_thread_is_an_error_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path / "store.db")

    def full(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", full)
        with pytest.raises(RuntimeError, match="new thread"):
            async with asyncio.timeout(5):
                await store._open()  # type: ignore[attr-defined]
    await store.aclose()
