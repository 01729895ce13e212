"""Keeps the audit's index up to date and drops what is old; one process of a folder does it.

It also tells the store of what processes wrote last that died.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import date, datetime, timedelta
from itertools import takewhile
from pathlib import Path

from gateway.audit.chains import (
    Chains,
    DayFile,
    Known,
    audit_folder,
    base_seal,
    files_by_chain,
    is_open,
    sync_folder,
)
from gateway.audit.entries import AuditSecret, key_file, read_line, read_secrets
from gateway.audit.index import Index, forget
from gateway.audit.search import last_lines
from gateway.audit.verification import BrokenChain, Walk, head_of, is_begin_of, rest
from gateway.background import Periodic, WallClock
from gateway.events import Events
from gateway.settings import Settings
from gateway.store import Store

# Seconds between two looks for new lines, and between two looks for what is old.
INDEX_EVERY = 60.0
EXPIRE_EVERY = 3600.0


class Upkeep(Periodic):
    """The index and the retention of one folder; several at once do no harm.

    `forget_too` drops what others keep of the days before one, once the audit has dropped its own.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        events: Events,
        now: Callable[[], datetime],
        clock: Callable[[], float] = time.monotonic,
        forget_too: Callable[[date], Awaitable[None]] | None = None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._events = events
        self._now = now
        self._clock = clock
        self._forget_too = forget_too
        self._index = Index(store, audit_folder(settings))
        self._ends = Ends(Chains(store), audit_folder(settings), now)
        self._retention = Retention(Chains(store), audit_folder(settings), events)
        self._expire_at = clock()
        self._wall_clock = WallClock(clock, now())
        super().__init__(
            INDEX_EVERY,
            self._turn,
            events,
            name="keep up the audit",
            first=self._record_ends,  # the process before this one may have been killed
            failed="audit_upkeep_failed",
            back="audit_upkeep_back",
        )

    async def _turn(self) -> None:
        """Take in what is new, and now and then drop what is old."""
        await self._record_ends()
        await self._index.catch_up()
        clock = self._clock()
        if self._wall_clock.is_trusted(self._now()) and clock >= self._expire_at:
            self._expire_at = clock + EXPIRE_EVERY
            await self._drop()

    async def _record_ends(self) -> None:
        await self._ends.record(lambda: read_secrets(key_file(self._settings)))

    async def _drop(self) -> None:
        before = (self._now() - timedelta(days=self._settings.audit.keep_days)).date()
        files = await self._retention.expire(read_secrets(key_file(self._settings)), before)
        await forget(self._store, before)
        if self._forget_too is not None:
            await self._forget_too(before)
        if files:
            self._events.report("audit_days_dropped", files=files)


class Ends:
    """The last lines of processes that died: verified, and the store is told of them.

    A process tells the store of its head beside its writing. What it wrote last before it was
    killed nobody has told; until somebody does, it could be cut off unnoticed. Each chain of the
    folder that has ended is looked at once.
    """

    def __init__(self, chains: Chains, folder: Path, now: Callable[[], datetime]) -> None:
        self._chains = chains
        self._folder = folder
        self._now = now
        self._settled: set[str] = set()

    async def record(self, secrets: Callable[[], Sequence[AuditSecret]]) -> None:
        """Tell the store of what it does not know yet. StoreError, OSError.

        What is not as it was written stays as it is: `audit verify` says so.
        """
        files = files_by_chain(self._folder)
        for known in await self._chains.known():
            own = files.get(known.id, [])
            if known.ended or known.id in self._settled or not _is_dead(own):
                continue
            if _last_seq(own[-1].path) > known.head.seq:
                await self._record(known, own, secrets())
            self._settled.add(known.id)

    async def _record(
        self, known: Known, files: Sequence[DayFile], secrets: Sequence[AuditSecret]
    ) -> None:
        walk = Walk(self._folder, known, secrets, rest)
        try:
            await asyncio.to_thread(walk.follow_on, files)
        except (BrokenChain, FileNotFoundError):
            return
        if walk.head.seq > known.head.seq:
            await self._chains.record(known.id, walk.head, self._now(), ended=walk.ended)


def _is_dead(files: Sequence[DayFile]) -> bool:
    """Whether nobody writes any more; a file without a byte may just be begun."""
    return bool(files) and files[-1].path.stat().st_size > 0 and not is_open(files[-1].path)


def _last_seq(path: Path) -> int:
    """The number of the last whole line, unverified; 0 where there is none."""
    lines = last_lines(path)
    head = head_of(lines.last) if lines else None
    return 0 if head is None else head.seq


class Retention:
    """Old days of one folder go: first the store is told up to where, as nobody deleted them.

    What is dropped is read before, line by line: a name says nothing about what a file holds.
    It is said once for each chain why its old days do not go.
    """

    def __init__(self, chains: Chains, folder: Path, events: Events) -> None:
        self._chains = chains
        self._folder = folder
        self._events = events
        self._told: set[str] = set()

    async def expire(self, secrets: Sequence[AuditSecret], before: date) -> int:
        """Drop the files of the days before that one; how many. StoreError, OSError.

        `secrets` are those of the audit, the newest first. A chain whose old files are not as they
        were written keeps them: they are what there is to look at.
        """
        dropped = 0
        known = {chain.id: chain for chain in await self._chains.known()}
        for name, own in files_by_chain(self._folder).items():
            old = list(takewhile(lambda file: file.day < before and not is_open(file.path), own))
            if old and await self._may_go(known.get(name), old, secrets, whole=old == own):
                for file in old:
                    file.path.unlink(missing_ok=True)
                dropped += len(old)
        if dropped:
            sync_folder(self._folder)
        return dropped

    async def _may_go(
        self,
        known: Known | None,
        old: Sequence[DayFile],
        secrets: Sequence[AuditSecret],
        *,
        whole: bool,
    ) -> bool:
        """Once the store knows up to where; a chain that it does not know has nobody to tell."""
        try:
            if known is None:
                await asyncio.to_thread(_check_begins, old)
                return True
            walk = Walk(self._folder, known, secrets, rest)
            await asyncio.to_thread(walk.follow, old, whole=whole)
        except (BrokenChain, FileNotFoundError) as error:
            await self._keep(known, old[0].chain, str(error))
            return False
        if walk.head.seq > known.base.seq:
            seal = base_seal(secrets[0], known.id, old[-1].day, walk.head)
            await self._chains.drop(known.id, old[-1].day, walk.head, seal)
        return True

    async def _keep(self, known: Known | None, chain: str, why: str) -> None:
        """Say so, unless another process has just dropped what was being read."""
        now = next((other for other in await self._chains.known() if other.id == chain), None)
        if (now and now.base) == (known and known.base) and chain not in self._told:
            self._told.add(chain)
            self._events.report("audit_days_kept", said=why)


def _check_begins(files: Sequence[DayFile]) -> None:
    """BrokenChain where one does not begin as the file of its day and chain, unverified.

    An empty one says nothing.
    """
    for file in files:
        with file.path.open("rb") as lines:
            first = lines.readline()
        mark = read_line(first) if first.endswith(b"\n") else None
        if first and (mark is None or not is_begin_of(file, mark)):
            text = "does not begin as the file of that day and chain"
            raise BrokenChain(file.path, 1, text)
