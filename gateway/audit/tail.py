"""The end of a day's file: lines are appended to it whole and on disk, or not at all."""

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

# How often, and after how many seconds, a lock is tried again that somebody else holds.
TRIES, PAUSE = 20, 0.005


class Tail:
    """One open file of one process; OSError where it cannot be opened.

    `size` is what has been written whole. A lock tells others that the file is still written to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._spoilt = False
        self._file = self._open()

    def append(self, data: bytes) -> None:
        """OSError: nothing of it counts, and what is there of it goes before the next."""
        if not self._in_place():
            # somebody moved it away; whoever verifies the chain will say what is missing
            moved, self._file = self._file, self._open()
            self._spoilt = False
            os.close(moved)
        self.mend()
        self._spoilt = True
        try:
            self._write(data)
        except OSError:
            with suppress(OSError):
                self.mend()
            raise
        self._spoilt = False
        self.size += len(data)

    def close(self) -> None:
        """Let go of it."""
        os.close(self._file)

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        file = os.open(self.path, flags, 0o600)
        self.size = os.fstat(file).st_size
        _lock(file)
        sync_folder(self.path.parent)
        return file

    def _in_place(self) -> bool:
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self._file))
        except FileNotFoundError:
            return False

    def mend(self) -> None:
        """Take away what a failed write left: nobody knows what of it is there. OSError."""
        if self._spoilt:
            os.ftruncate(self._file, self.size)
            self._spoilt = False

    def _write(self, data: bytes) -> None:
        written = os.write(self._file, data)
        while written < len(data):
            # the rest says why it does not fit
            written += os.write(self._file, data[written:])
        os.fdatasync(self._file)


def _lock(file: int) -> None:
    """Who asks whether the file is written to holds it for an instant: it is waited for.

    Where nothing can be locked, a file of this day is taken for one that is written to.
    """
    for _ in range(TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(PAUSE)
        except OSError:
            return
        else:
            return


def sync_folder(folder: Path) -> None:
    """What was made or removed in it stays so. OSError."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
