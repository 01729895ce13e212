"""Proves a kind of database on an empty one of its own: scripts/prove-database starts it.

It is no part of the test run, which has no such database.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from adapters.base import SlotTaken
from adapters.conformance import AdapterConformance
from adapters.sql.engines import open_engine, wrong_with
from adapters.sql.engines.base import ErrorKind
from tests.adapters.clinic import a_draft
from tests.adapters.servers import execute_async
from tests.adapters.small_practice import SmallPractice, kept_rows, small_practice
from tests.adapters.waits import PATIENT, waits_of
from tests.races.practice import Practice, schema_of, tables_of

URL = os.environ.get("PROOF_URL", "")
# What the practices of tests call a kind of database, by the beginning of its address.
PROVED = ("mssql", "postgresql", "mysql", "mariadb", "firebird")
KINDS = {"postgresql": "postgresql", "mysql": "mariadb", "mariadb": "mariadb"}


@pytest.fixture(scope="session")
def made() -> Iterator[Practice]:
    """The small practice in that database; what was there before is not touched."""
    if not URL:
        pytest.exit("set PROOF_URL, or call scripts/prove-database URL", 2)
    if wrong := wrong_with(URL):
        pytest.exit(f"the database's address {wrong[0]}", 2)
    scheme = make_url(URL).drivername
    if scheme not in PROVED:
        pytest.exit(f"{scheme}: is not proved this way; {', '.join(PROVED)} are", 2)
    kind = KINDS.get(scheme, scheme)
    practice = Practice(kind, URL)
    asyncio.run(_nothing_there(practice))
    try:
        asyncio.run(practice.run(*schema_of(kind), *kept_rows()))
        yield practice
    finally:
        asyncio.run(_dropped(practice))


async def _nothing_there(practice: Practice) -> None:
    for table in tables_of():
        try:
            await practice.run(f"SELECT count(*) FROM {table}")
        except Exception:  # noqa: BLE001 - whatever its driver raises: there is no such table
            continue
        pytest.exit(f"the database is not empty: it has a table {table}", 2)


async def _dropped(practice: Practice) -> None:
    made = [f"TABLE {table}" for table in tables_of()]
    for each in [*made, *(["PROCEDURE pause"] if practice.kind == "firebird" else [])]:
        try:
            await practice.run(f"DROP {each}")
        except Exception as error:  # noqa: BLE001 - it may never have been made
            print(f"{each} was not dropped: {type(error).__name__}")  # noqa: T201


class TestConformance(AdapterConformance):
    cannot: ClassVar[set[str]] = {"write_unreadable"}

    @pytest.fixture
    async def practice(
        self, request: pytest.FixtureRequest, made: Practice, tmp_path: Path
    ) -> AsyncIterator[SmallPractice]:
        async with small_practice(made, tmp_path, waits_of(request)) as opened:
            yield opened


async def test_of_many_who_book_one_time_through_two_gateways_one_gets_it(
    made: Practice, tmp_path: Path
) -> None:
    async with small_practice(made, tmp_path, PATIENT) as opened:
        adapters = [opened.open(), opened.open()]
        draft = await a_draft(adapters[0])
        drafts = [replace(draft, reference=f"{number:016d}") for number in range(20)]
        ends = await asyncio.gather(
            *(adapters[n % 2].create_appointment(each) for n, each in enumerate(drafts)),
            return_exceptions=True,
        )
        for each in adapters:
            await each.aclose()
        assert len([each for each in ends if isinstance(each, dict)]) == 1
        assert {type(each) for each in ends if not isinstance(each, dict)} == {SlotTaken}


async def test_a_duplicate_and_an_unknown_name_are_known_as_such(made: Practice) -> None:
    engine = open_engine(URL, timeout=5.0, booking_timeout=5.0)

    def work(connection: Connection) -> list[ErrorKind]:
        kinds = []
        for statement in ("INSERT INTO vet VALUES (1, 'again')", "SELECT nothing FROM vet"):
            try:
                with connection.begin_nested():
                    connection.execute(text(statement))
            except DBAPIError as error:
                kinds.append(engine.speech.kind(error))
        return kinds

    assert await engine.book(work) == [ErrorKind.DUPLICATE, ErrorKind.STATEMENT]
    assert await engine.read(engine.speech.clock)
    await engine.aclose()


async def test_two_bookings_that_lock_each_others_rows_are_both_made(made: Practice) -> None:
    """One of them is undone as a deadlock, and made once more."""
    engine = open_engine(URL, timeout=10.0, booking_timeout=30.0)

    async def book(first: int, second: int) -> None:
        def both(connection: Connection) -> None:
            for number in (first, second):
                connection.execute(text(f"UPDATE kind SET minutes = minutes WHERE id = {number}"))

        await engine.book(both)

    await asyncio.gather(*(book(*pair) for pair in ((1, 2), (2, 1)) * 5))
    await engine.aclose()
    assert await execute_async(URL, "SELECT count(*) FROM kind WHERE id IN (1, 2)") == [(2,)]
