"""Writes one chain: a file for each day, a mark at each beginning; runs in a thread."""

import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from gateway.audit.chain import Head, seal
from gateway.audit.entries import BEGIN, CLOCK, END, Mark, texts
from gateway.audit.files import path_of
from gateway.audit.secrets import Secret
from gateway.audit.tail import Tail

# Seconds by which the wall clock must leave the other one to be noted as set.
STEP = 2.0
# Bytes that must be free on the disk before a booking may begin.
ROOM = 1 << 20


class Writer:
    """The chain of one process; one thread at a time calls it."""

    def __init__(
        self,
        folder: Path,
        chain: str,
        secret: Callable[[], Secret],
        now: datetime,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder = folder
        self._chain = chain
        self._secret = secret
        self._sealing: Secret | None = None
        self._clock = clock
        self._ahead = now.timestamp() - clock()
        self._head = Head()
        self._tail: Tail | None = None
        self._day: date | None = None

    def write(self, lines: Sequence[bytes], now: datetime) -> Head:
        """The head once all of it is on disk; OSError: none of it counts, try again."""
        now = now.astimezone(UTC)
        tail = self._tail_of(now.date())
        secret, ahead = self._secret(), now.timestamp() - self._clock()
        marks = []
        # nosemgrep: digests-are-compared-in-constant-time - both are our own, neither is a guess
        if not tail.size or secret != self._sealing:
            day = str(self._day)
            marks.append(Mark(BEGIN, now, chain=self._chain, day=day, key=secret.id))
        if abs(ahead - self._ahead) > STEP:
            marks.append(Mark(CLOCK, now, seconds=round(ahead - self._ahead, 3)))
        if not marks and not lines:
            return self._head
        data, head = seal([*texts(marks), *lines], self._head, secret)
        tail.append(data)
        self._head, self._sealing, self._ahead = head, secret, ahead
        return head

    def has_room(self) -> bool:
        """Whether the disk has room for the entries of all bookings that may be under way."""
        disk = os.statvfs(self.folder)
        return disk.f_bavail * disk.f_frsize >= ROOM

    def end(self, now: datetime) -> Head:
        """The last line: the process ended in order."""
        return self.write(texts([Mark(END, now)]), now)

    def close(self) -> None:
        """Let go of the file."""
        if self._tail is not None:
            self._tail.close()

    def _tail_of(self, day: date) -> Tail:
        """The day's file; a clock that is set back begins none."""
        if self._tail is None or self._day is None or day > self._day:
            if self._tail is not None:
                self._tail.mend()
            tail = Tail(path_of(self.folder, day, self._chain))
            self.close()
            self._tail, self._day = tail, day
        return self._tail
