"""Trouble in the middle of a COMMIT: the one place where nobody knows what became of a booking."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, text

from adapters.base import BackendNonsense, OutcomeUnknown
from adapters.sql.engines import Engine, open_engine
from tests.adapters.servers import execute_async, postgres_database

SETUP = (
    "CREATE TABLE slow (id int)",
    "CREATE FUNCTION sleeps() RETURNS trigger LANGUAGE plpgsql AS"
    " 'BEGIN PERFORM pg_sleep(20); RETURN NULL; END'",
    "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED"
    " FOR EACH ROW EXECUTE FUNCTION sleeps()",
    "CREATE TABLE ending (id int)",
    "CREATE FUNCTION ends() RETURNS trigger LANGUAGE plpgsql AS"
    " 'BEGIN RAISE SQLSTATE ''40003''; END'",
    "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON ending DEFERRABLE INITIALLY DEFERRED"
    " FOR EACH ROW EXECUTE FUNCTION ends()",
    "CREATE TABLE once (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)",
    "INSERT INTO once VALUES (1)",
)


@pytest.fixture
def url() -> Iterator[str]:
    with postgres_database(*SETUP) as made:
        yield made


@pytest.fixture
async def engine(url: str) -> AsyncIterator[Engine]:
    opened = open_engine(url, timeout=1.0, booking_timeout=1.0)
    yield opened
    await opened.aclose()


def insert(table: str) -> Any:
    return lambda connection: connection.execute(text(f"INSERT INTO {table} VALUES (1)"))


async def test_a_connection_that_dies_while_it_commits_leaves_the_outcome_unknown(
    engine: Engine, url: str
) -> None:
    booking = asyncio.create_task(engine.book(insert("slow")))
    await asyncio.sleep(0.4)
    await execute_async(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    with pytest.raises(OutcomeUnknown):
        await booking
    assert await engine.read(lambda it: it.execute(text("SELECT 1")).scalar()) == 1


async def test_a_commit_that_takes_too_long_leaves_the_outcome_unknown(engine: Engine) -> None:
    with pytest.raises(OutcomeUnknown):
        await engine.book(insert("slow"))


async def test_a_commit_whose_completion_is_unknown_is_not_tried_again(engine: Engine) -> None:
    """SQLSTATE 40003, in the class of what is undone and worth another try."""
    tries: list[int] = []

    def work(connection: Connection) -> None:
        tries.append(1)
        insert("ending")(connection)

    with pytest.raises(OutcomeUnknown):
        await engine.book(work)
    assert tries == [1]


async def test_a_commit_that_the_database_refuses_left_certainly_nothing(engine: Engine) -> None:
    with pytest.raises(BackendNonsense):
        await engine.book(insert("once"))
    assert await engine.read(lambda it: it.execute(text("SELECT count(*) FROM once")).scalar()) == 1
