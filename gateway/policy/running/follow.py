"""Follows the policy file while the gateway runs, and what operators ask of it through the store.

The folder is watched, since a file that is replaced is another file; and as not every mount tells
of changes, the file is read again twice a second all the same.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from watchfiles import awatch

from gateway.background import ended
from gateway.policy.cases.run import cases_beside
from gateway.policy.running.keeper import Keeper
from gateway.policy.running.presence import Presence
from gateway.policy.running.standing import Standing
from gateway.policy.running.versions import Versions
from gateway.policy.running.watcher import Watcher
from gateway.store.base import StoreError

# Seconds between two looks; and before a folder that could not be watched is tried again.
POLL = 0.5
WATCH_AGAIN = 5.0
# Milliseconds without a change that end a group of changes, and how long a group may be.
_STEP, _GROUP = 50, 500


class Follower:
    """Has the keeper look at the file, and tells the store how it stands."""

    def __init__(
        self,
        keeper: Keeper,
        path: Path,
        versions: Versions,
        presence: Presence,
        watcher: Watcher,
        hand: Callable[[Keeper, int], None] = lambda keeper, revision: None,
    ) -> None:
        self._keeper = keeper
        self._path = path
        self._versions = versions
        self._presence = presence
        self._watcher = watcher
        self._hand = hand
        self._wake = asyncio.Event()
        self._asked = False
        self._mark: object = None
        self._revision = 0
        self._handed: tuple[Standing, int] | None = None
        self._failing = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to follow. StoreError where the store cannot be used."""
        self._revision = await self._versions.revision()
        await self._tell()
        self._pass_on()
        for each in (self._follow(), self._watch()):
            self._tasks.append(asyncio.create_task(each))

    def ask(self) -> None:
        """Have the file looked at now, also where it is as it was."""
        self._asked = True
        self._wake.set()

    async def aclose(self) -> None:
        """Stop following; write what is not written."""
        if self._tasks:
            with suppress(Exception):
                await ended(*self._tasks)
            with suppress(StoreError):
                await self._tell()
            await self._presence.leave()

    async def _follow(self) -> None:
        turn = 0
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL):
                    await self._wake.wait()
            self._wake.clear()
            turn += 1
            try:
                await self._turn(certainly=self._failing or turn % 2 == 0)
            except StoreError as error:
                if not self._failing:
                    self._watcher.untold(error, str(error))
                self._failing = True
            except Exception as error:  # noqa: BLE001 - whatever it is, the file must be followed on
                if not self._failing:
                    self._watcher.failed(error, "")
                self._failing = True
            else:
                self._failing = False

    async def _turn(self, *, certainly: bool) -> None:
        """One look, whether or not the store can be asked; then the store is told of it."""
        asked, self._asked = self._asked, False
        try:
            if self._keeper.unwritten:  # an approval counts only for what nothing ran after
                await self._tell()
            revision = await self._newest(certainly=certainly)
        except StoreError:
            await self._keeper.look(asked=asked)
            self._pass_on()
            raise
        await self._keeper.look(asked=asked or revision != self._revision)
        self._revision = revision
        self._pass_on()
        await self._tell()

    async def _newest(self, *, certainly: bool) -> int:
        """The revision; as it was where the store looks untouched, since asking costs more."""
        mark = self._versions.mark()
        if not certainly and mark is not None and mark == self._mark:
            return self._revision
        revision = await self._versions.revision()
        self._mark = mark
        return revision

    def _pass_on(self) -> None:
        """Have those that serve know what is decided here, before anybody else hears of it."""
        now = (self._keeper.standing, self._revision)
        if self._handed != now:
            self._hand(self._keeper, self._revision)
            self._handed = now

    async def _tell(self) -> None:
        events = list(self._keeper.unwritten)
        await self._presence.say(self._keeper.standing.told(), self._revision, events)
        self._keeper.written(events)

    async def _watch(self) -> None:
        """Look at once where a name changes that may lead to the file."""
        while True:
            with suppress(OSError, RuntimeError):
                async for _ in awatch(
                    self._path.parent,
                    watch_filter=lambda _, path: Path(path).name in set(self._names()),
                    debounce=_GROUP,
                    step=_STEP,
                    recursive=False,
                ):
                    self._wake.set()
            await asyncio.sleep(WATCH_AGAIN)

    def _names(self) -> Iterator[str]:
        yield self._path.name
        yield cases_beside(self._path).name
        yield "..data"  # what Kubernetes moves on, with every file that is beneath it
