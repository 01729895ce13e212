"""Tells the store that a process serves, and by which policy: the rows of `policy status`."""

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import uuid4

from gateway.policy.running.versions import HEARTBEAT, Event, Process, Versions
from gateway.store.base import StoreError


class Presence:
    """One process's row, written when it has something new to say, and now and then.

    One that `sweeps` also clears away the rows of its neighbours that died.
    """

    def __init__(
        self,
        versions: Versions,
        now: Callable[[], datetime],
        role: str = "",
        *,
        sweeps: bool = False,
    ) -> None:
        self._versions = versions
        self._now = now
        self._role = {"role": role} if role else {}
        self._id, self._started_at = str(uuid4()), now()
        self._sweeps = sweeps
        self._said: tuple[Mapping[str, Any], int] | None = None
        self._said_at = now()

    async def say(
        self, told: Mapping[str, Any], revision: int, events: Sequence[Event] = ()
    ) -> None:
        """How it stands with the policy here, unless that has just been said. StoreError."""
        due = self._now() - self._said_at >= HEARTBEAT
        if not events and not due and self._said == (told, revision):
            return
        process = Process(
            id=self._id,
            host=socket.gethostname(),
            pid=os.getpid(),
            started_at=self._started_at,
            seen_at=self._now(),
            revision=revision,
            state={**told, **self._role},
        )
        if self._sweeps and (due or self._said is None):
            await self._sweep()
        await self._versions.write(events, process)
        self._said, self._said_at = (told, revision), process.seen_at

    async def _sweep(self) -> None:
        """Forget the processes of this machine that died without a word. StoreError."""
        host = socket.gethostname()
        gone = {pid for pid in await self._versions.pids(host) if not _is_running(pid)}
        if gone:
            await self._versions.forget(host, gone)

    async def leave(self) -> None:
        """It serves no more; where the store is not there, it is forgotten in time."""
        with suppress(StoreError):
            await self._versions.leave(self._id)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True
