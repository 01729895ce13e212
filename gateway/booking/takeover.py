"""Tells which of the processes that book are alive, so that others take over from the dead.

A process holds a lock on a file of the state folder, which the kernel releases when the process
ends, and not while it is only stopped. For other machines it moves a counter on in the store. No
clock of one machine is compared with another's.
"""

import contextlib
import fcntl
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from sqlalchemy import delete, insert, select, update

from gateway.background import Periodic
from gateway.store.base import Store, StoreError
from gateway.store.tables import presence

# The folder in the state folder that has what the gateway's processes need while they run.
RUN = "run"
# Seconds between two moves of this process's counter, and after one that failed.
BEAT, BEAT_AGAIN = 3.0, 1.0
# Seconds after which a process whose counter has not moved is dead.
SILENCE = 15.0
# Seconds between two looks at a counter, and at most for the two to count as one observation.
LOOK, GAP = 1.0, 6.0


@dataclass(frozen=True, slots=True)
class _Seen:
    counter: int | None
    since: float
    looked: float


@dataclass(eq=False)
class Owners:
    """This process among those that book; `me` is its id. It must be made after the last fork."""

    store: Store
    folder: Path
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.me = str(uuid4())
        self._run = self.folder / RUN
        self._lock: int | None = None  # one that a child has too would outlive the parent
        self._seen: dict[str, _Seen] = {}
        self._beats = Periodic(
            lambda: BEAT_AGAIN if self._beats.failing else BEAT,
            self._beat,
            name="say that this process lives",
        )

    async def start(self) -> None:
        """Makes this process known as alive, before anything is booked. Raises StoreError."""
        with contextlib.suppress(OSError):  # where nothing can be locked, the counter must do
            self._lock = _locked(self._run, self.me)
        await self._beat()
        self._beats.start()  # where it fails, the store's own probe reports it

    async def aclose(self) -> None:
        """Makes this process known as ended."""
        await self._beats.aclose()
        with contextlib.suppress(StoreError):
            await self.forget(self.me)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def is_dead(self, owner: str) -> bool:
        """Returns whether the owner certainly works on nothing any more. Raises StoreError."""
        if owner == self.me:
            return False
        held = _is_held(self._lock_of(owner))
        return await self._is_silent(owner) if held is None else not held

    async def others(self) -> list[str]:
        """Returns the ids of the other processes that are known. Raises StoreError."""
        query = select(presence.c.id).where(presence.c.id != self.me)
        return [row.id for row in await self.store.rows(query)]

    async def forget(self, owner: str) -> None:
        """Removes what is left of a dead process. Raises StoreError."""
        await self.store.change(delete(presence).where(presence.c.id == owner))
        with contextlib.suppress(OSError):
            self._lock_of(owner).unlink()
        self._seen.pop(owner, None)

    def _lock_of(self, owner: str) -> Path:
        """Returns the path of the owner's lock; an id that is no UUID leads to no file."""
        with contextlib.suppress(ValueError):
            return self._run / f"{UUID(owner)}.lock"
        return self._run / "nobody.lock"

    async def _is_silent(self, owner: str) -> bool:
        seen = self._seen.get(owner)
        if seen is None or self.clock() - seen.looked >= LOOK:
            # while the store is down nothing is known: the other process cannot write, either
            self._seen.pop(owner, None)
            query = select(presence.c.counter).where(presence.c.id == owner)
            counter = next((row.counter for row in await self.store.rows(query)), None)
            now = since = self.clock()
            if seen is not None and seen.counter == counter and now - seen.looked <= GAP:
                since = seen.since
            seen = self._seen[owner] = _Seen(counter, since, now)
        return seen.looked - seen.since >= SILENCE

    async def _beat(self) -> None:
        own = update(presence).where(presence.c.id == self.me)
        if not await self.store.change(own.values(counter=presence.c.counter + 1)):
            new = {"id": self.me, "host": platform.node(), "pid": os.getpid(), "counter": 0}
            await self.store.change(insert(presence).values(new))


def _locked(run: Path, name: str) -> int:
    """Makes and locks the file, which has its name only once it is locked. Raises OSError."""
    run.mkdir(mode=0o700, parents=True, exist_ok=True)
    hidden = run / f"{name}.new"
    lock = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(lock, _mark(lock))
        hidden.rename(run / f"{name}.lock")
    except OSError:
        os.close(lock)
        hidden.unlink(missing_ok=True)
        raise
    return lock


def _is_held(path: Path) -> bool | None:
    """Returns whether somebody holds the lock; None where that cannot be told here."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if os.read(lock, 200) != _mark(lock):  # a copy, or the file of another machine
            return None
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(lock)
    return False


def _mark(lock: int) -> bytes:
    """Returns what only this file on this machine says, for as long as the machine is up."""
    return f"{boot()} {os.fstat(lock).st_ino}".encode()


def boot() -> str:
    """Returns what this machine is called from one start of it to the next."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return platform.node()
