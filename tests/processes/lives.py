"""What children do whose parent is under test, and a process that is such a parent."""

import os
import resource
import select
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway.events import event_table
from gateway.processes import supervisor
from gateway.processes.child import Inherited
from gateway.processes.supervisor import Plan, Supervisor

Life = Callable[[Inherited], int]


def lives(inherited: Inherited) -> int:
    """Well, with a beating heart, until SIGTERM or the parent's end."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGUSR1, lambda *_: os._exit(0))
    inherited.well()
    while True:
        inherited.beat()
        time.sleep(0.05)


def dies(inherited: Inherited) -> int:
    """A moment after all are well."""
    inherited.well()
    time.sleep(0.2)
    return 3


def never_begins(inherited: Inherited) -> int:
    return 1


def hangs(inherited: Inherited) -> int:
    inherited.well()
    while True:
        time.sleep(1)


def deaf(inherited: Inherited) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    inherited.well()
    while True:
        inherited.beat()
        time.sleep(0.05)


def deaf_to_a_roll(inherited: Inherited) -> int:
    inherited.well()
    while True:
        inherited.beat()
        time.sleep(0.05)


def begins_slowly(inherited: Inherited) -> int:
    """After three seconds."""
    began = time.monotonic()
    while time.monotonic() < began + 3:
        inherited.beat()
        time.sleep(0.05)
    return lives(inherited)


def never_well(inherited: Inherited) -> int:
    while True:
        inherited.beat()
        time.sleep(0.05)


def stays(inherited: Inherited) -> int:
    """As operations does: well until the parent is gone, whatever it is told."""
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    inherited.well()
    while not select.select([inherited.life], [], [], 0.05)[0]:
        inherited.beat()
    return 0


def dies_of_a_nameless_signal(inherited: Inherited) -> int:
    """A moment after all are well; most signals for programs' own use have no name."""
    inherited.well()
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGRTMIN + 5)
    return 0


def leaves_no_room() -> None:
    """From now on no file can be opened by this process: not even a pipe to a child."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, most))


class Said:
    """Writes what the parent says to a file, as another process reads it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)
        self._kinds = event_table().event

    def report(self, event: str, error: BaseException | None = None, /, **details: Any) -> None:
        text = self._kinds[event].text
        more = details if error is None else {"error": type(error).__name__}
        self.note(text, **more)

    def note(self, text: str, **details: Any) -> None:
        self._file.write(f"{time.monotonic():.3f} {text} {details}\n")


def run(
    path: str,
    worker: Life,
    constants: dict[str, float],
    operations: Life = lives,
    begun: Callable[[], None] = lambda: None,
    next_worker: Life | None = None,
) -> None:
    """`next_worker` is what a roll puts in the place of each worker; the same where it is None."""
    for name, value in constants.items():
        assert hasattr(supervisor, name)
        setattr(supervisor, name, value)
    plan = Plan(operations=operations, worker=lambda number: worker, workers=2, patience=0.0)
    rolled = replace(plan, worker=lambda number: next_worker or worker)
    log = Said(Path(path))

    def all_begun() -> None:
        log.note("begun")
        begun()

    code = Supervisor(plan, log, lambda: rolled, all_begun).run()
    log.note("ended", seconds=time.process_time())
    os._exit(code)
