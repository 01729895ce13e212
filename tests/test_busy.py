"""`scripts/busy.py` runs a command beside a load, and ends what it started."""

import subprocess
import sys
from pathlib import Path

BUSY = Path(__file__).resolve().parents[1] / "scripts" / "busy.py"


def busy(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, BUSY, *words], capture_output=True, text=True, check=False, timeout=60
    )


def test_the_command_runs_so_often_and_its_first_failure_is_the_last() -> None:
    good = busy("3", sys.executable, "-c", "print('ran')")
    assert (good.returncode, good.stdout.count("ran")) == (0, 3)
    bad = busy("3", sys.executable, "-c", "print('ran'); raise SystemExit(7)")
    assert (bad.returncode, bad.stdout.count("ran")) == (7, 1)


def test_the_load_ends_with_the_command() -> None:
    """Else it would hold these pipes open, and nothing would return."""
    assert busy("1", sys.executable, "-c", "pass").returncode == 0


def test_wrong_use_is_said() -> None:
    done = busy("often")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "usage: python scripts/busy.py TIMES COMMAND...\n"
