"""The parent alone, with children that do nothing but what the test wants of them."""

import re
import signal
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from tests.command import Forked
from tests.processes.gateways import eventually
from tests.processes.lives import (
    Life,
    begins_slowly,
    deaf,
    deaf_to_a_roll,
    dies,
    dies_of_a_nameless_signal,
    hangs,
    leaves_no_room,
    lives,
    never_begins,
    never_well,
    run,
    stays,
)

pytestmark = pytest.mark.long


@pytest.fixture
def said(tmp_path: Path) -> Path:
    path = tmp_path / "said"
    path.touch()
    return path


def started(said: Path, worker: Life, **constants: float) -> Forked:
    return Forked(run, str(said), worker, constants)


def times(said: Path, event: str) -> list[float]:
    return [float(line.split()[0]) for line in said.read_text().splitlines() if event in line]


def pids(said: Path, event: str) -> list[int]:
    """Of the processes about which that was said."""
    lines = [line for line in said.read_text().splitlines() if event in line]
    return [int(re.findall(r"'pid': (\d+)", line)[0]) for line in lines]


def test_a_child_that_cannot_begin_is_a_start_that_is_refused(said: Path) -> None:
    with started(said, never_begins) as process:
        assert process.wait(10) == 1
    assert not times(said, "begun")


def test_a_child_that_dies_again_and_again_is_started_less_and_less_often(said: Path) -> None:
    with started(said, dies, LONGEST_PAUSE=0.4) as process:
        eventually(lambda: len(times(said, "'worker 1'")) > 5)
        process.terminate()
        assert process.wait(10) == 0
    ended = times(said, "'worker 1'")
    told = [float(each) for each in re.findall(r"'worker 1'.*'after': ([0-9.]+)", said.read_text())]
    assert told[:6] == [0.1, 0.2, 0.4, 0.4, 0.4, 0.4]
    waited = [later - earlier for earlier, later in pairwise(ended)]
    assert all(each >= pause for each, pause in zip(waited, told, strict=False))
    assert "ended': 'with exit code 3'" in said.read_text()


def test_a_child_whose_loop_stands_still_is_killed_and_started_again(said: Path) -> None:
    with started(said, hangs, HUNG=0.5, STEP=0.2) as process:
        eventually(lambda: times(said, "hangs: it is killed"))
        eventually(lambda: times(said, "'by signal SIGKILL'"))
        process.terminate()


def test_a_child_that_does_not_end_is_killed_and_said(said: Path) -> None:
    with started(said, deaf, END_IN=0.5) as process:
        eventually(lambda: times(said, "begun"))
        process.terminate()
        assert process.wait(10) == 0
    assert len(times(said, "did not end in time")) == 2


def test_where_workers_had_to_be_killed_operations_still_ends_by_itself(said: Path) -> None:
    with Forked(run, str(said), deaf, {"END_IN": 0.5}, stays) as process:
        eventually(lambda: times(said, "begun"))
        process.terminate()
        assert process.wait(10) == 0
    assert "operations" not in said.read_text()
    assert len(times(said, "did not end in time")) == 2


def test_the_parent_waits_without_work_of_its_own(said: Path) -> None:
    with Forked(run, str(said), deaf, {"END_IN": 1.5}, stays) as process:
        eventually(lambda: times(said, "begun"))
        process.terminate()
        assert process.wait(10) == 0
    [spent] = re.findall(r"'seconds': ([0-9.]+)", said.read_text())
    assert float(spent) < 0.5


def test_what_is_replaced_and_does_not_end_is_killed_and_the_gateway_goes_on(said: Path) -> None:
    with Forked(run, str(said), deaf_to_a_roll, {"END_IN": 0.5}, stays) as process:
        eventually(lambda: times(said, "begun"))
        for number in (1, 2):
            process.send_signal(signal.SIGUSR2)
            eventually(lambda: len(times(said, "were replaced")) == number)  # noqa: B023
        eventually(lambda: len(times(said, "did not end in time")) == 6)
        process.terminate()
        assert process.wait(10) == 0
    killed = pids(said, "did not end in time")
    assert len(set(killed)) == len(killed)


def test_a_child_may_die_of_any_signal(said: Path) -> None:
    with started(said, dies_of_a_nameless_signal) as process:
        eventually(lambda: times(said, "it is started again"))
        process.terminate()
        assert process.wait(10) == 0
    assert f"by signal {signal.SIGRTMIN + 5}" in said.read_text()


def test_a_machine_without_room_for_a_child_ends_nobody(said: Path) -> None:
    with Forked(run, str(said), dies, {}, lives, leaves_no_room) as process:
        eventually(lambda: len(times(said, "cannot be started")) > 2)
        process.terminate()
        assert process.wait(10) == 0


def test_a_child_that_dies_while_others_are_replaced_is_started_again(said: Path) -> None:
    with Forked(partial(run, next_worker=begins_slowly), str(said), lives, {}, dies) as process:
        eventually(lambda: times(said, "begun"))
        process.send_signal(signal.SIGUSR2)
        eventually(lambda: len(times(said, "'operations'")) > 2)
        assert not times(said, "were replaced")
        process.terminate()
        assert process.wait(10) == 0


def test_of_a_new_process_that_ends_in_a_roll_nobody_says_that_it_is_started_again(
    said: Path,
) -> None:
    with Forked(partial(run, next_worker=never_begins), str(said), lives, {}) as process:
        eventually(lambda: times(said, "begun"))
        process.send_signal(signal.SIGUSR2)
        eventually(lambda: times(said, "the roll is given up"))
        process.terminate()
        assert process.wait(10) == 0
    assert not times(said, "it is started again")
    [ended] = [
        line
        for line in said.read_text().splitlines()
        if "a process of the gateway has ended" in line
    ]
    assert "'ended': 'with exit code 1'" in ended


def test_a_start_that_takes_too_long_is_given_up_and_said(said: Path) -> None:
    with started(said, never_well, BEGIN_IN=0.5) as process:
        assert process.wait(10) == 1
    assert times(said, "did not begin in time")
