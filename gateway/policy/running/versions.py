"""Keeps policies in the store: their texts, their history, and the status of each process."""

import json
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import ColumnElement, delete, func, insert, select, update

from gateway.policy.policy import Version
from gateway.store import tables
from gateway.store.base import Store, StoreError
from gateway.store.engine import AsyncConnection

RAN, HELD, REFUSED = "ran", "held", "refused"
# Decisions on a policy that waited.
APPROVED, DECLINED = "approved", "declined"
# How often a process writes that it is alive, and after how long a silent one counts as gone.
HEARTBEAT = timedelta(seconds=5)
SILENT = timedelta(seconds=15)
_FORGOTTEN = timedelta(days=1)
_history, _versions = tables.policy_history, tables.policy_versions
_processes, _revisions = tables.policy_processes, tables.revisions
_own = _revisions.c.name == "policy"
_value = select(_revisions.c.value).where(_own)
_number, _event, _hash = _history.c.id, _history.c.event, _history.c.hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What became of a policy. `hash` is "" where its file could not be read.

    An event of the history has a number. `is_kept`: the store has the policy's text.
    """

    at: datetime
    event: str
    hash: str
    version: Version | None = None
    who: str | None = None
    reason: str | None = None
    number: int = 0
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class Process:
    """A process that serves, the status of its policy, and the revision up to which it looked."""

    id: str
    host: str
    pid: int
    started_at: datetime
    seen_at: datetime
    revision: int
    state: Mapping[str, Any]


class Versions:
    """Reads and writes the policies of one store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def last(self) -> Version | None:
        """Returns the policy that ran last, with empty content where the store has lost it."""
        kept = (_versions.c.content, _versions.c.file, _versions.c.made_of)
        query = select(_hash, *kept).join(_versions, _hash == _versions.c.hash, isouter=True)
        return _version(await self._one(query.where(_number == _newest(_event == RAN))))

    async def find(self, start: str) -> Version | None:
        """Returns the newest of the policies whose hash begins with `start`."""
        begins = _versions.c.hash.startswith(start, autoescape=True)
        query = select(_versions).join(_history, _hash == _versions.c.hash).where(begins)
        return _version(await self._one(query.order_by(_number.desc()).limit(1)))

    async def approved(self, digest: str) -> bool:
        """Returns whether the last decision on a policy, since another one ran, is an approval."""
        return await self._decision(digest, APPROVED, DECLINED, (RAN,)) is not None

    async def declined(self, digest: str) -> Event | None:
        """Returns who declined a policy, unless it was approved or the file changed since."""
        return await self._decision(digest, DECLINED, APPROVED, (RAN, HELD, REFUSED))

    async def _decision(
        self, digest: str, decision: str, opposite: str, ending: Sequence[str]
    ) -> Event | None:
        """Returns the last such decision, unless the opposite or another policy came after it."""
        # nosemgrep: digests-are-compared-in-constant-time - the hash of a policy is no secret
        own, other = _hash == digest, _hash != digest
        query = select(_history).where(
            _number == _newest(_event == decision, own),
            _number > _newest(_event == opposite, own),
            _number > _newest(_event.in_(ending), other),
        )
        row = await self._one(query)
        return Event(**_told(row)) if row else None

    async def history(
        self, most: int, *, before: int | None = None, digest: str | None = None
    ) -> Sequence[Event]:
        """Returns events, the newest first; those before a number, or of one policy."""
        query = (
            select(_history, _versions.c.hash.is_not(None).label("is_kept"))
            .join(_versions, _hash == _versions.c.hash, isouter=True)
            .order_by(_number.desc())
            .limit(most)
        )
        if before is not None:
            query = query.where(_number < before)
        if digest is not None:
            # nosemgrep: digests-are-compared-in-constant-time - the hash of a policy is no secret
            query = query.where(_hash == digest)
        rows = await self.store.rows(query)
        return [Event(**_told(row), number=row.id, is_kept=bool(row.is_kept)) for row in rows]

    async def revision(self) -> int:
        """Returns the number that grows whenever the running processes are to look."""
        async with self.store.glance() as connection:
            return int((await connection.execute(_value)).scalar_one())

    async def running(self, now: datetime) -> list[Process]:
        """Returns the processes that serve, the oldest first."""
        alive = select(_processes).where(_processes.c.seen_at > now - SILENT)
        rows = await self.store.rows(alive.order_by(_processes.c.started_at))
        return [Process(**{**row._asdict(), "state": json.loads(row.state)}) for row in rows]

    async def ask(self, decision: Event | None = None) -> int:
        """Has the running processes look, also at a decision; returns the revision to wait for."""

        async def asked(connection: AsyncConnection) -> int:
            number = _revisions.c.value
            moved = update(_revisions).where(_own).values(value=number + 1).returning(number)
            revision = int((await connection.execute(moved)).scalar_one())
            if decision is not None:
                await _write(connection, decision)
            return revision

        return await self.store.run(asked)

    async def _one(self, query: Any) -> Any:
        return next(iter(await self.store.rows(query)), None)


def _newest(*conditions: ColumnElement[bool]) -> Any:
    """Returns the number of the last such event, 0 where there is none."""
    return select(func.coalesce(func.max(_number), 0)).where(*conditions).scalar_subquery()


def _told(event: Any) -> dict[str, Any]:
    return {name: getattr(event, name) for name in ("at", "event", "hash", "who", "reason")}


def _version(row: Any) -> Version | None:
    if row is None:
        return None
    running, _, file = (row.made_of or "").partition(" ")
    made_of = (running, file) if file else None
    return Version(hash=row.hash, content=row.content or b"", file=row.file or "", made_of=made_of)


async def _write(connection: AsyncConnection, event: Event) -> None:
    """Writes an event, and its version with the time when that first ran."""
    if version := event.version:
        ran_at = event.at if event.event == RAN else None
        made_of = " ".join(version.made_of) if version.made_of else None
        values = {**asdict(version), "made_of": made_of, "first_ran_at": ran_at}
        kept = tables.adding(connection, _versions).values(values)
        first = func.coalesce(_versions.c.first_ran_at, kept.excluded.first_ran_at)
        own = {"index_elements": ["hash"], "set_": {"first_ran_at": first}}
        await connection.execute(kept.on_conflict_do_update(**own))
    await connection.execute(insert(_history).values(_told(event)))


@dataclass(eq=False)
class Presence:
    """Writes the row of one process when its status changes, and as a heartbeat.

    A process that `sweeps` also removes the rows of dead processes of its machine.
    """

    versions: Versions
    now: Callable[[], datetime]
    role: str = ""
    _: KW_ONLY
    sweeps: bool = False

    def __post_init__(self) -> None:
        own, at = (str(uuid4()), socket.gethostname(), os.getpid()), self.now()
        self._said = Process(*own, started_at=at, seen_at=at, revision=-1, state={})

    async def say(
        self, status: Mapping[str, Any], revision: int, events: Sequence[Event] = ()
    ) -> None:
        """Writes the status, unless it has just been written; raises StoreError."""
        last, state, now = self._said, dict(status), self.now()
        if self.role:
            state["role"] = self.role
        due = now - last.seen_at >= HEARTBEAT
        if not events and not due and (last.state, last.revision) == (state, revision):
            return
        if self.sweeps and (due or last.revision < 0):
            await self._forget_dead()
        process = replace(last, seen_at=now, revision=revision, state=state)

        async def write(connection: AsyncConnection) -> None:
            if events:
                # locks, so that the numbers are in the order of commits
                await connection.execute(_value.with_for_update())
            for event in events:
                await _write(connection, event)
            row = {**asdict(process), "state": json.dumps(state)}
            changed = update(_processes).where(_processes.c.id == process.id).values(row)
            if (await connection.execute(changed)).rowcount == 0:
                await connection.execute(insert(_processes).values(row))
                old = _processes.c.seen_at < now - _FORGOTTEN
                await connection.execute(delete(_processes).where(old))

        await self.versions.store.run(write)
        self._said = process

    async def _forget_dead(self) -> None:
        """Removes the processes of this machine that ended without a word."""
        store, own, gone = self.versions.store, _processes.c.host == self._said.host, []
        for (pid,) in await store.rows(select(_processes.c.pid).where(own).distinct()):
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                gone.append(pid)
            except OSError:  # a process of another user
                pass
        if gone:
            await store.change(delete(_processes).where(own, _processes.c.pid.in_(gone)))

    async def leave(self) -> None:
        """Removes the row; where the store is down, the row expires."""
        with suppress(StoreError):
            own = _processes.c.id == self._said.id
            await self.versions.store.change(delete(_processes).where(own))
