"""What children do whose parent is under test, and a process that is such a parent."""

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from gateway.processes import brood, parent
from gateway.processes.child import Inherited
from gateway.processes.parent import Parent, Plan

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


class Said:
    """Writes what the parent says to a file, as another process reads it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def info(self, event: str, **details: Any) -> None:
        with self._path.open("a") as file:
            file.write(f"{time.monotonic():.3f} {event} {details}\n")

    warn = info

    def fault(self, event: str, error: BaseException, **details: Any) -> None:
        self.info(event, error=type(error).__name__)


def run(path: str, worker: Life, constants: dict[str, float]) -> None:
    for name, value in constants.items():
        setattr(parent if hasattr(parent, name) else brood, name, value)
    plan = Plan(operations=lives, worker=lambda number: worker, workers=2, patience=0.0)
    log = Said(Path(path))
    os._exit(Parent(plan, log, lambda: plan, partial(log.info, "begun")).run())
