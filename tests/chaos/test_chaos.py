"""Bookings stay exactly once while processes die; CHAOS=10000 makes the storm a long one."""

import os
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.adapters.servers import postgres_database
from tests.chaos.history import LOST, faults
from tests.chaos.storm import Plan, Storm, weather
from tests.races.practice import practice, working_days

ATTEMPTS = int(os.environ.get("CHAOS", "250"))
STRIKES = max(4, ATTEMPTS // 190)
DAYS = working_days(max(2, ATTEMPTS // 150), datetime.now(UTC).date())
PLAN = Plan(attempts=ATTEMPTS, strikes=STRIKES, partners=50, seed=7)
KINDS = ("sqlite", "postgresql")


@pytest.mark.parametrize("kind", KINDS)
async def test_every_booking_is_made_once_whatever_dies(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with practice(kind, tmp_path) as made:
        if kind == "sqlite":
            ended = await weather(made, tmp_path / "state", PLAN, DAYS)
        else:
            with postgres_database() as store:
                ended = await weather(made, tmp_path / "state", PLAN, DAYS, store=store)
    storm, rows, strays = ended
    answers = Counter(each.status for each in storm.attempts)
    with capsys.disabled():
        sys.stdout.write(_told(kind, storm, answers) if "CHAOS" in os.environ else "")
    assert faults(storm.attempts, rows, strays) == []
    assert len(storm.attempts) >= ATTEMPTS
    assert sum(storm.struck.values()) >= STRIKES
    assert answers[201] > ATTEMPTS / 20
    assert answers[409] > ATTEMPTS / 20
    assert answers[LOST] > 0


def _told(kind: str, storm: Storm, answers: Counter[int | None]) -> str:
    """What a long storm came to."""
    told = ", ".join(f"{answers[each]} x {each or 'lost'}" for each in sorted(answers, key=str))
    strikes = ", ".join(f"{times} x {what}" for what, times in storm.struck.items())
    return f"\n{kind}: {len(storm.attempts)} attempts ({told}); {strikes}\n"


# Says that the time is taken though it has just been booked.
LIES = """
from adapters.sql.adapter import SqlAdapter
from adapters.base import SlotTaken
book = SqlAdapter.create_appointment
async def lies(self, draft):
    record = await book(self, draft)
    if int(draft.reason.split()[1]) % 5 == 0:
        raise SlotTaken("no")
    return record
SqlAdapter.create_appointment = lies
"""


async def test_a_backend_that_lies_is_found_out(tmp_path: Path) -> None:
    plan = Plan(attempts=60, strikes=0, partners=10, seed=3)
    with practice("sqlite", tmp_path) as made:
        storm, rows, _ = await weather(
            made, tmp_path / "state", plan, DAYS[:1], spoilt=LIES, settles=False
        )
    assert any("stands there and was answered" in each for each in faults(storm.attempts, rows))
