"""Signals as things that are read: nothing happens in between, whatever comes when."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

HEARD = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGUSR2,
    signal.SIGQUIT,
    signal.SIGCHLD,
)


class Ears:
    """The signals that came, by their numbers; `fileno` is ready to be read when one did."""

    def __init__(self, read: int) -> None:
        self._read = read

    def fileno(self) -> int:
        """What to wait for."""
        return self._read

    def heard(self) -> bytes:
        """What came since the last time."""
        try:
            return os.read(self._read, 4096)
        except BlockingIOError:
            return b""


@contextmanager
def opened() -> Iterator[Ears]:
    """Hears meanwhile what would else end this process."""
    read, write = os.pipe()
    for each in (read, write):
        os.set_blocking(each, False)
    before: Mapping[int, Any] = {each: signal.signal(each, _noted) for each in HEARD}
    woken = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        yield Ears(read)
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        for each in (read, write):
            os.close(each)


def _noted(number: int, frame: FrameType | None) -> None:
    """The number is read from the pipe; without a handler of Python's none would be written."""
