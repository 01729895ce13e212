"""`clinic-gateway` in a process of its own that need not import everything anew.

A server of `multiprocessing` has imported the gateway once, with all commands and what these come
to import; each command is a fork of it, with its own output, working folder and end. What depends
on how Python itself is started (its options, signals to a server) is tested with `subprocess`
instead.
"""

import gc
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any, Self

from gateway.cli import COMMANDS

Main = Callable[..., None]

_LONGEST = 30
"""Seconds that a command may take."""

_context: ForkServerContext = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    [
        *(command.partition(":")[0] for command in COMMANDS.values()),
        "adapters.rest.adapter",
        "adapters.sample",
        "adapters.sql.adapter",
        "adapters.doctor.sql",
        "alembic.command",
        "anyio.to_thread",
        "asyncmy",
        "asyncpg",
        "gateway.admin.guard",
        "gateway.admin.panel",
        "gateway.app",
        "gateway.cli.policy.check",
        "gateway.cli.policy.show",
        "gateway.cli.policy.status",
        "gateway.examination",
        "gateway.store.sqlite",
        "greenlet",
        "rich.table",
        "sqlalchemy.dialects.postgresql.asyncpg",
        "tests.tables_read_once",
        "uvloop",
    ]
)


def clinic_gateway(*words: str) -> subprocess.CompletedProcess[str]:
    """The command's exit code and what it wrote, once it has ended."""
    return _ended(_main, "clinic-gateway", *words)


def module(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The same of `python -m` with a module of this tree."""
    return _ended(_main_of_module, name, *words)


def _ended(main: Main, *words: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        written = [Path(folder, name) for name in ("stdout", "stderr")]
        process = _context.Process(target=_run, args=(main, words, written))
        process.start()
        code = _end_of(process)
        stdout, stderr = (file.read_text() for file in written)
    return subprocess.CompletedProcess(words, code, stdout, stderr)


class Forked:
    """Some work that goes on in such a process; to whoever started it, a Popen that speaks text."""

    def __init__(self, work: Callable[..., None], *given: Any) -> None:
        stdin, self.stdin = _pipe(ours="w")
        self.stdout, stdout = _pipe(ours="r")
        self.stderr, stderr = _pipe(ours="r")
        theirs = [stdin, stdout, stderr]
        self._process = _context.Process(target=_work, args=(theirs, work, given))
        self._process.start()
        for each in theirs:
            each.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait(_LONGEST)
        for each in (self.stdin, self.stdout, self.stderr):
            each.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self._process.pid is not None and self.poll() is None:
            os.kill(self._process.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        """Its exit code; TimeoutError where it goes on for longer."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutError("the process has not ended")
        return self._process.exitcode

    def communicate(self, timeout: float = _LONGEST) -> tuple[str, str]:
        """What it wrote until its end; it must be little, or nobody has read the rest."""
        with self:
            self.wait(timeout)
            return self.stdout.read(), self.stderr.read()


def serving(*words: str, spoilt: str = "") -> Forked:
    """`clinic-gateway` that goes on; `spoilt` is Python that runs before it."""
    return Forked(_spoilt, spoilt, ("clinic-gateway", *words))


def logging_to(
    file: Path, *words: str, environ: Mapping[str, str] | None = None, spoilt: str = ""
) -> Forked:
    """`clinic-gateway` that goes on, with these variables beside ours; its stderr is a file."""
    return Forked(_logging, file, environ or {}, spoilt, ("clinic-gateway", *words))


def _pipe(ours: str) -> tuple[Any, Any]:
    """Its reading and its writing end, ours as a file, theirs as what can be sent to a process."""
    read, write = os.pipe()
    if ours == "r":
        return os.fdopen(read, encoding="utf-8"), Connection(write, readable=False)
    return Connection(read, writable=False), os.fdopen(write, "w", encoding="utf-8")


def _work(streams: list[Connection], work: Callable[..., None], given: tuple[Any, ...]) -> None:
    gc.freeze()
    for number, each in enumerate(streams):
        os.dup2(each.fileno(), number)
        each.close()
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    _write_to_standard_streams()
    work(*given)


def _spoilt(spoilt: str, words: tuple[str, ...]) -> None:
    exec(spoilt, {})
    _main(*words)


def _logging(file: Path, environ: Mapping[str, str], spoilt: str, words: tuple[str, ...]) -> None:
    with file.open("wb") as opened:
        os.dup2(opened.fileno(), 2)
    os.environ.update(environ)
    tempfile.tempdir = None  # TMPDIR may be another
    _spoilt(spoilt, words)


def _end_of(process: ForkServerProcess) -> int:
    process.join(_LONGEST)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
        raise TimeoutError("the command has not ended")
    process.close()
    return code


def _run(main: Main, words: tuple[str, ...], written: list[Path]) -> None:
    gc.freeze()  # to search what the server imported for garbage takes longer than most commands
    for number, file in zip((1, 2), written, strict=True):
        with file.open("wb") as opened:
            os.dup2(opened.fileno(), number)
    _write_to_standard_streams()
    main(*words)


def _write_to_standard_streams() -> None:
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115


def _main(*words: str) -> None:
    sys.argv = [*words]
    from gateway.cli import main

    main(prog_name=words[0])


def _main_of_module(*words: str) -> None:
    sys.argv = [*words]
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)
