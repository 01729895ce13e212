"""Keeps the audit's index up to date, drops old files and records the ends of dead processes."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import takewhile

from gateway.audit.chains import Chains, DayFile, audit_folder, files_by_chain, is_open, sync_folder
from gateway.audit.entries import key_file, read_line, read_secrets
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


@dataclass(eq=False)
class Upkeep(Periodic):
    """The task that indexes and expires one folder; several at once do no harm.

    `forget_too` is called with the first day that is kept, once the audit has dropped its own.
    """

    settings: Settings
    store: Store
    events: Events
    now: Callable[[], datetime]
    clock: Callable[[], float] = time.monotonic
    forget_too: Callable[[date], Awaitable[None]] | None = None

    def __post_init__(self) -> None:
        self._folder = audit_folder(self.settings)
        self._chains = Chains(self.store)
        self._index = Index(self.store, self._folder)
        # chains whose ends the store knows, and those that were reported to keep old days
        self._settled, self._told = set[str](), set[str]()
        self._expire_at = self.clock()
        self._wall_clock = WallClock(self.clock, self.now())
        super().__init__(
            INDEX_EVERY,
            self._turn,
            self.events,
            name="keep up the audit",
            first=self.record_ends,  # the process before this one may have been killed
            failed="audit_upkeep_failed",
            back="audit_upkeep_back",
        )

    async def _turn(self) -> None:
        await self.record_ends()
        await self._index.catch_up()
        clock = self.clock()
        if self._wall_clock.is_trusted(self.now()) and clock >= self._expire_at:
            self._expire_at = clock + EXPIRE_EVERY
            before = (self.now() - timedelta(days=self.settings.audit.keep_days)).date()
            files = await self.expire(before)
            await forget(self.store, before)
            if self.forget_too is not None:
                await self.forget_too(before)
            if files:
                self.events.report("audit_days_dropped", files=files)

    async def record_ends(self) -> None:
        """Records the last lines of processes that died. Raises StoreError and OSError.

        A process that was killed has not told the store of its last lines, which could be cut off
        unnoticed until somebody does. Each ended chain of the folder is read once. A broken one
        stays as it is, for `audit verify` to report.
        """
        files = files_by_chain(self._folder)
        for known in await self._chains.known():
            own = files.get(known.id)
            if known.ended or known.id in self._settled or own is None:
                continue
            last = own[-1].path
            # a file without a byte may just be begun
            if not last.stat().st_size or is_open(last):
                continue
            lines = last_lines(last)
            head = head_of(lines.last) if lines else None
            if head is not None and head.seq > known.head.seq:
                walk = Walk(self._folder, known, read_secrets(key_file(self.settings)), rest)
                with suppress(BrokenChain, FileNotFoundError):
                    await asyncio.to_thread(walk.follow_on, own)
                    if walk.head.seq > known.head.seq:
                        now, ended = self.now(), walk.ended
                        await self._chains.record(known.id, walk.head, now, ended=ended)
            self._settled.add(known.id)

    async def expire(self, before: date) -> int:
        """Drops the files of earlier days and returns how many. Raises StoreError and OSError.

        The store is told first, so that the files do not count as missing. A broken chain keeps its
        old files, which people will want to see.
        """
        dropped, secrets = 0, read_secrets(key_file(self.settings))
        known = {chain.id: chain for chain in await self._chains.known()}
        for name, own in files_by_chain(self._folder).items():
            old = list(takewhile(lambda file: file.day < before and not is_open(file.path), own))
            if not old:
                continue
            walk = Walk(self._folder, known[name], secrets, rest) if name in known else None
            try:
                await asyncio.to_thread(_check, walk, old, whole=old == own)
            except (BrokenChain, FileNotFoundError) as error:
                now = {chain.id: chain.base for chain in await self._chains.known()}.get(name)
                # unless another process has just dropped what was being read
                was = walk and walk.known.base
                if now == was and name not in self._told:
                    self._told.add(name)
                    self.events.report("audit_days_kept", said=str(error))
                continue
            if walk is not None and walk.head.seq > walk.known.base.seq:
                await self._chains.drop(name, old[-1].day, walk.head, secrets[0])
            for file in old:
                file.path.unlink(missing_ok=True)
            dropped += len(old)
        if dropped:
            sync_folder(self._folder)
        return dropped


def _check(walk: Walk | None, files: Sequence[DayFile], *, whole: bool) -> None:
    """Reads the files that will be dropped; raises BrokenChain where they are not as written.

    A chain that the store does not know has no `walk`: the first line of each file must then name
    its day and chain, unverified. An empty file passes.
    """
    if walk is not None:
        walk.follow(files, whole=whole)
        return
    for file in files:
        with file.path.open("rb") as lines:
            first = lines.readline()
        mark = read_line(first) if first.endswith(b"\n") else None
        if first and (mark is None or not is_begin_of(file, mark)):
            raise BrokenChain(file.path, 1, "does not begin as the file of that day and chain")
