"""One suite for every engine: snapshots, limits, dead connections, locks, values, spelling."""

import asyncio
import contextlib
import re
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import asyncpg  # type: ignore[import-untyped]
import pytest
from asyncpg.pgproto import pgproto  # type: ignore[import-untyped]
from sqlalchemy import Connection, literal_column, select, text
from sqlalchemy.exc import DBAPIError

from adapters.base import (
    AdapterError,
    BackendNonsense,
    BackendTimeout,
    BackendUnavailable,
    NotFound,
)
from adapters.call_notes import CALL_NOTES, CallNotes
from adapters.mapping.models import RowSource
from adapters.sql.columns import rows_of, sql
from adapters.sql.engines import Engine, open_engine, wrong_with
from adapters.sql.engines.base import ErrorKind, Speech, explain, given
from adapters.sql.engines.lanes import MOST_WAITING
from adapters.values.convert import fold
from tests.adapters import asked as asked_module
from tests.adapters.asked import asked
from tests.adapters.servers import (
    ALONE,
    by_odbc,
    execute,
    execute_async,
    firebird_database,
    mariadb_database,
    postgres_database,
)
from tests.races.practice import PAUSE
from tests.waiting import until

# Firebird selects from a table, always.
ONE = "SELECT count(*) FROM counter WHERE name = 'a'"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@dataclass(frozen=True)
class Server:
    """A database of one kind, and what differs in how a test speaks to it from outside."""

    kind: str
    url: str
    slow: str
    running: str
    kill: str = ""
    through: Callable[[str], str] = str  # how the engine reaches it, if not as the desk does

    @property
    def engine(self) -> str:
        return self.through(self.url)

    async def rests(self) -> bool:
        """Whether no statement of another connection is under way."""
        return await self.run(self.running) == [(0,)]

    async def run(self, *statements: str) -> list[Any]:
        """What the clinic's own desk does."""
        if self.kind != "sqlite":
            return await execute_async(self.url, *statements)
        with contextlib.closing(sqlite3.connect(self.url.removeprefix("sqlite:///"))) as desk, desk:
            return [row for each in statements for row in desk.execute(each).fetchall()]


SETUP = (
    "CREATE TABLE visit (id INTEGER PRIMARY KEY, vet VARCHAR(20), starts {stamp}, note {text})",
    "INSERT INTO visit VALUES (1, 'A', '2026-03-01 09:00:00', 'first'),"
    " (2, 'B', '2026-03-02 10:30:00', '50% off, at 10:30')",
    "CREATE TABLE counter (name VARCHAR(20) PRIMARY KEY, amount INTEGER NOT NULL)",
    "INSERT INTO counter VALUES ('a', 0), ('b', 0)",
    "CREATE TABLE person (id INTEGER PRIMARY KEY, name VARCHAR(80))",
)
PEOPLE = ["Müller-Østergård", "O'Brien", "ÉLODIE", "Straße", "Łukasz Žižek", "\tAnna  ", "Zoé"]


def _setup(**words: str) -> list[str]:
    names = ", ".join(f"({n}, '{p.replace(chr(39), chr(39) * 2)}')" for n, p in enumerate(PEOPLE))
    made = [each.format(**words) for each in SETUP]
    return [*made, f"INSERT INTO person VALUES {names}, (90, NULL)"]


# Seconds in which a server ends a statement that was given up: it looks for that now and then.
STOPPED = 3.0
# For what a file cannot show; the reason stands beside it.
SERVERS = pytest.mark.parametrize(
    "server",
    [
        *("postgresql", "mariadb"),
        *(
            pytest.param(kind, marks=pytest.mark.long)
            for kind in ("firebird", "odbc-postgresql", "odbc-mariadb")
        ),
    ],
    indirect=True,
)
# That sleep, and whose driver does not block: no thread is stopped by who waits for it.
UNBLOCKED = pytest.mark.parametrize("server", ["postgresql", "mariadb"], indirect=True)
# What has locks by a name, or one for all that book.
NAMED = pytest.mark.parametrize("server", ["sqlite", "postgresql", "mariadb"], indirect=True)
_BUSY = "FROM MON$STATEMENTS WHERE MON$STATE = 1 AND MON$ATTACHMENT_ID <> CURRENT_CONNECTION"


@pytest.fixture(
    scope="module",
    params=[
        *("sqlite", "postgresql", "mariadb"),
        *(
            pytest.param(kind, marks=pytest.mark.long)
            for kind in ("firebird", "odbc-postgresql", "odbc-mariadb")
        ),
    ],
)
def server(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Server]:
    _, is_odbc, kind = request.param.rpartition("odbc-")
    through = by_odbc if is_odbc else str
    if kind == "postgresql":
        with postgres_database(*_setup(stamp="timestamp", text="text")) as url:
            yield Server(
                "postgresql",
                url,
                "SELECT pg_sleep(20)",
                "SELECT count(*) FROM pg_stat_activity WHERE state = 'active'"
                " AND pid <> pg_backend_pid() AND datname = current_database()",
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND datname = current_database()",
                through,
            )
    elif kind == "mariadb":
        with mariadb_database(*_setup(stamp="datetime", text="text")) as url:
            yield Server(
                "mariadb",
                url,
                "SELECT SLEEP(20)",
                "SELECT count(*) FROM information_schema.processlist WHERE command = 'Query'"
                " AND id <> connection_id() AND db = database()",
                through=through,
            )
    elif kind == "firebird":
        words = {"stamp": "timestamp", "text": "varchar(200)"}
        with firebird_database(PAUSE, *_setup(**words)) as url:
            yield Server(
                "firebird", url, "SELECT n FROM pause(20)", f"SELECT count(*) {_BUSY}", *ALONE
            )
    else:
        path = tmp_path_factory.mktemp("engines") / "clinic.db"
        with contextlib.closing(sqlite3.connect(path)) as made, made:
            for each in _setup(stamp="text", text="text"):
                made.execute(each)
        yield Server("sqlite", f"sqlite:///{path}", ENDLESS, "")


@pytest.fixture
async def engine(server: Server) -> AsyncIterator[Engine]:
    opened = open_engine(server.engine, timeout=3.0, booking_timeout=3.0)
    yield opened
    await opened.aclose()


def query(statement: str, **values: Any) -> Callable[[Connection], Any]:
    return lambda connection: connection.execute(text(statement), values).all()


def change(statement: str) -> Callable[[Connection], Any]:
    return lambda connection: connection.execute(text(statement)).rowcount


async def test_it_answers_and_reads(engine: Engine) -> None:
    await engine.ping()
    assert await engine.read(query("SELECT id, vet FROM visit ORDER BY id")) == [(1, "A"), (2, "B")]
    assert await engine.search(query("SELECT count(*) FROM visit")) == [(2,)]


@SERVERS  # a reader of SQLite keeps the writer out
async def test_a_read_is_one_snapshot(engine: Engine, server: Server) -> None:
    def twice(connection: Connection) -> list[Any]:
        counted = text("SELECT amount FROM counter WHERE name = 'b'")
        seen = [connection.execute(counted).scalar()]
        execute(server.url, "UPDATE counter SET amount = amount + 1 WHERE name = 'b'")
        return [*seen, connection.execute(counted).scalar()]

    before, after = await engine.read(twice)
    assert before == after
    assert (await engine.read(query("SELECT amount FROM counter WHERE name = 'b'")))[0][0] > after


async def test_a_read_cannot_write(engine: Engine) -> None:
    with pytest.raises((BackendNonsense, BackendUnavailable)):
        await engine.read(change("UPDATE visit SET vet = 'X'"))
    assert await engine.read(query("SELECT count(*) FROM visit WHERE vet = 'X'")) == [(0,)]


async def test_a_question_that_is_asked_alone_cannot_write_either(engine: Engine) -> None:
    for _ in range(2):  # on a fresh connection, and on one that is kept
        with pytest.raises((BackendNonsense, BackendUnavailable)):
            await engine.ask(lambda it: it.run("UPDATE visit SET vet = 'X'", ()), alone=True)
    assert await engine.read(query("SELECT count(*) FROM visit WHERE vet = 'X'")) == [(0,)]


@pytest.mark.parametrize("server", ["postgresql"], indirect=True)
@pytest.mark.parametrize("ignored", ["read_only", "isolation"])
async def test_nothing_is_read_through_a_pooler_that_ignores_what_reads_need(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, ignored: str
) -> None:
    def connect(*given: Any, server_settings: dict[str, str], **named: Any) -> Awaitable[Any]:
        kept = {name: value for name, value in server_settings.items() if ignored not in name}
        return asyncpg_connect(*given, server_settings=kept, **named)

    asyncpg_connect = asyncpg.connect
    monkeypatch.setattr(asyncpg, "connect", connect)
    with pytest.raises(BackendUnavailable, match=f"{ignored} .*connect to the server itself"):
        await engine.ask(lambda it: it.run(ONE, ()), alone=True)
    await engine.book(change("UPDATE counter SET amount = amount WHERE name = 'a'"))


async def test_what_is_asked_alone_has_no_transaction_and_all_else_has_one(engine: Engine) -> None:
    for alone in (True, False):
        with asked() as said, patch.object(asked_module, "_NO_ASKING", ("SET", "SELECT SET_CON")):
            await engine.ask(lambda it: it.run(ONE, ()), alone=alone)
        begun = [each.text for each in said if each.text.startswith(("BEGIN", "START", "COMMIT"))]
        assert len(begun) == (0 if alone and engine.reader.reads_alone else 2)


async def test_a_booking_is_committed_when_it_returns_and_undone_when_it_raises(
    engine: Engine,
) -> None:
    await engine.book(change("UPDATE counter SET amount = 7 WHERE name = 'a'"))

    def refused(connection: Connection) -> None:
        connection.execute(text("UPDATE counter SET amount = 8 WHERE name = 'a'"))
        raise NotFound("no")

    with pytest.raises(NotFound):
        await engine.book(refused)
    assert await engine.read(query("SELECT amount FROM counter WHERE name = 'a'")) == [(7,)]


@SERVERS  # a booking on SQLite keeps the desk out
async def test_a_booking_sees_what_the_desk_commits_meanwhile(server: Server) -> None:
    engine = open_engine(server.engine, timeout=3.0, booking_timeout=3.0)

    def looks(connection: Connection) -> tuple[Any, Any]:
        counted = text("SELECT amount FROM counter WHERE name = 'b'")
        before = connection.execute(counted).scalar()
        execute(server.url, "UPDATE counter SET amount = amount + 1 WHERE name = 'b'")
        return before, connection.execute(counted).scalar()

    before, after = await engine.book(looks)
    await engine.aclose()
    assert after == before + 1


async def test_a_statement_that_takes_too_long_is_stopped_on_the_server(server: Server) -> None:
    engine = open_engine(server.engine, timeout=0.5, booking_timeout=0.5)
    await engine.ping()
    began = time.monotonic()
    with pytest.raises(BackendTimeout):
        await engine.read(query(server.slow))
    with pytest.raises(BackendUnavailable):  # undone: nothing was written
        await engine.book(query(server.slow))
    assert time.monotonic() - began < 3
    if server.running:
        await until(server.rests, within=STOPPED)
    await engine.read(query(ONE))
    await engine.aclose()


@SERVERS  # work on SQLite waits in no sleep
async def test_many_short_statements_that_take_too_long_together_are_stopped_too(
    server: Server,
) -> None:
    engine = open_engine(server.engine, timeout=0.5, booking_timeout=0.5)
    short = server.slow.replace("20", "0.2")

    def many(connection: Connection) -> None:
        for _ in range(20):
            connection.execute(text(short)).all()

    began = time.monotonic()
    with pytest.raises(BackendTimeout):
        await engine.read(many)
    assert time.monotonic() - began < 1.6
    await until(server.rests, within=STOPPED)
    await engine.aclose()


@SERVERS  # work on SQLite waits in no sleep
async def test_an_inspection_of_many_statements_has_more_time_than_a_call(server: Server) -> None:
    engine = open_engine(server.engine, timeout=0.3, booking_timeout=0.3)
    short = server.slow.replace("20", "0.2")

    def many(connection: Connection) -> None:
        for _ in range(3):
            connection.execute(text(short)).all()

    await engine.inspect(many)
    await engine.aclose()


async def test_an_option_that_a_server_does_not_know_is_named_as_the_trouble() -> None:
    with postgres_database() as url:
        engine = open_engine(f"{url}?foo=bar", timeout=3.0, booking_timeout=3.0)
        with pytest.raises(BackendUnavailable, match="an option that stands behind the"):
            await engine.ping()
        await engine.aclose()


@UNBLOCKED
async def test_a_caller_who_leaves_stops_a_read_and_not_a_booking(server: Server) -> None:
    engine = open_engine(server.engine, timeout=5.0, booking_timeout=5.0)
    await engine.ping()
    reading = asyncio.create_task(engine.read(query(server.slow)))
    await asyncio.sleep(0.3)
    assert await server.run(server.running) == [(1,)]
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading

    def slowly(connection: Connection) -> None:
        connection.execute(text("UPDATE counter SET amount = 100 WHERE name = 'a'"))
        connection.execute(text(server.slow.replace("20", "0.5"))).all()

    booking = asyncio.create_task(engine.book(slowly))
    await asyncio.sleep(0.2)
    booking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await booking
    await asyncio.sleep(0.6)
    assert await server.run(server.running) == [(0,)]
    assert await engine.read(query("SELECT amount FROM counter WHERE name = 'a'")) == [(100,)]
    many = (engine.read(query("SELECT amount FROM counter WHERE name = 'a'")) for _ in range(12))
    assert await asyncio.gather(*many) == [[(100,)]] * 12
    await engine.aclose()


def _reading(engine: Engine) -> tuple[int, Any]:
    """How many reads run at once, and what has the patience of those that wait."""
    room = engine.reader._room
    return room._most, room


async def test_what_waits_too_long_is_unavailable_and_too_much_is_refused(server: Server) -> None:
    engine = open_engine(server.engine, timeout=2.0, booking_timeout=2.0)
    asked: list[int] = []
    readers, waiting = _reading(engine)
    slow = [asyncio.create_task(engine.read(query(server.slow))) for _ in range(readers)]
    await until(lambda: waiting.in_use == readers)
    waiting._patience = 1.0
    late = [
        asyncio.create_task(engine.read(lambda _: asked.append(1))) for _ in range(MOST_WAITING)
    ]
    await until(lambda: waiting.waiting == MOST_WAITING)
    with pytest.raises(BackendUnavailable, match="too much is waiting"):
        await engine.read(lambda _: asked.append(1))
    await engine.search(query(ONE))
    await engine.ping()
    ends = await asyncio.gather(*slow, *late, return_exceptions=True)
    await engine.aclose()
    assert {type(each) for each in ends[:readers]} == {BackendTimeout}
    assert {str(each) for each in ends[readers:]} == {
        "the practice system was busy with other calls"
    }
    assert asked == []


async def test_partners_have_their_turns_however_many_calls_one_of_them_has(server: Server) -> None:
    engine, order = open_engine(server.engine, timeout=5.0, booking_timeout=5.0), []
    readers, _ = _reading(engine)

    async def ask(partner: str) -> None:
        asking = CallNotes()
        asking.partner = partner
        CALL_NOTES.set(asking)
        await engine.read(lambda _: takes_a_moment(partner))

    def takes_a_moment(partner: str) -> None:
        """Longer than a busy machine stops one thread while others go on."""
        order.append(partner)
        time.sleep(0.02)

    await asyncio.gather(*(ask(each) for each in "a" * 5 * readers + "b"))
    await engine.aclose()
    assert order.index("b") <= 2 * readers


@UNBLOCKED
async def test_a_server_runs_as_many_statements_as_calls_may_be_under_way(server: Server) -> None:
    engine = open_engine(server.engine, timeout=9.0, booking_timeout=9.0, in_flight=5)
    slow = query(server.slow.replace("20", "0.5"))
    for run, most in ((engine.read, 5), (engine.search, 1), (engine.book, 2)):
        running = asyncio.gather(*(run(slow) for _ in range(most + 2)))
        await asyncio.sleep(0.3)
        assert await server.run(server.running) == [(most,)]
        await running
    await engine.aclose()


@pytest.mark.parametrize("server", ["sqlite"], indirect=True)
async def test_a_file_is_read_by_as_many_threads_as_calls_may_be_under_way(server: Server) -> None:
    engine = open_engine(server.engine, timeout=9.0, booking_timeout=9.0, in_flight=5)
    inside: list[int] = []

    def work(connection: Connection) -> int:
        inside.append(1)
        peak = len(inside)
        time.sleep(0.05)
        inside.pop()
        return peak

    for run, most in ((engine.read, 5), (engine.search, 1), (engine.book, 1)):
        assert max(await asyncio.gather(*(run(work) for _ in range(12)))) == most
    await engine.aclose()


async def _kill(server: Server) -> None:
    """The server gives up every other connection."""
    if server.kill:
        await server.run(server.kill)
        return
    others = await server.run(
        "SELECT id FROM information_schema.processlist WHERE db = database()"
        " AND id <> connection_id()"
    )
    await server.run(*(f"KILL {number}" for (number,) in others))


@SERVERS  # a file gives up no connection
async def test_a_dead_connection_fails_neither_the_next_read_nor_the_next_booking(
    engine: Engine, server: Server
) -> None:
    for _ in range(2):
        await asyncio.gather(*(engine.read(query(ONE)) for _ in range(engine.reader.size * 2)))
        await engine.book(change("UPDATE counter SET amount = amount WHERE name = 'a'"))
        await _kill(server)
        await asyncio.sleep(0.1)
        for _ in range(engine.reader.size * 2):
            assert await engine.read(query(ONE)) == [(1,)]
        assert await engine.book(change("UPDATE counter SET amount = 9 WHERE name = 'a'")) == 1


@pytest.mark.parametrize("kind", [pgproto.BufferError, asyncpg.ProtocolError])
async def test_an_answer_that_the_driver_cannot_read_ends_its_connection(
    kind: type[Exception],
) -> None:
    """Neither is an error of the database's interface, and what the line still holds is unknown."""
    with postgres_database() as url:
        engine = open_engine(url, timeout=2.0, booking_timeout=2.0)
        seen = []

        def pid(connection: Connection) -> int:
            return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())

        def unreadable(connection: Connection) -> None:
            seen.append(pid(connection))
            raise kind("not enough data to read one byte")

        try:
            for ask in (engine.read, engine.book):
                with pytest.raises(BackendNonsense):
                    await ask(unreadable)
                assert await ask(pid) not in seen
        finally:
            await engine.aclose()


@SERVERS  # a file gives up no connection
async def test_a_booking_whose_connection_dies_is_not_run_again(
    engine: Engine, server: Server
) -> None:
    runs: list[int] = []

    def work(connection: Connection) -> None:
        runs.append(1)
        connection.execute(text("UPDATE counter SET amount = 66 WHERE name = 'a'"))
        connection.execute(text(server.slow)).all()

    await engine.book(change("UPDATE counter SET amount = 5 WHERE name = 'a'"))
    booking = asyncio.create_task(engine.book(work))
    await asyncio.sleep(0.3)
    await _kill(server)
    with pytest.raises(BackendUnavailable):
        await booking
    assert len(runs) == 1
    assert await engine.read(query("SELECT amount FROM counter WHERE name = 'a'")) == [(5,)]


@SERVERS  # bookings on SQLite run one at a time
async def test_a_deadlock_of_bookings_is_run_anew(server: Server) -> None:
    engine = open_engine(server.engine, timeout=3.0, booking_timeout=30.0)
    runs: list[str] = []

    def work(first: str, second: str) -> Callable[[Connection], None]:
        def both(connection: Connection) -> None:
            runs.append(first)
            add = "UPDATE counter SET amount = amount + 1 WHERE name = '{}'"
            connection.execute(text(add.format(first)))
            # long enough that the other has begun, on a machine that is busy, too
            connection.execute(text(server.slow.replace("20", "1"))).all()
            connection.execute(text(add.format(second)))

        return both

    await server.run("UPDATE counter SET amount = 0")
    await asyncio.gather(engine.book(work("a", "b")), engine.book(work("b", "a")))
    assert len(runs) > 2
    assert await engine.read(query("SELECT amount FROM counter")) == [(2,), (2,)]
    await engine.aclose()


@NAMED
async def test_a_name_is_locked_for_one_booking_at_a_time_across_engines(server: Server) -> None:
    engines = [open_engine(server.engine, timeout=5.0, booking_timeout=5.0) for _ in range(2)]
    await server.run("UPDATE counter SET amount = 0")

    def work(speech: Speech) -> Callable[[Connection], None]:
        def add(connection: Connection) -> None:
            speech.lock(connection, "vet:12")
            value = connection.execute(text("SELECT amount FROM counter WHERE name='a'")).scalar()
            if server.kind != "sqlite":
                connection.execute(text(server.slow.replace("20", "0.01"))).all()
            more = text("UPDATE counter SET amount = :value WHERE name = 'a'")
            connection.execute(more, {"value": value + 1})

        return add

    await asyncio.gather(*(each.book(work(each.speech)) for each in engines for _ in range(15)))
    assert await engines[0].read(query("SELECT amount FROM counter WHERE name='a'")) == [(30,)]
    for each in engines:
        await each.aclose()


@UNBLOCKED
async def test_a_lock_that_is_not_to_be_had_in_time_is_unavailable_and_let_go_after(
    server: Server,
) -> None:
    holder = open_engine(server.engine, timeout=5.0, booking_timeout=5.0)
    other = open_engine(server.engine, timeout=5.0, booking_timeout=0.4)

    def holds(connection: Connection) -> None:
        holder.speech.lock(connection, "vet:13")
        connection.execute(text(server.slow.replace("20", "2.5"))).all()

    def wants(connection: Connection) -> bool:
        other.speech.lock(connection, "vet:13")
        return True

    holding = asyncio.create_task(holder.book(holds))
    await asyncio.sleep(0.3)
    began = time.monotonic()
    with pytest.raises(BackendUnavailable):
        await other.book(wants)
    assert time.monotonic() - began < 2.0
    await holding
    assert await other.book(wants)
    await holder.aclose()
    await other.aclose()


async def test_errors_are_adapter_errors_and_quote_no_value(engine: Engine) -> None:
    with pytest.raises(BackendNonsense) as unknown:
        await engine.read(query("SELECT '0612345678', nothing FROM visit"))
    with pytest.raises(BackendNonsense) as twice:
        await engine.book(change("INSERT INTO visit (id, vet) VALUES (1, '0612345678')"))
    assert "0612345678" not in f"{unknown.value} {twice.value}"


@pytest.mark.parametrize("value", ["\0", "a\0b", "\ud800", 10**30, -(10**30), "no number"])
async def test_a_value_that_no_column_takes_is_an_adapter_error_or_finds_nothing(
    engine: Engine, value: Any
) -> None:
    for column in ("id", "vet", "starts"):
        statement = rows_of(VISITS, sql("id")).where(sql(column) == given(None, value))
        try:
            rows = await engine.read(lambda it, each=statement: it.execute(each).all())
        except AdapterError:
            rows = []
        assert rows == []


async def test_the_columns_of_all_tables_are_told_but_those_of_the_server(
    server: Server, engine: Engine
) -> None:
    found = await engine.read(lambda it: it.execute(engine.speech.columns).all())
    told = {(str(each[0]).lower().strip(), str(each[1]).lower().strip()) for each in found}
    own = {
        *(("visit", each) for each in ("id", "vet", "starts", "note")),
        *(("counter", each) for each in ("name", "amount")),
        *(("person", each) for each in ("id", "name")),
    }
    if server.kind == "mariadb":  # shows the account's other databases, of other tests
        assert told >= own
        assert {"columns", "innodb_index_stats"}.isdisjoint(table for table, _ in told)
    else:
        assert told == own


@pytest.mark.parametrize(
    ("statement", "kind", "word"),
    [
        ("SELECT id FROM vist", "unknown_table", "vist"),
        ("SELECT nme FROM visit", "unknown_column", "nme"),
        ("SELECT visit.nme FROM visit", "unknown_column", "visit.nme"),
    ],
)
async def test_a_name_that_a_server_does_not_know_is_found_in_its_sentence(
    engine: Engine, statement: str, kind: str, word: str
) -> None:
    def complaint(connection: Connection) -> str | None:
        with pytest.raises(DBAPIError) as raised:
            engine.speech.explain(connection, text(statement), {})
        return engine.speech.complaint(raised.value)

    said = await engine.read(complaint)
    found = re.search(getattr(engine.speech, kind), said or "")
    assert found is not None, said
    assert found[1].lower().endswith(word)


VISITS = RowSource.model_validate({"from": "visit"})


async def test_texts_and_numbers_are_taken_for_any_column(engine: Engine) -> None:
    def found(connection: Connection, column: str, value: Any) -> list[Any]:
        statement = rows_of(VISITS, sql("id")).where(sql(column) >= given("x")).limit(1)
        return list(connection.execute(statement, {"x": value}).scalars())

    assert await engine.read(lambda it: found(it, "starts", "2026-03-02 10:30:00")) == [2]
    assert await engine.read(lambda it: found(it, "id", "2")) in ([2], [])
    assert await engine.read(lambda it: found(it, "id", 2)) == [2]
    assert await engine.read(lambda it: found(it, "vet", "B")) == [2]
    several = rows_of(VISITS, sql("id")).where(sql("id").in_(given("all", expanding=True)))
    ids = await engine.read(lambda it: it.execute(several, {"all": [1, 2, 3]}).scalars().all())
    assert sorted(ids) == [1, 2]


async def test_percent_signs_and_colons_of_a_mapping_survive(engine: Engine) -> None:
    rows = RowSource.model_validate(
        {"from": "visit v JOIN counter c ON c.name = 'a' AND '1:2' = '1:2' AND 'x%' LIKE '%x%'",
         "where": "v.note LIKE '50%% off%10:30' OR v.note LIKE '%ir_t'"}
    )  # fmt: skip
    statement = rows_of(rows, sql("v.note"), sql("'10:30 %s %(a)s %'")).order_by(sql("v.id"))
    found = await engine.read(lambda it: it.execute(statement.limit(5)).all())
    assert found == [("first", "10:30 %s %(a)s %"), ("50% off, at 10:30", "10:30 %s %(a)s %")]


async def test_a_search_finds_the_beginnings_of_words_without_case_and_accents(
    engine: Engine,
) -> None:
    people = RowSource.model_validate({"from": "person"})
    searchable = engine.speech.searchable(sql("name"))

    async def found(words: str) -> set[str]:
        statement = rows_of(people, sql("name"))
        for word in fold(words).split():
            statement = statement.where(searchable.like(given(None, f"% {word}%")))
        return set(await engine.read(lambda it: it.execute(statement).scalars().all()))

    for words in ("mull", "MÜLLER", "østerg", "ostergard", "Müller-Østergård"):
        assert await found(words) == {"Müller-Østergård"}, words
    for words in ("o'b", "brien", "O\u2019Brien"):
        assert await found(words) == {"O'Brien"}, words
    assert await found("elo") == await found("élodie") == {"ÉLODIE"}
    assert await found("strasse") == await found("STRASSE") == await found("straße") == {"Straße"}
    assert await found("lukasz ziz") == {"Łukasz Žižek"}
    assert await found("zoe") == await found("ZOÉ") == {"Zoé"}
    assert await found("llodie") == await found("rien") == set()
    blank = select(searchable).select_from(text("person")).where(literal_column("id") == 90)
    assert (await engine.read(lambda it: it.execute(blank).scalar())) == " "


async def test_blanks_are_trimmed_and_texts_without_a_date_known(engine: Engine) -> None:
    raw = "\t 2026-03-01 \n\r"
    literal = literal_column(f"'{raw}'")
    trimmed = select(engine.speech.trimmed(literal))
    assert await engine.read(lambda it: it.execute(trimmed).scalar()) == "2026-03-01"
    for shown, wanted in (("'2026-03-01 x'", 0), ("' 2026-03-01'", 1), ("'01.03.2026'", 1)):
        undated = select(engine.speech.undated(literal_column(shown)))
        assert await engine.read(lambda it, each=undated: it.execute(each).scalar()) == wanted
    stamp = rows_of(VISITS, sql("id")).where(engine.speech.undated(sql("starts")))
    assert await engine.read(lambda it: it.execute(stamp).all()) == []


async def test_a_page_in_the_middle_does_not_read_what_is_joined_from_its_beginning() -> None:
    """A merge join would: it knows the first key of the page for one of its sides only."""
    animals = RowSource.model_validate(
        {"from": "animal a LEFT JOIN owned o ON o.animal = a.id AND o.until IS NULL"}
    )
    page = rows_of(animals, sql("a.id"), sql("o.owner")).where(sql("a.id") > given("after"))
    page = page.order_by(sql("a.id")).limit(50)
    with postgres_database(
        "CREATE TABLE animal (id uuid PRIMARY KEY)",
        "CREATE TABLE owned (animal uuid, owner integer, until date)",
        "INSERT INTO animal SELECT md5(n::text)::uuid FROM generate_series(1, 20000) n",
        "INSERT INTO owned SELECT id, 1 FROM animal",
        "CREATE UNIQUE INDEX owned_now ON owned (animal) WHERE until IS NULL",
        "ANALYZE",
    ) as url:
        opened = open_engine(url, timeout=3.0, booking_timeout=3.0)
        after = {"after": "80000000-0000-0000-0000-000000000000"}
        words = "EXPLAIN (ANALYZE, FORMAT JSON)"
        plan = await opened.read(lambda it: explain(it, words, page, after).scalar_one())
        await opened.aclose()
    rows = [int(each) for each in re.findall(r'"Actual Rows": (\d+)', plan)]
    assert 1 <= max(rows) <= 50


async def test_a_statement_is_explained_and_not_run(engine: Engine, server: Server) -> None:
    speech = engine.speech

    def plans(connection: Connection) -> tuple[Any, Any]:
        one = rows_of(VISITS, sql("vet")).where(sql("id") == given("key"))
        scan = rows_of(VISITS, sql("vet")).where(sql("note") == given(None, "x"))
        return speech.explain(connection, one, {"key": 1}), speech.explain(connection, scan, {})

    one, scan = await engine.read(plans)
    assert [(each.table.lower(), each.scans) for each in scan] == [("visit", True)]
    assert [each.table.lower() for each in one] in (["visit"], [])
    gone = text("DELETE FROM visit")

    def delete(connection: Connection) -> None:
        speech.explain(connection, gone, {})

    await engine.book(delete)
    assert await engine.read(query("SELECT count(*) FROM visit")) == [(2,)]


@pytest.mark.parametrize(
    "statement",
    ["SELECT nothing FROM visit", "SELECT 1 FROM nowhere", "SELECT nofunction(1) FROM visit",
     "SELECT FROM (",
     "INSERT INTO visit (nothing) VALUES (1)"],
)  # fmt: skip
async def test_a_complaint_is_the_databases_sentence_and_the_transaction_goes_on(
    engine: Engine, statement: str
) -> None:
    def work(connection: Connection) -> tuple[str | None, Any]:
        try:
            engine.speech.explain(connection, text(statement), {})
        except DBAPIError as error:
            said = engine.speech.complaint(error)
        return said, connection.execute(text(ONE)).scalar()

    said, after = await engine.read(work)
    assert said
    assert "\n" not in said
    assert any(
        each in said.lower() for each in ("noth", "nowhere", "nofunction", "syntax", "token")
    ), said
    assert after == 1


async def test_a_duplicate_is_known_as_one(engine: Engine) -> None:
    def work(connection: Connection) -> ErrorKind:
        try:
            with connection.begin_nested():
                connection.execute(text("INSERT INTO visit (id, vet) VALUES (1, 'X')"))
        except DBAPIError as error:
            return engine.speech.kind(error)
        return ErrorKind.OTHER

    assert await engine.book(work) is ErrorKind.DUPLICATE


async def test_the_clock_and_the_rights_of_the_account_are_told(
    engine: Engine, server: Server
) -> None:
    clock = await engine.read(engine.speech.clock)
    assert clock.local[:4] == time.strftime("%Y")
    assert len(clock.local) == 19
    assert len(clock.utc) == (0 if server.kind == "firebird" else 19)
    assert bool(clock.zone) is (server.kind != "sqlite")
    rights = await engine.read(engine.speech.rights)
    assert bool(rights) is (server.kind != "sqlite")
    assert await engine.read(lambda it: engine.speech.unsafe_tables(it, ["visit"])) == []


async def test_nothing_listening_is_unavailable_and_no_password_is_told(server: Server) -> None:
    scheme = {
        "sqlite": "sqlite:////nowhere/secret.db",
        "mariadb": "mysql",
        "postgresql": "postgresql",
        "firebird": "firebird",
    }
    url = scheme[server.kind]
    if server.kind != "sqlite":
        url += "://gateway:p%40ss%2Fw@127.0.0.1:1/clinic"
    engine = open_engine(url, timeout=1.0, booking_timeout=1.0)
    for call in (engine.ping(), engine.book(query(ONE))):
        with pytest.raises(BackendUnavailable) as raised:
            await call
        assert "p@ss/w" not in str(raised.value)
    await engine.aclose()
    assert wrong_with(url) == []
