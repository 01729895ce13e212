"""A process that serves leaves no core behind, however it ends."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import serving

DIES = """
import os, resource
import gateway.lifecycle as h
most = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (most, most))
{}
os.abort()
"""
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux about the process")


def dumped(how: str, folder: Path) -> bool:
    """Whether a core was made of a process that did so much and then crashed."""
    with subprocess.Popen(
        [sys.executable, "-c", DIES.format(how)], cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
    ) as process:  # fmt: skip
        _, status = os.waitpid(process.pid, 0)
        process.returncode = status
    return os.WCOREDUMP(status)


@ON_LINUX
def test_a_crash_writes_no_memory_to_disk(tmp_path: Path) -> None:
    assert not dumped("h.forbid_core_dumps()", tmp_path)
    # not for want of a limit alone, which a program that collects cores does not heed
    raised = "h.resource.setrlimit = lambda *_: None; h.forbid_core_dumps()"
    assert not dumped(raised, tmp_path)


@ON_LINUX
def test_where_cores_are_allowed_one_would_have_been_written(tmp_path: Path) -> None:
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0 or pattern.startswith(("/", "|")):
        return  # this machine writes none, or writes it where others keep theirs
    assert dumped("pass", tmp_path)


@ON_LINUX
@pytest.mark.parametrize("command", ["demo"])
def test_what_serves_may_not_dump_its_core(command: str, tmp_path: Path) -> None:
    words = [command, "--port", "0", "--operations-port", "0", "--state", str(tmp_path / "demo")]
    with serving(*words) as process:
        while "Ctrl-C ends" not in (line := process.stdout.readline()):
            assert line, process.stderr.read()
        limits = Path(f"/proc/{process._process.pid}/limits").read_text()
        process.terminate()
    [core] = [line.split() for line in limits.splitlines() if line.startswith("Max core file size")]
    assert core[4:6] == ["0", "0"]
