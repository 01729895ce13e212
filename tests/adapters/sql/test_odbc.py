"""Databases behind ODBC drivers: addresses, dialects, drivers that hang, SQL without a dialect."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyodbc
import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from adapters.base import BackendNonsense, BackendTimeout, BackendUnavailable, Filter, SlotTaken
from adapters.documents.problems import DocumentErrors
from adapters.draft import draft_mapping
from adapters.sql.adapter import SqlAdapter
from adapters.sql.engines import Engine, open_engine, wrong_with
from adapters.sql.engines.odbc import connection_string
from adapters.sql.engines.odbc_speech import OdbcMysqlSpeech, OdbcPostgresSpeech, OdbcSqliteSpeech
from adapters.sql.engines.threads import MOST_LEFT
from gateway.backend import shapes
from tests.adapters.ailing import relayed
from tests.adapters.clinic import NOW, everything
from tests.adapters.servers import (
    by_odbc,
    execute_async,
    firebird_database,
    mariadb_database,
    postgres_database,
)
from tests.adapters.sql.test_sql_adapter_servers import MAPPING, SCHEMA, _draft, connect
from tests.races.practice import practice
from tests.tables import ROOT
from tests.waiting import until

pytestmark = pytest.mark.long

POSTGRES_WORDS = {"stamp": "timestamp", "serial": "serial PRIMARY KEY"}
MARIADB_WORDS = {"stamp": "datetime", "serial": "INTEGER AUTO_INCREMENT PRIMARY KEY"}


def one(connection: Any) -> Any:
    return connection.scalar(text("SELECT count(*) FROM vet"))


@asynccontextmanager
async def opened(url: str, **more: Any) -> AsyncIterator[Engine]:
    engine = open_engine(url, **{"timeout": 3.0, "booking_timeout": 3.0, **more})
    try:
        yield engine
    finally:
        await engine.aclose()


@pytest.fixture
def clinic() -> Iterator[str]:
    with postgres_database(*(each.format(**POSTGRES_WORDS) for each in SCHEMA)) as url:
        yield url


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("odbc://u:p@/?dsn=clinic", "UID=u;PWD=p;dsn=clinic"),
        (
            "odbc://u:p%3Bx%7D@h:5/c?driver=PostgreSQL+Unicode&dialect=plain",
            "Server=h;Port=5;Database=c;UID=u;PWD={p;x}}};driver=PostgreSQL Unicode",
        ),
        (
            "odbc:///?driver=SQLite3&Database=/srv/a b.db&dialect=sqlite&limit=top",
            "Database=/srv/a b.db;driver=SQLite3",
        ),
        (
            "odbc:///?dsn=x&dialect=postgresql&protocol=7.4-1",
            "dsn=x;protocol=7.4-1;UseServerSidePrepare=0;BoolsAsChar=0",
        ),
    ],
)
def test_an_address_becomes_the_words_of_the_driver_manager(url: str, words: str) -> None:
    assert wrong_with(url) == []
    assert connection_string(make_url(url)) == words


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("odbc://u:p@h/clinic", "must name a data source or a driver, such as odbc://"),
        ("odbc:///?dsn=x&dialect=oracle", "has a dialect 'oracle' that is not known: postgresql"),
        ("odbc://u@/?dsn=x&PWD=p&dialect=plain", "has a password behind the ?: write it before"),
        ("odbc:///?dsn=x&limit=rows", "has a limit 'rows' that is not known: fetch, limit, top"),
    ],
)
def test_an_address_that_leads_nowhere_is_told(url: str, said: str) -> None:
    [found] = wrong_with(url)
    assert found.startswith(said)


def unnamed(url: str) -> str:
    """The database through its driver, without the name of its dialect."""
    address = make_url(by_odbc(url)).difference_update_query(["dialect"])
    return address.render_as_string(hide_password=False)


async def test_a_database_says_which_dialect_it_speaks(clinic: str, tmp_path: Path) -> None:
    async with opened(unnamed(clinic)) as engine:
        assert isinstance(engine.speech, OdbcPostgresSpeech)
        assert await engine.read(one) == 2
    async with opened(unnamed(f"sqlite:///{tmp_path}/x.db")) as engine:
        assert isinstance(engine.speech, OdbcSqliteSpeech)
    with mariadb_database("CREATE TABLE vet (id INTEGER)") as url:
        async with opened(unnamed(url)) as engine:
            assert isinstance(engine.speech, OdbcMysqlSpeech)


def test_where_nothing_answers_a_dialect_has_to_be_named() -> None:
    nobody = unnamed("postgresql://u:p@127.0.0.1:1/x")
    with pytest.raises(ValueError, match=r"\(08001\): name it in backend\.url, as \?dialect="):
        open_engine(nobody, timeout=1, booking_timeout=1)


def test_why_it_cannot_be_asked_for_its_dialect_is_told() -> None:
    with mariadb_database() as url:
        refused = make_url(unnamed(url)).set(password="hidden")
        for wrong, said in (
            (refused.render_as_string(hide_password=False), r"refuses the account .* \(28000\)"),
            ("odbc://u:hidden@/?dsn=nowhere", "does not know the data source or the driver"),
            ("odbc://u:hidden@h/x?driver=Nobody", "does not know the data source or the driver"),
        ):
            with pytest.raises(ValueError, match=said) as raised:
                open_engine(wrong, timeout=1, booking_timeout=1)
            assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("driver", ["No Such Driver", "FreeTDS"])
async def test_what_cannot_be_reached_is_unavailable_and_no_password_is_told(driver: str) -> None:
    """FreeTDS is here without a server: what it says of that is all that can be proved."""
    url = f"odbc://gateway:hidden@127.0.0.1:1/x?driver={driver}&dialect=mssql&TDS_Version=7.4"
    if driver == "FreeTDS" and driver not in pyodbc.drivers():
        pytest.skip("install the ODBC driver tdsodbc")
    async with opened(url, timeout=2.0) as engine:
        for call in (engine.ping(), engine.read(one)):
            with pytest.raises((BackendUnavailable, BackendNonsense)) as raised:
                await call
            assert "hidden" not in str(raised.value)
        if driver != "FreeTDS":
            assert "does not know the data source or the driver" in str(raised.value)


@pytest.mark.parametrize("kind", ["mariadb", "sqlite"])
async def test_a_draft_is_that_of_the_databases_own_driver(kind: str, tmp_path: Path) -> None:
    with practice(kind, tmp_path) as made:
        drafts = [
            await draft_mapping(url, shapes(), "Europe/Paris", "", accept=True)
            for url in (made.url, by_odbc(made.url))
        ]
    assert drafts[0][0] == drafts[1][0]
    assert "from: patient" in drafts[0][0]


@pytest.mark.parametrize("dialect", ["plain", "postgresql"])
async def test_what_cannot_list_tables_has_no_draft(clinic: str, dialect: str) -> None:
    with pytest.raises(ValueError, match="the tables cannot be listed"):
        await draft_mapping(by_odbc(clinic, dialect=dialect), shapes(), "Europe/Amsterdam", "")


# Whatever hangs: a connection that is made, and then silent.


@pytest.fixture(params=["odbc", "firebird"])
def hanging(request: pytest.FixtureRequest, clinic: str) -> Iterator[tuple[str, Any]]:
    """A database's address, and what makes of a port's address the gateway's."""
    if request.param == "odbc":
        yield clinic, by_odbc
    else:
        words = {"stamp": "timestamp", "serial": "INTEGER"}
        with firebird_database(*(each.format(**words) for each in SCHEMA[:2])) as url:
            yield url, str


async def test_a_driver_that_hangs_holds_up_no_more_than_its_own_threads(
    hanging: tuple[str, Any],
) -> None:
    url, made = hanging
    relay, there = await relayed(url)
    async with opened(made(there), timeout=0.2, in_flight=1) as engine, opened(made(url)) as well:
        most = MOST_LEFT * engine.reader.size
        lane: Any = engine.reader
        assert await engine.read(one) == 2
        for number in range(most):
            relay_is_new = number == 0 or lane.left_alone
            assert relay_is_new
            await relay.slow()
            with pytest.raises((BackendTimeout, BackendUnavailable)):
                await engine.read(one)
            assert await well.read(one) == 2, "others go on"
        await until(lambda: lane.left_alone <= most)
        while lane.left_alone < most:  # what logs in has a time of its own in some drivers
            with pytest.raises((BackendTimeout, BackendUnavailable)):
                await engine.read(one)
        began = time.monotonic()
        with pytest.raises(BackendUnavailable, match="driver hangs: 4 calls have not come back"):
            await engine.read(one)
        assert time.monotonic() - began < 0.1
        await relay.mend()
        await until(lambda: not lane.left_alone)
        assert await engine.read(one) == 2
    await relay.aclose()


PROGRAM = """
import asyncio, sys
from sqlalchemy import text
from adapters.base import AdapterError
from adapters.sql.engines import open_engine

async def main():
    engine = open_engine(sys.argv[1], timeout=0.3, booking_timeout=0.3)
    work = lambda connection: connection.scalar(text("SELECT count(*) FROM vet"))
    print(await engine.read(work), flush=True)
    sys.stdin.readline()
    for call in (engine.read, engine.book, engine.search):
        try:
            await call(work)
        except AdapterError as error:
            print(type(error).__name__, flush=True)
    await engine.aclose()
    print("closed", flush=True)

asyncio.run(main())
"""


async def test_a_process_ends_though_its_driver_hangs(hanging: tuple[str, Any]) -> None:
    url, made = hanging
    relay, there = await relayed(url)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, made(there), cwd=ROOT,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"2\n"
        await relay.slow()
        async with asyncio.timeout(20):
            out, err = await process.communicate(b"\n")
        assert out.splitlines()[-1] == b"closed"
        assert process.returncode == 0, err
    finally:
        if process.returncode is None:
            process.kill()
        await relay.aclose()


TEXTS = ("Müller-Østergård", "é" * 300, "日本語 テキスト", "a😀b😀c", "ab'c\\d%s{}\n\t" * 900, "")


@pytest.mark.parametrize("kind", ["postgresql", "mariadb", "sqlite"])
async def test_texts_arrive_as_they_were_sent(kind: str, tmp_path: Path) -> None:
    """As wide letters, MariaDB's driver stores another text than it is given."""
    made = "CREATE TABLE said (number INTEGER, words TEXT)"
    databases = {"postgresql": postgres_database, "mariadb": mariadb_database}
    with (
        databases[kind](made)
        if kind in databases
        else nullcontext(f"sqlite:///{tmp_path}/said.db") as url
    ):
        async with opened(by_odbc(url)) as engine:

            def write(connection: Any) -> None:
                if kind == "sqlite":
                    connection.execute(text(made))
                for number, words in enumerate(TEXTS):
                    values = {"number": number, "words": words}
                    connection.execute(text("INSERT INTO said VALUES (:number, :words)"), values)

            await engine.book(write)
            question = "SELECT words FROM said ORDER BY number"
            found = await engine.ask(lambda it: it.run(question, ()))
            assert tuple(words for (words,) in found) == TEXTS
        if kind != "sqlite":  # and as the database's own driver has them
            assert tuple(each for (each,) in await execute_async(url, question)) == TEXTS


# Bookings and reads of the same clinic through each driver.


@pytest.fixture(params=["postgresql", "mariadb"])
def there(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "postgresql":
        with postgres_database(*(each.format(**POSTGRES_WORDS) for each in SCHEMA)) as url:
            yield url
    else:
        with mariadb_database(*(each.format(**MARIADB_WORDS) for each in SCHEMA)) as url:
            yield url


async def test_of_many_who_book_one_time_one_gets_it(there: str, tmp_path: Path) -> None:
    """Half of them through the driver, half without it: they lock by the same name."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for each in folders:
        each.mkdir()
    adapters = [connect(by_odbc(there), folders[0]), connect(there, folders[1])]
    draft = await _draft(adapters[0])
    drafts = [replace(draft, reference=f"{number:016d}") for number in range(20)]
    ends = await asyncio.gather(
        *(adapters[n % 2].create_appointment(each) for n, each in enumerate(drafts)),
        return_exceptions=True,
    )
    assert sorted({type(each).__name__ for each in ends}) == ["SlotTaken", "dict"]
    assert len([each for each in ends if isinstance(each, dict)]) == 1
    assert await execute_async(there, "SELECT count(*) FROM visit") == [(2,)]
    for each in adapters:
        await each.aclose()


PLAIN = MAPPING.replace("  reference: reference\n", "  reference: reference\nLOCK")
LOCK = "  lock: UPDATE vet SET name = name WHERE id = :vet\n"


async def test_without_a_dialect_a_sequence_is_refused_at_its_line(
    clinic: str, tmp_path: Path
) -> None:
    sequence = "  steps:\n", "  steps:\n    - {sequence: visit_id_seq, name: number}\n"
    text = PLAIN.replace("LOCK", LOCK).replace(*sequence)
    adapter = connect(by_odbc(clinic, limit="limit", dialect="plain"), tmp_path, text)
    with pytest.raises(DocumentErrors, match="draw the number from a counter") as raised:
        await adapter.check()
    [problem] = raised.value.problems
    assert "sequence" in text.splitlines()[problem.line - 1]
    with pytest.raises(BackendNonsense):
        await adapter.create_appointment(await _draft(adapter))
    await adapter.aclose()


def plain(url: str, folder: Path, lock: str = "") -> SqlAdapter:
    address = by_odbc(url, limit="limit", dialect="plain")
    text = PLAIN.replace("LOCK", lock)
    if lock:  # SQL-92 does not tell the number of a new row
        text = text.replace("    - insert: visit\n", SEQUENCE).replace(
            "        vet: {draft: vetId}\n",
            "        id: {made: number}\n        vet: {draft: vetId}\n",
        )
    return connect(address, folder, text)


SEQUENCE = """\
    - counter: numbers
      where: name = 'visit'
      column: last
      name: number
    - insert: visit
"""


async def test_sql_without_a_dialect_reads_and_books_only_where_the_mapping_says_how_to_lock(
    clinic: str, tmp_path: Path
) -> None:
    adapter = plain(clinic, tmp_path)
    with pytest.raises(DocumentErrors, match=r"gives no way to keep two bookings apart") as raised:
        await adapter.check()
    assert [each.code for each in raised.value.problems] == ["no-lock"]
    clients = await everything(adapter, "clients", limit=1)
    assert [each["lastName"] for each in clients] == ["Müller", "O'Brien"]
    found = Filter("search", ("firstName", "lastName"), "brien")
    assert await everything(adapter, "clients", found) == []
    found = Filter("search", ("firstName", "lastName"), "elodie")
    assert await everything(adapter, "clients", found) == []
    with pytest.raises(BackendUnavailable, match=r"booking\.lock"):
        await adapter.create_appointment(await _draft(adapter))
    await adapter.aclose()
    await execute_async(
        clinic,
        "CREATE TABLE numbers (name VARCHAR(9), last INTEGER)",
        "INSERT INTO numbers VALUES ('visit', 100)",
    )
    folders = [tmp_path / "one", tmp_path / "two"]
    for each in folders:
        each.mkdir()
    adapters = [plain(clinic, each, LOCK) for each in folders]
    await adapters[0].check()
    draft = await _draft(adapters[0])
    drafts = [replace(draft, reference=f"{number:016d}") for number in range(8)]
    ends = await asyncio.gather(
        *(adapters[n % 2].create_appointment(each) for n, each in enumerate(drafts)),
        return_exceptions=True,
    )
    assert len([each for each in ends if isinstance(each, dict)]) == 1, ends
    assert {type(each) for each in ends if not isinstance(each, dict)} == {SlotTaken}
    assert await execute_async(clinic, "SELECT max(id) FROM visit") == [(101,)]
    winner = next(n for n, each in enumerate(ends) if isinstance(each, dict))
    assert list(await adapters[0].find_appointments(drafts[winner], NOW)) == [ends[winner]]
    for each in adapters:
        await each.aclose()
