"""The proof that an owner of a database runs works on one of ours."""

import subprocess

import pytest

from tests.adapters.servers import execute, in_tsql, postgres_database
from tests.races.practice import schema_of
from tests.tables import ROOT

pytestmark = pytest.mark.long


def prove(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["scripts/prove-database", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_an_empty_database_is_proved_and_left_as_it_was() -> None:
    with postgres_database() as url:
        done = prove(url, "-k", "duplicate or one_gets_it or other", "-p", "no:cacheprovider")
        assert "4 passed" in done.stdout, done.stdout + done.stderr
        assert done.returncode == 0
        tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"
        assert execute(url, tables) == [(0,)]


def test_a_database_with_tables_is_left_alone() -> None:
    with postgres_database("CREATE TABLE vet (id INTEGER)") as url:
        done = prove(url, "-p", "no:cacheprovider")
        assert done.returncode == 2
        assert "the database is not empty: it has a table vet" in done.stdout + done.stderr
        assert execute(url, "SELECT count(*) FROM vet") == [(0,)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((), "URL is that of an EMPTY database"), (("odbc:///?dsn=x",), "is not proved this way")],
)
def test_what_cannot_be_proved_is_told(arguments: tuple[str, ...], said: str) -> None:
    done = prove(*arguments)
    assert done.returncode == 2
    assert said in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("statement", "tsql"),
    [
        (
            "INSERT INTO a (id, b) VALUES (1, 'TRUE'), (2, FALSE)",
            "SET IDENTITY_INSERT a ON; INSERT INTO a (id, b) VALUES (1, 'TRUE'), (2, 0);"
            " SET IDENTITY_INSERT a OFF",
        ),
        (
            "INSERT INTO a (b) VALUES (TRUE) RETURNING id",
            "INSERT INTO a (b) OUTPUT inserted.id VALUES (1)",
        ),
        ("CREATE TABLE a (b BOOLEAN)", "CREATE TABLE a (b BIT)"),
        ("START TRANSACTION", "BEGIN TRANSACTION"),
        ("COMMIT", "COMMIT"),
    ],
)
def test_the_practice_is_made_in_the_words_of_sql_server(statement: str, tsql: str) -> None:
    assert in_tsql(statement) == tsql
    assert not any("BOOLEAN" in in_tsql(each) for each in schema_of("mssql"))
