"""Our adapters keep what every adapter promises."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from adapters.conformance import AdapterConformance
from tests.adapters.sample_practice import SampleClinic
from tests.adapters.small_practice import (
    CachedPractice,
    GuardedPractice,
    OdbcPractice,
    SmallPractice,
    small_practice,
    small_server,
)
from tests.adapters.waits import waits_of
from tests.races.practice import Practice as Made


class TestSample(AdapterConformance):
    @pytest.fixture
    async def practice(
        self, request: pytest.FixtureRequest, tmp_path: Path
    ) -> AsyncIterator[SampleClinic]:
        opened = SampleClinic(tmp_path, waits_of(request))
        with opened.counting():
            yield opened
        await opened.ailing.aclose()


@pytest.fixture(scope="class")
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Made]:
    """A server's practice, for all tests of a class."""
    with small_server(request.cls.kind, tmp_path_factory.mktemp("small")) as opened:
        yield opened


class TestSqlite(AdapterConformance):
    kind = "sqlite"
    how = SmallPractice
    cannot: ClassVar[set[str]] = {"write_unreadable"}  # its columns have types

    @pytest.fixture
    async def practice(
        self, request: pytest.FixtureRequest, made: Made, tmp_path: Path
    ) -> AsyncIterator[SmallPractice]:
        async with small_practice(made, tmp_path, waits_of(request), self.how) as opened:
            yield opened


@pytest.mark.long
class TestPostgres(TestSqlite):
    kind = "postgresql"


@pytest.mark.long
class TestMariadb(TestSqlite):
    kind = "mariadb"


@pytest.mark.long
class TestFirebird(TestSqlite):
    kind = "firebird"


@pytest.mark.long
class TestOdbcSqlite(TestSqlite):
    how = OdbcPractice
    # its driver goes on with a file that is gone, or is no database any more
    cannot: ClassVar[set[str]] = {"write_unreadable", "stop", "garble"}


@pytest.mark.long
class TestOdbcPostgres(TestOdbcSqlite):
    cannot = TestSqlite.cannot
    kind = "postgresql"


@pytest.mark.long
class TestOdbcMariadb(TestOdbcPostgres):
    kind = "mariadb"


@pytest.mark.long
class TestCachedAndGuarded(TestSqlite):
    how = CachedPractice
    many = 2_500  # this and the next hand pages on, and those of 10,000 rows are read without them


@pytest.mark.long
class TestGuarded(TestCachedAndGuarded):
    how = GuardedPractice
