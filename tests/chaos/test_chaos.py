"""Bookings stay exactly once while processes die; `make chaos` blows for longer."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.chaos.grounds import GROUNDS
from tests.chaos.storm import Plan
from tests.chaos.weather import weather
from tests.races.practice import working_days

DAYS = working_days(2, datetime.now(UTC).date())


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_every_booking_is_made_once_whatever_dies(kind: str, tmp_path: Path) -> None:
    plan = Plan(attempts=120, kills=1, partners=50, seed=7)
    with GROUNDS[kind](tmp_path) as ground:
        ended = await weather(ground, tmp_path / "state", plan, DAYS)
    assert ended.faults() == []
    assert len(ended.storm.attempts) >= plan.attempts
    assert ended.storm.strikes.kills >= plan.kills
    assert ended.answers[201] > 0
    assert ended.answers[409] > 0
