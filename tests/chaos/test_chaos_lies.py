"""The checker on practice systems and ledgers that are broken on purpose: it finds each out."""

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.chaos.grounds import GROUNDS
from tests.chaos.history import faults
from tests.chaos.storm import Plan
from tests.chaos.weather import weather
from tests.races.practice import working_days

pytestmark = pytest.mark.long

DAYS = working_days(2, datetime.now(UTC).date())
# What the adapter does with a wish, by the wish's number.
LIES = """
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4
from adapters.base import SlotTaken
from adapters.sql.adapter import SqlAdapter
book = SqlAdapter.create_appointment
async def lies(self, draft):
    lie = int(draft.reason.split()[1]) % 6
    if lie == 1:
        return {"id": str(uuid4()), "vetId": draft.vet_id}
    record = await book(self, draft)
    if lie == 2:
        raise SlotTaken("no")
    if lie == 3:
        with suppress(SlotTaken):
            await book(self, replace(draft, scheduled_at=draft.scheduled_at + timedelta(days=14)))
    return record
SqlAdapter.create_appointment = lies
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the checker says after a short storm over a practice that lies in three ways."""
    folder = tmp_path_factory.mktemp("lies")
    plan = Plan(attempts=100, kills=0, partners=10, seed=3, workers=2)
    with GROUNDS["sqlite"](folder) as ground:
        storm = weather(ground, folder / "state", plan, DAYS, spoilt=LIES, settles=False)
        return asyncio.run(storm).faults()


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        pytest.param(1, "was acknowledged and has 0 rows", id="acknowledged and not committed"),
        pytest.param(2, "stands there and was answered ['409']", id="refused and committed"),
        pytest.param(3, "was booked 2 times", id="booked twice"),
    ],
)
def test_a_backend_that_lies_is_found_out(found: list[str], lie: int, said: str) -> None:
    notes = [re.fullmatch(r"\d (\d+) (.*)", each) for each in found]
    assert any(each and int(each[1]) % 6 == lie and each[2] == said for each in notes)


# Knows no Idempotency-Key again: every call is a booking of its own.
FORGETFUL = """
import secrets
from gateway.booking import base, rows
def forgets(key):
    return None if key is None else secrets.token_bytes(32)
for module in (base, rows):
    module.digest_of = forgets
"""


async def test_a_ledger_that_forgets_keys_is_found_out(tmp_path: Path) -> None:
    plan = Plan(attempts=120, kills=0, partners=30, seed=1, workers=2, twice=0.9)
    with GROUNDS["sqlite"](tmp_path) as ground:
        ended = await weather(
            ground, tmp_path / "state", plan, DAYS[:1], spoilt=FORGETFUL, settles=False
        )
    found = faults(ended.storm.attempts, [*ended.left.rows])
    assert any("own row stands" in each or "ways" in each or "anew" in each for each in found)
