import sys
from pathlib import Path

import pytest

from gateway.processes.event_loop import chosen_loop, run_in_loop, running_loop
from gateway.settings import Settings, StartRefused
from tests.conftest import Template
from tests.processes.gateways import Several, copy_of


async def running() -> str:
    return running_loop()


@pytest.mark.parametrize(
    ("setting", "runs"), [("auto", "uvloop"), ("uvloop", "uvloop"), ("asyncio", "asyncio")]
)
def test_uvloop_runs_where_it_is_installed_and_nothing_says_otherwise(
    setting: str, runs: str
) -> None:
    pytest.importorskip("uvloop")
    settings = Settings.model_validate({"event_loop": setting})
    assert chosen_loop(settings) == runs
    assert run_in_loop(settings, running) == runs


def test_without_uvloop_asyncio_runs_unless_uvloop_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)  # its import fails
    for setting in ("auto", "asyncio"):
        assert run_in_loop(Settings.model_validate({"event_loop": setting}), running) == "asyncio"
    asked = Settings(event_loop="uvloop")
    with pytest.raises(StartRefused, match=r"install the extra `fast` .* event_loop to auto"):
        run_in_loop(asked, lambda: pytest.fail("nothing begins"))


def has_eventfd(process: int) -> bool:
    """Whether the process has such a file, as libuv's loops do and asyncio's own do not."""
    files = Path(f"/proc/{process}/fd").iterdir()
    return any("eventfd" in str(file.readlink()) for file in files if file.is_symlink())


@pytest.mark.parametrize("setting", ["uvloop", "asyncio"])
def test_every_process_of_several_runs_in_the_chosen_loop(
    template: Template, tmp_path: Path, setting: str
) -> None:
    if setting == "uvloop":
        pytest.importorskip("uvloop")
    folder = copy_of(template.folder, tmp_path / "state")
    # else the gateway inherits the event loop that this run of the tests was told to use
    spoilt = "import os\nos.environ.pop('GATEWAY_EVENT_LOOP', None)"
    lines = ("workers: 2", f"event_loop: {setting}")
    with Several(folder, lines=lines, spoilt=spoilt) as served:
        assert served.event("serving")["event_loop"] == setting
        processes = served.children()
        assert len(processes) == 3
        assert [has_eventfd(each) for each in processes] == [setting == "uvloop"] * 3
