"""Our adapters keep what every adapter promises."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest

from adapters.conformance import AdapterConformance
from tests.adapters.sample_practice import CachedClinic, GuardedClinic, SampleClinic
from tests.adapters.small_practice import SmallPractice, small_practice


class TestSample(AdapterConformance):
    made = SampleClinic

    @pytest.fixture
    async def practice(self, tmp_path: Path) -> AsyncIterator[SampleClinic]:
        opened = self.made(tmp_path)
        with opened.counting():
            yield opened
        await opened.ailing.aclose()


class TestGuarded(TestSample):
    made = GuardedClinic


class TestCachedAndGuarded(TestSample):
    made = CachedClinic


class TestPostgres(AdapterConformance):
    kind = "postgresql"
    cannot: ClassVar[set[str]] = {"write_unreadable"}  # its columns have types

    @pytest.fixture
    async def practice(self, tmp_path: Path) -> AsyncIterator[SmallPractice]:
        async with small_practice(self.kind, tmp_path) as made:
            yield made


class TestMariadb(TestPostgres):
    kind = "mariadb"


class TestSqlite(TestPostgres):
    kind = "sqlite"
