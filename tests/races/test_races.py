"""200 bookings race through two gateways while the desk writes too; RACES=2000 makes it longer.

SQLite races, and MariaDB with rows of slots; `make long` has the other engines and locks.
"""

import os
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.races.history import faults
from tests.races.practice import practice, working_days
from tests.races.rush import race

COUNT = int(os.environ.get("RACES", "200"))
# How long each booking takes between its writes, so that others get in between.
PAUSE = 0.02
DAYS = working_days(max(2, COUNT // 100), datetime.now(UTC).date())
NO_LOCK = (
    "from adapters.sql.engines.postgres import PostgresSpeech\n"
    "PostgresSpeech.lock = lambda *_: None"
)
NO_SECOND_LOOK = (
    "import adapters.mapped.booking as booking\n"
    "async def nothing(*_): return None\n"
    "booking.BookingFlow._clash = nothing"
)


@pytest.mark.parametrize(
    ("kind", "slot_rows"),
    [
        ("sqlite", False),
        pytest.param("postgresql", False, marks=pytest.mark.long),
        pytest.param("mariadb", False, marks=pytest.mark.long),
        pytest.param("firebird", False, marks=pytest.mark.long),
        ("mariadb", True),
        pytest.param("firebird", True, marks=pytest.mark.long),
        pytest.param("postgresql", True, marks=pytest.mark.long),
    ],
)
async def test_no_booking_overlaps_another_nor_what_the_desk_had_committed(
    kind: str, slot_rows: bool, tmp_path: Path
) -> None:
    slots_on = DAYS if slot_rows else ()
    with practice(kind, tmp_path, slots_on=slots_on, pause=PAUSE) as made:
        ended = await race(made, tmp_path, DAYS, count=COUNT, seed=1)
    answers = Counter(call.status for call in ended.history.calls)
    assert faults(ended.history) == []
    assert "Traceback" not in ended.said
    assert answers[201] > COUNT / 20
    assert answers[409] > COUNT / 10
    assert len(ended.history.stays) > COUNT / 20


# A practice whose COMMIT takes its time: without the lock two look before either is committed.
SLOW_COMMIT = (
    "CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END $$",
    "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON journal DEFERRABLE INITIALLY DEFERRED"
    " FOR EACH ROW EXECUTE FUNCTION slowly()",
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("broken", "pause", "more", "found"),
    [
        (NO_LOCK, 0.0, SLOW_COMMIT, r"race \d+ and race \d+ overlap"),
        (NO_SECOND_LOOK, 0.3, (), r"race \d+ was acknowledged over desk"),
    ],
    ids=["no lock", "no second look"],
)
async def test_a_gateway_without_its_lock_or_its_second_look_is_found_out(
    broken: str, pause: float, more: tuple[str, ...], found: str, tmp_path: Path
) -> None:
    """On a busy machine it may need another race: what can happen need not."""
    for number in (2, 3, 4):
        folder = tmp_path / str(number)
        folder.mkdir()
        with practice("postgresql", folder, *more, pause=pause) as made:
            ended = await race(made, folder, DAYS[:1], count=60, seed=number, broken=broken)
        if any(re.fullmatch(f"{found}.*", each) for each in faults(ended.history)):
            return
    raise AssertionError("three races of a broken gateway look sound")
