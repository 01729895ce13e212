"""What every adapter promises, promised by the one for JSON over HTTP too."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.conformance import AdapterConformance
from tests.adapters.rest.cloud_practice import CloudPractice, cloud_practice
from tests.adapters.waits import waits_of

pytestmark = pytest.mark.long


class TestCloud(AdapterConformance):
    many = 500  # it makes each of its lists anew for every page
    # of stock it lists the ids alone, and the others it hands out as many at a time as it likes
    in_parts = frozenset({"stock", "vets", "consultations"})

    @pytest.fixture
    async def practice(
        self, request: pytest.FixtureRequest, tmp_path: Path
    ) -> AsyncIterator[CloudPractice]:
        async with cloud_practice(tmp_path, waits_of(request)) as opened:
            yield opened
