"""Keeps a copy as the files are: a program of its own looks at them every so often.

It hangs and fails for itself. Meanwhile the former copy serves, until it is too old to be believed.
"""

import asyncio
import os
import shutil
import signal
import subprocess  # nosec B404
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp
from typing import IO

from msgspec import DecodeError, json, structs

from adapters.base import BackendUnavailable, CopyNews, CopyRules
from adapters.copies.access_tables import PROGRAMS
from adapters.copies.look import Outcome, Request, copy_of, read_note

# Seconds that one look may take, and that its program has to be gone after it was killed.
LONGEST, GONE = 1_800.0, 2.0
# Seconds between two glances at whether it has ended.
GLANCE = 0.05
# Seconds that a call waits for the first look where there is a copy already.
PATIENCE = 10.0
# Seconds until the next look while another process looks, and after the first that failed; twice
# as many after each further one.
BUSY, AGAIN = 1.0, 5.0
# The files are read whole once in so many looks, whatever their times of change say.
WHOLE = 10
_ROOT = Path(__file__).resolve().parents[2]


class CopyKeeper:
    """The copy of a source, in the folder of the rules, or else in one that lasts as long as this.

    `why` is why the last look failed, if it did; `omitted` is what of the tables is not copied, and
    `codeless` are tables whose letters are unknown.
    """

    def __init__(self, request: Request, rules: CopyRules) -> None:
        self._passing = mkdtemp(prefix="clinic-gateway-") if rules.folder is None else None
        folder = self._passing or str(rules.folder)
        whole = WHOLE * rules.refresh
        self._request = structs.replace(request, folder=folder, whole=whole)
        self._rules = rules
        self.path = copy_of(self._request)
        self.source = request.path
        note = read_note(self._request)
        self.why, self.omitted = "", [] if note is None else note.omitted
        self.codeless = [] if note is None else note.codeless
        self._verified, self._failures = 0.0 if note is None else note.verified, 0
        self._made_at = time.time()
        self._task: asyncio.Task[None] | None = None
        self._looked = asyncio.Event()
        rules.watched(self.unverified_for)

    @property
    def age(self) -> float | None:
        """The seconds since the files were last seen to be as the copy is; None without a copy."""
        return max(0.0, time.time() - self._verified) if self._verified else None

    def unverified_for(self) -> float:
        """Returns the same; without a copy, the seconds since it has been wanted."""
        since: float = self._verified or self._made_at
        return max(0.0, time.time() - since)

    async def usable(self) -> None:
        """Raises BackendUnavailable where there is no copy that may serve; waits for the first."""
        if self._task is None:
            self._task = asyncio.create_task(self._go_on(), name="copy")
        if not self._looked.is_set() and (self.age is None or self.age > self._rules.refresh):
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE if self._verified else self._rules.waits):
                    await self._looked.wait()
        age, most = self.age, self._rules.stale_after
        if age is None:
            why = self.why or "it is being made"
            raise BackendUnavailable(f"there is no copy of {self.source}: {why}")
        if age > most:
            why = self.why or "no look at the files has ended since"
            raise BackendUnavailable(
                f"the copy of {self.source} is {in_words(age)} old, and backend.stale_after is"
                f" {most:g} s: {why}"
            )

    async def aclose(self) -> None:
        """Ends the look that is under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._passing is not None:
            await asyncio.to_thread(shutil.rmtree, self._passing, ignore_errors=True)

    async def _go_on(self) -> None:
        while True:
            try:
                outcome = await self._look()
            except Exception as error:  # noqa: BLE001 - whatever it is, the next look may do better
                outcome = self._failed(f"no look at the files can be made: {type(error).__name__}")
            self._learn(outcome)
            await asyncio.sleep(self._pause(outcome))

    def _pause(self, outcome: Outcome) -> float:
        if outcome.kind == "busy":
            return min(BUSY, self._rules.refresh)
        if outcome.kind == "failed":
            return min(AGAIN * (1 << min(self._failures - 1, 10)), self._rules.refresh)
        return self._rules.refresh

    def _learn(self, outcome: Outcome) -> None:
        self._verified, self.omitted = outcome.verified, outcome.omitted
        self.codeless = outcome.codeless
        if outcome.kind == "failed":
            self.why, self._failures = outcome.why, self._failures + 1
            if self._failures == 1:
                self._rules.heard(CopyNews(source=self.source, age=self.age, why=self.why))
        elif outcome.kind != "busy":
            if self._failures:
                self._rules.heard(CopyNews(source=self.source, age=self.age))
            self.why, self._failures = "", 0
        if outcome.kind != "busy" or outcome.verified:
            self._looked.set()

    async def _look(self) -> Outcome:
        """Runs the program once; it is killed once it takes too long, and where this is ended."""
        with TemporaryFile() as asked, TemporaryFile() as answer:
            asked.write(json.encode(self._request))
            asked.seek(0)
            try:
                program = _start(asked, answer)
            except OSError as error:
                return self._failed(f"no program can be started ({error.strerror})")
            try:
                async with asyncio.timeout(LONGEST):
                    await _exit(program)
            except TimeoutError:
                return self._failed(f"a look at the files took more than {in_words(LONGEST)}")
            finally:
                await _end(program)
            answer.seek(0)
            try:
                return json.decode(answer.read(), type=Outcome)
            except DecodeError:
                return self._failed(f"the copying program ended with {program.returncode}")

    def _failed(self, why: str) -> Outcome:
        return Outcome("failed", self._verified, why, self.omitted, self.codeless)


def _start(asked: IO[bytes], answer: IO[bytes]) -> subprocess.Popen[bytes]:
    """Starts the program, with nothing of this environment, which has secrets.

    The event loop does not start it: uvloop runs Python between fork and exec, which waits without
    end for a lock that another thread held at the fork.
    """
    found = shutil.which(PROGRAMS[0])
    folders = [str(Path(found).parent)] if found else []
    return subprocess.Popen(  # nosec B603
        [sys.executable, "-m", "adapters.copies"],
        stdin=asked,
        stdout=answer,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # with the programs that it starts
        cwd=_ROOT,
        env={
            "PATH": os.pathsep.join([*folders, os.defpath]),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
    )


async def _exit(program: subprocess.Popen[bytes]) -> None:
    while program.poll() is None:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(GLANCE)


async def _end(program: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)
    with suppress(TimeoutError):  # one that hangs in a file server ends when that does
        async with asyncio.timeout(GONE):
            await _exit(program)


def in_words(seconds: float) -> str:
    """Returns an age as people say it: 40 seconds, 12 minutes, 3 hours, 2 days."""
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}s"
    return f"{seconds:.0f} seconds"
