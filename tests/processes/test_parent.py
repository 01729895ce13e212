"""The parent alone, with children that do nothing but what the test wants of them."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.command import Forked
from tests.processes.gateways import eventually
from tests.processes.lives import Life, deaf, dies, hangs, never_begins, run


@pytest.fixture
def said(tmp_path: Path) -> Path:
    path = tmp_path / "said"
    path.touch()
    return path


def started(said: Path, worker: Life, **constants: float) -> Forked:
    return Forked(run, str(said), worker, constants)


def times(said: Path, event: str) -> list[float]:
    return [float(line.split()[0]) for line in said.read_text().splitlines() if event in line]


def test_a_child_that_cannot_begin_is_a_start_that_is_refused(said: Path) -> None:
    with started(said, never_begins) as process:
        assert process.wait(10) == 1
    assert not times(said, "begun")


def test_a_child_that_dies_again_and_again_is_started_less_and_less_often(said: Path) -> None:
    with started(said, dies, FIRST_PAUSE=0.05, LONGEST_PAUSE=0.4) as process:
        eventually(lambda: len(times(said, "'worker 1'")) > 5)
        process.terminate()
        assert process.wait(10) == 0
    ended = times(said, "'worker 1'")
    told = [float(each) for each in re.findall(r"'worker 1'.*'after': ([0-9.]+)", said.read_text())]
    assert told[:6] == [0.05, 0.1, 0.2, 0.4, 0.4, 0.4]
    waited = [later - earlier for earlier, later in pairwise(ended)]
    assert all(each >= pause for each, pause in zip(waited, told, strict=False))
    assert "ended': 'with 3'" in said.read_text()


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
