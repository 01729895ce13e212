"""The two database examples keep what every adapter promises, on tables as odd as they are."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import ClassVar
from zoneinfo import ZoneInfo

import pytest

from adapters import open_adapter
from adapters.base import Adapter, AdapterOptions
from adapters.conformance import AdapterConformance
from examples.launch import Example
from examples.mariadb_eav.__main__ import EXAMPLE as MARIADB
from examples.postgres_slots.__main__ import EXAMPLE as POSTGRES
from gateway.settings import load_settings
from tests.adapters.ailing import relayed
from tests.adapters.clinic import SECRET
from tests.adapters.sample_practice import SqlPractice
from tests.adapters.shelf import Shelf
from tests.adapters.waits import Waits, waits_of
from tests.examples.clinic import Clinic, made


@pytest.fixture(scope="class")
def clinic(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Clinic]:
    """An example's practice, for all tests of a class."""
    example, kind = request.cls.example, request.cls.kind
    with made(example, kind, tmp_path_factory.mktemp("example") / "state") as opened:
        yield opened


class ExamplePractice(SqlPractice):
    """What the desk does there is proved by the example's own tests."""

    slack = 1.8
    now = datetime.now(UTC).replace(microsecond=0)

    def __init__(self, clinic: Clinic, zone: str, waits: Waits) -> None:
        self.waits = waits
        self.zone = ZoneInfo(zone)
        self._backend = load_settings(clinic.folder / "gateway.yaml", {}).backend
        self._url, self._ids = "", Shelf()

    async def begin(self) -> None:
        url = self._backend.url
        assert url is not None
        ailing, self._url = await relayed(url.get_secret_value())
        super().__init__(ailing, self.waits)

    def open(self) -> Adapter:
        return open_adapter(
            "sql",
            AdapterOptions(
                url=self._url,
                mapping=self._backend.mapping,
                secret=SECRET,
                shapes=self.shapes,
                report=self.troubles.append,
                timeout=self.waits.read,
                booking_timeout=self.waits.booking,
                ids=self._ids,
                times=self.times,
            ),
        )


@pytest.mark.long
class TestMariadbExample(AdapterConformance):
    example: ClassVar[Example] = MARIADB
    kind = "mysql"
    zone = "Europe/Brussels"
    cannot: ClassVar[set[str]] = {
        *("add_clients", "set_hours", "add_absence", "add_appointment", "cancel"),
        *("write_unknown_code", "write_unreadable", "write_zero_date"),
    }

    @pytest.fixture
    async def practice(
        self, request: pytest.FixtureRequest, clinic: Clinic
    ) -> AsyncIterator[ExamplePractice]:
        opened = ExamplePractice(clinic, self.zone, waits_of(request))
        await opened.begin()
        with opened.counting():
            yield opened
        await opened.ailing.aclose()


class TestPostgresExample(TestMariadbExample):
    example = POSTGRES
    kind = "postgresql"
    zone = "Europe/Helsinki"
