"""What comes out of a driver, and what may go in: plain forms, whatever the column's type."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from sqlalchemy import column, insert, table, text

from adapters.sql.engines import open_engine
from adapters.sql.engines.base import Engine, given
from adapters.sql.mapping import Rows
from adapters.sql.reading import rows_of, sql
from tests.adapters.servers import mariadb_database, postgres_database

POSTGRES = {
    "NULL::int": None,
    "true": True,
    "7::smallint": 7,
    "9007199254740993::bigint": 9007199254740993,
    "12::numeric(10,0)": 12,
    "sum(3::bigint)": 3,
    "45.5000::numeric(10,4)": "45.5000",
    "'NaN'::numeric": "NaN",
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
    "SUM(3)": 3,
    "CAST('45.5' AS DECIMAL(10,4))": "45.5000",
    "1.5E0": 1.5,
    "CAST('2026-03-01' AS DATE)": "2026-03-01",
    "CAST('2026-03-01 09:00' AS DATETIME)": "2026-03-01 09:00:00",
    "CAST('1000-01-01 00:00:00' AS DATETIME)": "1000-01-01 00:00:00",
    "MAX(zero)": "0000-00-00 00:00:00",
    "MAX(never)": "0000-00-00",
    "CAST('-30:15:00' AS TIME)": "-30:15:00",
    "CAST('100:00:01' AS TIME)": "100:00:01",
    "MAX(made)": 2026,
    "MAX(flag)": b"\x01",
    "MAX(bin)": b"\x00\xff",
    "MAX(latin)": "é",
    "MAX(kind)": "dog",
    "MAX(body)": '{"a": 1}',
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


@pytest.fixture(params=["postgres", "mariadb"])
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    url = request.getfixturevalue(request.param)
    opened = open_engine(url, timeout=3.0, booking_timeout=3.0)
    yield opened
    await opened.aclose()


async def _values(url: str, expressions: dict[str, Any], source: str) -> dict[str, Any]:
    engine = open_engine(url, timeout=3.0, booking_timeout=3.0)
    statement = rows_of(Rows.model_validate({"from": source}), *(sql(each) for each in expressions))
    row = await engine.read(lambda connection: connection.execute(statement).one())
    await engine.aclose()
    return dict(zip(expressions, row, strict=True))


async def test_postgres_values_are_plain(postgres: str) -> None:
    got = await _values(postgres, POSTGRES, "(VALUES (1)) AS one(n)")
    assert got == POSTGRES
    assert {key: type(value) for key, value in got.items()} == {
        key: type(value) for key, value in POSTGRES.items()
    }


async def test_mariadb_values_are_plain(mariadb: str) -> None:
    got = await _values(mariadb, MARIADB, "odd")
    assert got == MARIADB
    assert {key: type(value) for key, value in got.items()} == {
        key: type(value) for key, value in MARIADB.items()
    }


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
        rows = rows_of(Rows.model_validate({"from": "every_type"}), sql(name))
        if value is None or name == "j":
            return connection.execute(rows).all()
        return connection.execute(rows.where(sql(name) == given("x")), {"x": value}).all()

    if engine.speech.__class__.__name__ == "MysqlSpeech" and value == "false":
        pytest.skip("MariaDB knows false as a word, not as a text")
    assert len(await engine.book(write)) == 1


async def test_tables_without_transactions_are_named(mariadb: str) -> None:
    engine = open_engine(mariadb, timeout=3.0, booking_timeout=3.0)
    names = ["odd", "`OLD`", "quick", "nowhere"]
    found = await engine.read(lambda it: engine.speech.transactional(it, names))
    await engine.aclose()
    assert found == ["`OLD`", "quick"]
