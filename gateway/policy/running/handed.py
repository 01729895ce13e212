"""The policy that runs, handed by the process that decides it to those that serve by it.

It lies in a file of the state folder, replaced as a whole: so a process that is started later takes
what runs, whatever the operator's own file says by then, and needs no store for it.
"""

import asyncio
import contextlib
import os
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from msgspec import DecodeError, Struct, json

from adapters.base import Report
from gateway.background import ended
from gateway.policy.policy import Policy, compile_policy
from gateway.policy.running.keeper import Keeper
from gateway.policy.running.presence import Presence
from gateway.policy.running.standing import Standing
from gateway.policy.running.stored import read_version
from gateway.policy.running.versions import Version
from gateway.settings import StartRefused

# Seconds between two looks at the file.
POLL = 0.2
# Bytes that any policy finds room in, as it is handed on.
ROOM = 160 * 1024


class Handed(Struct, kw_only=True, frozen=True):
    """What runs since when; `told` is how the one who decided says it stands.

    `revision` is the store's, up to which that one has looked.
    """

    hash: str
    content: bytes
    file: str
    made_of: tuple[str, str] | None
    loaded_at: datetime
    told: dict[str, Any]
    revision: int

    @property
    def version(self) -> Version:
        """As the store would keep it."""
        return Version(hash=self.hash, content=self.content, file=self.file, made_of=self.made_of)


_encode, _decode = json.Encoder().encode, json.Decoder(Handed).decode


def handed(standing: Standing, running: Version, revision: int) -> Handed:
    """How things stand, as it is handed on."""
    return Handed(
        hash=running.hash,
        content=running.content,
        file=running.file,
        made_of=running.made_of,
        loaded_at=standing.loaded_at,
        told=standing.told(),
        revision=revision,
    )


def hand_over(path: Path, keeper: Keeper, revision: int) -> None:
    """Have those that serve take what runs by now. OSError."""
    _put(path, handed(keeper.standing, keeper.running, revision))


def nobody(keeper: Keeper, revision: int) -> None:
    """Where one process decides and serves, there is nobody to hand anything to."""


def _put(path: Path, what: Handed) -> None:
    """A full disk has room for it all the same: the next file is there before it is needed."""
    new = path.with_suffix(".new")
    _fill(new, _encode(what))
    new.replace(path)
    with contextlib.suppress(OSError):
        _fill(new, b"")


def _fill(path: Path, data: bytes) -> None:
    """Write over what lies there, up to a size that is always the same: blanks mean nothing."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    with os.fdopen(file, "wb") as stream:
        stream.write(data.ljust(ROOM))
        stream.truncate()


def take(path: Path) -> Handed | None:
    """What lies there; None where nothing does, nothing that can be read, or another user's."""
    try:
        # no link is followed, nor is a pipe waited for
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            own = os.fstat(file.fileno()).st_uid == os.geteuid()
            return _decode(file.read()) if own else None
    except (OSError, DecodeError):
        return None


class TakingTroubles(Protocol):
    """Hears what keeps a policy from being taken, and the store from being told of it."""

    def untaken(self, error: Exception) -> None: ...

    def unsaid(self, error: Exception) -> None: ...


class Taker:
    """Serves by what is handed to it, and tells the store so."""

    def __init__(
        self, path: Path, report: Report, presence: Presence, troubles: TakingTroubles
    ) -> None:
        self._path = path
        self._report = report
        self._presence = presence
        self._troubles = troubles
        self._untaken = self._unsaid = False
        self._mark: tuple[int, int] | None = None
        self._handed: Handed
        self._policy: Policy
        self._task: asyncio.Task[None] | None = None

    @property
    def told(self) -> dict[str, Any]:
        """How it stands with the policy here."""
        return {**self._handed.told, "hash": self._policy.short_hash}

    def policy(self) -> Policy:
        """What runs; a request asks once."""
        return self._policy

    async def begin(self) -> None:
        """Take what lies there. StartRefused where nothing does."""
        mark, found = self._look()
        if found is None:
            raise StartRefused(f"no policy has been handed over in {self._path}")
        self._policy = await asyncio.to_thread(self._compiled, found, None)
        self._mark, self._handed = mark, found

    def start(self) -> None:
        """Follow what is handed, until `aclose`."""
        self._task = asyncio.create_task(self._follow(), name="take the policy")

    async def aclose(self) -> None:
        """Follow no more."""
        if self._task is not None:
            with contextlib.suppress(Exception):
                await ended(self._task)
            await self._presence.leave()

    async def _follow(self) -> None:
        while True:
            await self._take()
            await self._say()
            await asyncio.sleep(POLL)

    async def _take(self) -> None:
        """What was handed over since the last time; what cannot be taken is told once."""
        try:
            await self._turn()
        except Exception as error:  # noqa: BLE001 - what runs goes on, and is followed on
            if not self._untaken:
                self._troubles.untaken(error)
            self._untaken = True
        else:
            self._untaken = False

    async def _say(self) -> None:
        """Tell the store what runs here; a store that is gone is told of once."""
        try:
            await self._presence.say(self.told, self._handed.revision)
        except Exception as error:  # noqa: BLE001 - the store alone does not know of it
            if not self._unsaid:
                self._troubles.unsaid(error)
            self._unsaid = True
        else:
            self._unsaid = False

    async def _turn(self) -> None:
        mark = _mark(self._path)
        if mark == self._mark:
            return
        mark, found = self._look()
        if found is None:
            return
        if found.hash != self._policy.hash:
            self._policy = await asyncio.to_thread(self._compiled, found, self._policy)
        self._mark, self._handed = mark, found

    def _look(self) -> tuple[tuple[int, int] | None, Handed | None]:
        # marked first: what is put there meanwhile is then seen the next time
        return _mark(self._path), take(self._path)

    def _compiled(self, found: Handed, like: Policy | None) -> Policy:
        rules = read_version(found.version)
        return compile_policy(found.file, found.hash, rules, self._report, like)


def _mark(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_mtime_ns
    return None
