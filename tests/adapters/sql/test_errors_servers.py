"""What servers refuse in values, told apart from names and grammar."""

from contextlib import AbstractContextManager
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from adapters.sql.engines import open_engine
from adapters.sql.engines.base import ErrorKind
from tests.adapters.servers import firebird_database, mariadb_database, postgres_database

pytestmark = pytest.mark.long

TABLE = "CREATE TABLE visit (starts TIMESTAMP{}, note VARCHAR(4), minutes SMALLINT)"
REFUSED = {
    "INSERT INTO visit (starts) VALUES ('no time')": ErrorKind.UNFIT,
    "INSERT INTO visit (minutes) VALUES ('half an hour')": ErrorKind.UNFIT,
    "INSERT INTO visit (minutes) VALUES (100000)": ErrorKind.UNFIT,
    "INSERT INTO visit (note) VALUES ('too long')": ErrorKind.LONG,
    "INSERT INTO visit (nothing) VALUES (1)": ErrorKind.STATEMENT,
}


@pytest.mark.parametrize(
    ("database", "letters"),
    [
        (postgres_database(TABLE.format("")), None),
        (
            mariadb_database(f"{TABLE.format(' NULL')} CHARACTER SET latin1"),
            "INSERT INTO visit (note) VALUES ('\U0001f436')",
        ),
        (
            firebird_database(
                TABLE.format("").replace("VARCHAR(4)", "VARCHAR(4) CHARACTER SET WIN1252")
            ),
            "INSERT INTO visit (note) VALUES ('\U0001f436')",
        ),
    ],
    ids=["postgresql", "mariadb", "firebird"],
)
async def test_what_is_wrong_with_a_value_is_told_from_a_bad_statement(
    database: AbstractContextManager[str], letters: str | None
) -> None:
    wanted = REFUSED | ({letters: ErrorKind.UNFIT} if letters else {})
    with database as url:
        engine = open_engine(url, timeout=5.0, booking_timeout=5.0)

        def work(connection: Any) -> dict[str, ErrorKind]:
            told = {}
            for statement in wanted:
                try:
                    with connection.begin_nested():
                        connection.execute(text(statement))
                except DBAPIError as error:
                    told[statement] = engine.speech.kind(error)
            return told

        assert await engine.book(work) == wanted
        await engine.aclose()
