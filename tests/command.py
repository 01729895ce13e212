"""`clinic-gateway` in a process of its own that need not import everything anew.

A server of `multiprocessing` has imported the gateway once; each command is a fork of it, with its
own output, working folder and end. What depends on how Python itself is started (its options, its
environment, signals to a server) is tested with `subprocess` instead.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

_LONGEST = 30
"""Seconds that a command may take."""

_context: ForkServerContext = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["gateway.app", "gateway.cli.keys", "gateway.cli.serve"])


def clinic_gateway(*words: str) -> subprocess.CompletedProcess[str]:
    """The command's exit code and what it wrote, once it has ended."""
    with tempfile.TemporaryDirectory() as folder:
        written = [Path(folder, name) for name in ("stdout", "stderr")]
        process = _context.Process(target=_run, args=(words, written))
        process.start()
        code = _end_of(process)
        stdout, stderr = (file.read_text() for file in written)
    return subprocess.CompletedProcess(["clinic-gateway", *words], code, stdout, stderr)


def _end_of(process: ForkServerProcess) -> int:
    process.join(_LONGEST)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
        raise TimeoutError("the command has not ended")
    process.close()
    return code


def _run(words: tuple[str, ...], written: list[Path]) -> None:
    for number, file in zip((1, 2), written, strict=True):
        with file.open("wb") as opened:
            os.dup2(opened.fileno(), number)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    sys.argv = ["clinic-gateway", *words]
    from gateway.cli import main

    main(prog_name="clinic-gateway")
