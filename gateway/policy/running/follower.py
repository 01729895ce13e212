"""Follows the policy file in the process that decides, and its decision in the other processes.

The file is read twice a second, as not every mount reports changes. The policy that runs is handed
on in a file of the state folder. A process that starts later takes it from there, whatever the
operator's file says by then, and without the store.
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
from gateway.identity import stamp
from gateway.policy.policy import Policy, Version, compile_policy
from gateway.policy.reading.document import read_version
from gateway.policy.running.keeper import Keeper, PolicyStatus
from gateway.policy.running.versions import Presence, Versions
from gateway.settings import StartRefused
from gateway.store.base import StoreError

# Seconds between two looks at the operator's file, and at what is handed on.
POLL, POLL_HANDED = 0.5, 0.2
# Bytes that are kept free for the next handover, which are enough for any policy.
ROOM = 160 * 1024


@dataclass(eq=False)
class Follower:
    """Has the keeper look at the file, tells the store, and hands the policy on in `handed`."""

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
                if self.keeper.unwritten:  # an approval counts only if no other policy ran after it
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
        """Hands the decision on to the processes that serve, if it has changed."""
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
    """The policy that runs, and the `status` and `revision` of the process that decides."""

    version: Version
    loaded_at: datetime
    status: dict[str, Any]
    revision: int


_encode, _decode = json.Encoder().encode, json.Decoder(Handover).decode


def put(path: Path, handover: Handover) -> None:
    """Replaces the file, and reserves room for the next one on the disk. Raises OSError."""
    new = path.with_suffix(".new")

    def fill(data: bytes) -> None:
        """Overwrites the new file, with blanks up to a fixed size."""
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as stream:
            stream.write(data.ljust(ROOM))
            stream.truncate()

    fill(_encode(handover))
    new.replace(path)
    with suppress(OSError):
        fill(b"")


def take(path: Path) -> Handover | None:
    """Returns what was handed on; None where it is absent, unreadable or another user's."""
    try:
        # follows no link, and does not wait for the writer of a pipe
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            own = os.fstat(file.fileno()).st_uid == os.geteuid()
            return _decode(file.read()) if own else None
    except (OSError, DecodeError):
        return None


class Taker(Periodic):
    """Serves by the policy that is handed on, and tells the store so."""

    _policy: Policy
    _handed: Handover

    def __init__(self, path: Path, report: Report, presence: Presence, events: Events) -> None:
        self._path = path
        self._report = report
        self._presence = presence
        self._taken = Attempts(events, "policy_not_taken")
        self._announced = Attempts(events, "policy_not_announced")
        self._stamp: tuple[int, int, int] | None = None
        work = self._follow
        super().__init__(POLL_HANDED, work, name="take the policy", first=work)

    @property
    def status(self) -> dict[str, Any]:
        return {**self._handed.status, "hash": self._policy.short_hash}

    def policy(self) -> Policy:
        return self._policy

    async def begin(self) -> None:
        """Takes the policy that was handed on; raises StartRefused where there is none."""
        if not await self._take(None):
            raise StartRefused(f"no policy has been handed over in {self._path}")

    async def aclose(self) -> None:
        await super().aclose()
        await self._presence.leave()

    async def _follow(self) -> None:
        """Takes a new policy and tells the store; on a failure the running one goes on."""
        with self._taken:
            if stamp(self._path) != self._stamp:
                await self._take(self._policy)
        with self._announced:
            await self._presence.say(self.status, self._handed.revision)

    async def _take(self, running: Policy | None) -> bool:
        """Takes what was handed on, and returns whether there was anything."""
        # the stamp first, so that a file that is put there meanwhile is seen the next time
        current, handed = stamp(self._path), take(self._path)
        if handed is None:
            return False
        if running is None or handed.version.hash != running.hash:
            rules = await asyncio.to_thread(read_version, handed.version)
            parts = handed.version, rules, self._report, running
            self._policy = await asyncio.to_thread(compile_policy, *parts)
        self._stamp, self._handed = current, handed
        return True
