"""Follows the policy: the file in the process that decides, what that one hands on in the others.

The file is read again twice a second, as not every mount tells of changes. What runs is handed on
in a file of the state folder, replaced as a whole: so a process that is started later takes what
runs, whatever the operator's own file says by then, and needs no store for it.
"""

import asyncio
import os
from contextlib import suppress
from dataclasses import InitVar, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import DecodeError, Struct, json

from adapters.base import Report
from gateway.background import Attempts, Periodic
from gateway.events import Events
from gateway.policy.policy import Policy, Version, compile_policy
from gateway.policy.reading.document import read_version
from gateway.policy.running.keeper import Keeper, PolicyStatus
from gateway.policy.running.versions import Presence, Versions
from gateway.settings import StartRefused
from gateway.store.base import StoreError

# Seconds between two looks at the operator's file, and at what is handed on.
POLL, POLL_HANDED = 0.5, 0.2
# Bytes that any policy finds room in, as it is handed on.
ROOM = 160 * 1024


@dataclass(eq=False)
class Follower:
    """Has the keeper look at the file, and tells the store how it stands.

    `handed` is the file in which what runs is handed on, where other processes serve by it.
    """

    keeper: Keeper
    versions: Versions
    presence: Presence
    events: InitVar[Events]
    handed: Path | None = None

    def __post_init__(self, events: Events) -> None:
        self._asked = self._started = False
        self._revision = 0
        self._told: tuple[PolicyStatus, int] | None = None
        self._store = Attempts(events, "policy_store_unusable", kind=StoreError)
        name, failed = "follow the policy", "policy_not_followed"
        self._looks = Periodic(POLL, self._turn, events, name=name, failed=failed)

    async def start(self) -> None:
        """Begins to follow; raises StoreError where the store cannot be used."""
        self._revision = await self.versions.revision()
        await self._tell()
        self._pass_on()
        self._looks.start()
        self._started = True

    def ask(self) -> None:
        """Has the file looked at now, even where it has not changed."""
        self._asked = True
        self._looks.soon()

    async def aclose(self) -> None:
        """Stops following and writes the events that the store does not have yet."""
        if self._started:
            await self._looks.aclose()
            with suppress(StoreError):
                await self._tell()
            await self.presence.leave()

    async def _turn(self) -> None:
        """Looks once, even where the store cannot be asked, then tells the store."""
        asked, self._asked = self._asked, False
        with self._store:
            try:
                if self.keeper.unwritten:  # an approval counts only for what nothing ran after
                    await self._tell()
                revision = await self.versions.revision()
            except StoreError:
                await self.keeper.look(asked=asked)
                self._pass_on()
                raise
            await self.keeper.look(asked=asked or revision != self._revision)
            self._revision = revision
            self._pass_on()
            await self._tell()

    def _pass_on(self) -> None:
        """Hands the decision to the processes that serve, before anybody else hears of it."""
        now = status, revision = self.keeper.status, self._revision
        if self.handed is not None and self._told != now:
            members = status.members()
            put(self.handed, Handover(status.policy.version, status.loaded_at, members, revision))
            self._told = now

    async def _tell(self) -> None:
        events = list(self.keeper.unwritten)
        await self.presence.say(self.keeper.status.members(), self._revision, events)
        self.keeper.written(events)


class Handover(Struct, frozen=True):
    """What runs since when, with the `status` and `revision` of the process that decides."""

    version: Version
    loaded_at: datetime
    status: dict[str, Any]
    revision: int


_encode, _decode = json.Encoder().encode, json.Decoder(Handover).decode


def put(path: Path, handover: Handover) -> None:
    """Replaces the file; the next one has its room before, lest the disk be full. OSError."""
    new = path.with_suffix(".new")

    def fill(data: bytes) -> None:
        """Overwrites it up to a fixed size; the blanks at its end mean nothing."""
        file = os.open(new, os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(file, "wb") as stream:
            stream.write(data.ljust(ROOM))
            stream.truncate()

    fill(_encode(handover))
    new.replace(path)
    with suppress(OSError):
        fill(b"")


def take(path: Path) -> Handover | None:
    """Returns what was handed on; None where it is absent, unreadable or another user's."""
    try:
        # no link is followed, nor is a pipe waited for
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            own = os.fstat(file.fileno()).st_uid == os.geteuid()
            return _decode(file.read()) if own else None
    except (OSError, DecodeError):
        return None


class Taker(Periodic):
    """Serves by the policy that is handed to it, and tells the store so."""

    _policy: Policy
    _handed: Handover

    def __init__(self, path: Path, report: Report, presence: Presence, events: Events) -> None:
        self._path = path
        self._report = report
        self._presence = presence
        self._taken = Attempts(events, "policy_not_taken")
        self._announced = Attempts(events, "policy_not_announced")
        self._mark: tuple[int, int] | None = None
        work = self._follow
        super().__init__(POLL_HANDED, work, name="take the policy", first=work)

    @property
    def status(self) -> dict[str, Any]:
        return {**self._handed.status, "hash": self._policy.short_hash}

    def policy(self) -> Policy:
        return self._policy

    async def begin(self) -> None:
        """Takes what was handed on; raises StartRefused where nothing was."""
        if not await self._take(None):
            raise StartRefused(f"no policy has been handed over in {self._path}")

    async def aclose(self) -> None:
        await super().aclose()
        await self._presence.leave()

    async def _follow(self) -> None:
        """Takes what is handed on and tells the store; where the first fails, what runs goes on."""
        with self._taken:
            if _mark(self._path) != self._mark:
                await self._take(self._policy)
        with self._announced:
            await self._presence.say(self.status, self._handed.revision)

    async def _take(self, running: Policy | None) -> bool:
        """Returns whether there was anything to take."""
        # marked first: what is put there meanwhile is then seen the next time
        mark, found = _mark(self._path), take(self._path)
        if found is None:
            return False
        if running is None or found.version.hash != running.hash:
            rules = await asyncio.to_thread(read_version, found.version)
            made = found.version, rules, self._report, running
            self._policy = await asyncio.to_thread(compile_policy, *made)
        self._mark, self._handed = mark, found
        return True


def _mark(path: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_mtime_ns
    return None
