"""A storm that could have no end says so; a line that a kill has torn hides no other."""

import asyncio
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.chaos import strikes
from tests.chaos.strikes import Strikes
from tests.processes.gateways import Several
from tests.waiting import GENEROUS

# Above the largest that a process may have.
NOBODY = 2**22 + 1


def died(pid: int) -> str:
    """The line that says so."""
    ended = {"process": "worker 1", "pid": pid, "ended": "by signal SIGKILL"}
    return json.dumps({"event": "a process of the gateway has ended: it is started again", **ended})


class Standing(Several):
    """A gateway of which there is nothing but its stderr; it may have ended."""

    def __init__(self, folder: Path, said: str, code: int | None = None) -> None:
        self.folder, self._forgotten = folder, 0
        self.process: Any = SimpleNamespace(poll=lambda: code, pid=NOBODY)
        (folder / "stderr.txt").write_text(said)

    def workers(self) -> dict[int, int]:
        return {1: NOBODY}


async def struck(several: Several) -> None:
    """Strike until something ends that: nobody says that the storm is over."""
    async with asyncio.timeout(GENEROUS):
        await Strikes(several, 1).go_on(asyncio.Event())


def test_a_torn_line_hides_no_other(tmp_path: Path) -> None:
    torn = '{"time":"2026-01-02T03:04:05Z","level":"info","ev'
    with subprocess.Popen(["sleep", "60"]) as worker:
        lines = f"{torn}{died(NOBODY)}\n{died(worker.pid)}\n{torn}"
        made = Strikes(Standing(tmp_path, lines), 1)
        made.kill(worker.pid)
        made.count()
    assert made.kills == 1


def test_what_is_no_event_is_not_passed_over(tmp_path: Path) -> None:
    several = Standing(tmp_path, "Exception ignored in: <function f>\n")
    with pytest.raises(ValueError, match="Expecting value"):
        several.said()


async def test_a_gateway_that_has_ended_ends_the_storm(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="the gateway has ended with 1"):
        await struck(Standing(tmp_path, "", code=1))


async def test_a_storm_that_kills_nobody_any_more_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strikes, "KILLS_WITHIN", 0.1)
    with pytest.raises(AssertionError, match="the gateway lives"):
        await struck(Standing(tmp_path, died(NOBODY)))
