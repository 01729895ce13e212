"""What comes out of a driver, and what may go in: plain forms, whatever the column's type."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import column, insert, literal_column, table, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError

from adapters.base import BackendUnavailable
from adapters.mapping.models import RowSource
from adapters.sql.columns import rows_of, sql
from adapters.sql.engines import Engine, open_engine
from adapters.sql.engines.base import given
from adapters.sql.engines.mysql import MysqlSpeech
from tests.adapters.servers import execute_async, mariadb_database, postgres_database

POSTGRES = {
    "NULL::int": None,
    "true": True,
    "7::smallint": 7,
    "9007199254740993::bigint": 9007199254740993,
    "12::numeric(10,0)": 12,
    "sum(3::bigint)": 3,
    "45.5000::numeric(10,4)": Decimal("45.5000"),
    "'NaN'::numeric": Decimal("NaN"),
    "1.5::real": 1.5,
    "'2026-03-01'::date": "2026-03-01",
    "'2026-03-01 09:00'::timestamp": "2026-03-01 09:00:00",
    "'infinity'::timestamp": "infinity",
    "'4000-01-01 BC'::date": "4000-01-01 BC",
    "'0044-03-15 00:00:00'::timestamp": "0044-03-15 00:00:00",
    "'2026-03-01 09:00+00'::timestamptz AT TIME ZONE 'Europe/Paris'": "2026-03-01 10:00:00",
    "'24:00'::time": "24:00:00",
    "'1 day 02:00'::interval": "1 day 02:00:00",
    "'6F9619FF-8B86-D011-B42D-00C04FC964FF'::uuid": "6f9619ff-8b86-d011-b42d-00c04fc964ff",
    "'\\x00ff'::bytea": b"\x00\xff",
    "'a'::char(3)": "a  ",
    "'é'::varchar": "é",
    "'{\"a\": 1}'::jsonb": '{"a": 1}',
    "B'101'": "101",
    "'10.0.0.1'::inet": "10.0.0.1",
    "'12.50'::money": "$12.50",
    "'sad'::mood": "sad",
    "'7'::seven": 7,
}
MARIADB = {
    "CAST(NULL AS CHAR)": None,
    "TRUE": 1,
    "9007199254740993": 9007199254740993,
    "CAST(12 AS DECIMAL(10,0))": 12,
    "(SELECT SUM(3))": 3,
    "CAST('45.5' AS DECIMAL(10,4))": Decimal("45.5000"),
    "1.5E0": 1.5,
    "CAST('2026-03-01' AS DATE)": "2026-03-01",
    "CAST('2026-03-01 09:00' AS DATETIME)": "2026-03-01 09:00:00",
    "CAST('1000-01-01 00:00:00' AS DATETIME)": "1000-01-01 00:00:00",
    "zero": "0000-00-00 00:00:00",
    "never": "0000-00-00",
    "CAST('-30:15:00' AS TIME)": "-30:15:00",
    "CAST('100:00:01' AS TIME)": "100:00:01",
    "made": 2026,
    "flag": b"\x01",
    "bin": b"\x00\xff",
    "latin": "é",
    "kind": "dog",
    "body": '{"a": 1}',
}
ODD = (
    "SET SESSION sql_mode = ''",
    "CREATE TABLE odd (zero DATETIME, never DATE, made YEAR, flag BIT(1), bin VARBINARY(9),"
    " latin VARCHAR(9) CHARACTER SET latin1, kind ENUM('cat', 'dog'), body JSON)",
    "INSERT INTO odd VALUES (0, '0000-00-00', 2026, b'1', 0x00FF, 'é', 'dog', '{\"a\": 1}')",
    "CREATE TABLE old (id INT) ENGINE=MyISAM",
    "CREATE TABLE quick (id INT) ENGINE=MEMORY",
)
TYPES = ("CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE DOMAIN seven AS integer")
EVERY = {
    "n": ("integer", [5, "5", True]),
    "b": ("boolean", [True, 1, "1", 0, "false", None]),
    "v": ("varchar(40)", ["x", 5, True, None]),
    "f": ("double precision", [1.5, "2.5", 3]),
    "d": ("numeric(10,2)", ["12.50", 12, 1.5]),
    "t": ("timestamp", ["2026-03-01 09:00:00", None]),
    "day": ("date", ["2026-03-01"]),
    "clock": ("time", ["09:30", "09:30:00"]),
    "j": ("json", ['{"a": 1}']),
}


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in EVERY.items())
    with postgres_database(*TYPES, f"CREATE TABLE every_type ({columns}, u uuid)") as url:
        yield url


@pytest.fixture(scope="module")
def mariadb() -> Iterator[str]:
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in EVERY.items())
    with mariadb_database(*ODD, f"CREATE TABLE every_type ({columns})") as url:
        yield url


@pytest.fixture(params=["postgres", pytest.param("mariadb", marks=pytest.mark.long)])
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    url = request.getfixturevalue(request.param)
    opened = open_engine(url, timeout=3.0, booking_timeout=3.0)
    yield opened
    await opened.aclose()


async def _values(url: str, expressions: dict[str, Any], source: str) -> dict[str, Any]:
    engine = open_engine(url, timeout=3.0, booking_timeout=3.0)
    statement = rows_of(
        RowSource.model_validate({"from": source}), *(sql(each) for each in expressions)
    )
    row = await engine.read(lambda connection: connection.execute(statement).one())
    await engine.aclose()
    return dict(zip(expressions, row, strict=True))


async def test_postgres_values_are_plain(postgres: str) -> None:
    got = await _values(postgres, POSTGRES, "(VALUES (1)) AS one(n)")
    assert list(map(repr, got.values())) == list(map(repr, POSTGRES.values()))


async def test_mariadb_values_are_plain(mariadb: str) -> None:
    got = await _values(mariadb, MARIADB, "odd")
    assert list(map(repr, got.values())) == list(map(repr, MARIADB.values()))


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, (_, values) in EVERY.items() for value in values]
)
async def test_any_plain_value_is_written_into_any_column_and_found_again(
    engine: Engine, name: str, value: Any
) -> None:
    row = insert(table("every_type", column(name)))

    def write(connection: Any) -> Any:
        connection.execute(text("DELETE FROM every_type"))
        connection.execute(row, {name: value})
        rows = rows_of(RowSource.model_validate({"from": "every_type"}), sql(name))
        if value is None or name == "j":
            return connection.execute(rows).all()
        return connection.execute(rows.where(sql(name) == given("x")), {"x": value}).all()

    if isinstance(engine.speech, MysqlSpeech) and value == "false":
        value = 0  # MariaDB knows false as a word, not as a text
    assert len(await engine.book(write)) == 1


async def test_tables_without_transactions_are_named(mariadb: str) -> None:
    engine = open_engine(mariadb, timeout=3.0, booking_timeout=3.0)
    names = ["odd", "`OLD`", "quick", "nowhere"]
    found = await engine.read(lambda it: engine.speech.unsafe_tables(it, names))
    await engine.aclose()
    assert found == ["`OLD`", "quick"]


async def test_a_table_that_is_changed_between_two_reads_is_read_anew(postgres: str) -> None:
    await execute_async(
        postgres, "CREATE TABLE changing (a int)", "INSERT INTO changing VALUES (1)"
    )
    engine = open_engine(postgres, timeout=3.0, booking_timeout=3.0)
    look = rows_of(RowSource.model_validate({"from": "changing"}), literal_column("changing.*"))
    for wanted, change in [
        ((1,), "ALTER TABLE changing ADD b varchar(3) DEFAULT 'x'"),
        ((1, "x"), "ALTER TABLE changing ALTER b TYPE text, ALTER a TYPE numeric(9,2)"),
        ((Decimal("1.00"), "x"), "SELECT 1"),
    ]:
        for _ in range(6):
            assert await engine.read(lambda it: it.execute(look).one()) == wanted
        await execute_async(postgres, change)
    await engine.aclose()


@pytest.mark.parametrize("encoding", ["LATIN1", "WIN1252", "LATIN9"])
async def test_a_postgres_database_in_an_old_encoding_is_searched_too(encoding: str) -> None:
    options = f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    people = "INSERT INTO person VALUES ('Müller-Østergård'), ('ÉLODIE'), ('Straße')"
    with postgres_database("CREATE TABLE person (name text)", people, options=options) as url:
        engine = open_engine(url, timeout=3.0, booking_timeout=3.0)
        searchable = engine.speech.searchable(sql("name"))
        rows = rows_of(RowSource.model_validate({"from": "person"}), sql("name"))
        for word, wanted in (
            ("muller", 1),
            ("ostergard", 1),
            ("elod", 1),
            ("strasse", 1),
            ("x", 0),
        ):
            found = rows.where(searchable.like(given(None, f"% {word}%")))
            assert len(await engine.read(lambda it, each=found: it.execute(each).all())) == wanted
        await engine.aclose()


async def test_an_account_with_the_smallest_rights_reads_and_books_and_has_none_too_many(
    postgres: str, mariadb: str
) -> None:
    name, password = f"gateway_{uuid4().hex[:8]}", "p@ss/w:%41"
    address = make_url(postgres).set(username=name, password=password)
    await execute_async(
        postgres,
        f"CREATE ROLE {name} LOGIN PASSWORD '{password}'",
        f"GRANT SELECT, INSERT, UPDATE ON every_type TO {name}",
    )
    try:
        await _reads_and_books(address)
    finally:
        await execute_async(postgres, f"DROP OWNED BY {name}", f"DROP ROLE {name}")
    address = make_url(mariadb).set(username=name, password=password)
    database = address.database
    await execute_async(
        mariadb,
        f"CREATE USER {name}@'%' IDENTIFIED BY '{password}'",
        f"CREATE USER {name}@localhost IDENTIFIED BY '{password}'",
        f"GRANT SELECT, INSERT, UPDATE ON {database}.every_type TO {name}@localhost",
        f"GRANT SELECT, INSERT, UPDATE ON {database}.every_type TO {name}@'%'",
    )
    try:
        await _reads_and_books(address)
    finally:
        await execute_async(mariadb, f"DROP USER {name}@'%', {name}@localhost")


async def _reads_and_books(address: URL) -> None:
    url = address.render_as_string(hide_password=False)
    assert "p%40ss%2Fw%3A%2541" in url
    engine = open_engine(url, timeout=3.0, booking_timeout=3.0)
    rows = rows_of(RowSource.model_validate({"from": "every_type"}), sql("n"))

    def book(connection: Any) -> Any:
        engine.speech.lock(connection, "vet:1")
        connection.execute(insert(table("every_type", column("n"))), {"n": 77})
        return connection.execute(rows.where(sql("n") == given("n", 77))).scalar()

    assert await engine.book(book) == 77
    assert await engine.read(engine.speech.rights) == []

    def denied(connection: Any) -> str | None:
        try:
            engine.speech.explain(connection, text("DELETE FROM every_type"), {})
        except DBAPIError as error:
            return engine.speech.complaint(error)
        return None

    assert "every_type" in str(await engine.book(denied))
    await engine.aclose()
    wrong = address.set(password="other").render_as_string(hide_password=False)
    engine = open_engine(wrong, timeout=1.0, booking_timeout=1.0)
    with contextlib.suppress(BackendUnavailable):  # a server may trust who comes from its machine
        await engine.ping()
    await engine.aclose()
