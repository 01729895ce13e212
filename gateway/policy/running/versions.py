"""The policies in the store: which ran, what became of each file, what each process says of it."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.store.base import Store
from gateway.store.tables import (
    adding,
    policy_history,
    policy_processes,
    policy_versions,
    revisions,
)

RAN, HELD, REFUSED = "ran", "held", "refused"
# What somebody said of a policy that waited.
APPROVED, DECLINED = "approved", "declined"
# How often a process says that it is there, and after how long without that it is not.
HEARTBEAT = timedelta(seconds=5)
SILENT = timedelta(seconds=15)
_FORGOTTEN = timedelta(days=1)
_history, _versions, _processes = policy_history, policy_versions, policy_processes


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A policy's text. `made_of` are the hashes of the two that it is the common part of."""

    hash: str
    content: bytes
    file: str
    made_of: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What became of a policy; `hash` is "" where its file could not be read."""

    at: datetime
    event: str
    hash: str
    version: Version | None = None
    who: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """An event in the order of its number, and whether the policy's text is kept."""

    number: int
    event: Event
    is_kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that serves, and what it says of its policy.

    `revision` is the one up to which it has looked.
    """

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
        self._store = store
        self.mark = store.mark

    async def last(self) -> Version | None:
        """The policy that ran last; its content is empty where the store has lost it."""
        newest = _newest(_history.c.event == RAN)
        kept = (_versions.c.content, _versions.c.file, _versions.c.made_of)
        query = (
            select(_history.c.hash, *kept)
            .join(_versions, _history.c.hash == _versions.c.hash, isouter=True)
            .where(_history.c.id == newest)
        )
        async with self._store.begin() as connection:
            row = (await connection.execute(query)).one_or_none()
        return _version(row)

    async def find(self, start: str) -> Version | None:
        """The policy whose hash begins so; of several the one that came last."""
        begins = _versions.c.hash.startswith(start, autoescape=True)
        newest = select(_versions).join(_history, _history.c.hash == _versions.c.hash)
        query = newest.where(begins).order_by(_history.c.id.desc()).limit(1)
        async with self._store.begin() as connection:
            row = (await connection.execute(query)).one_or_none()
        return _version(row)

    async def approved(self, digest: str) -> bool:
        """Whether somebody approved that policy since another one ran: each time counts once.

        It counts no more once somebody has declined the same policy.
        """
        query = select(
            _newest(_history.c.event == APPROVED, _history.c.hash == digest),
            _newest(_history.c.event == RAN, _history.c.hash != digest),
            _newest(_history.c.event == DECLINED, _history.c.hash == digest),
        )
        async with self._store.begin() as connection:
            approval, *since = (await connection.execute(query)).one()
        return approval is not None and all(approval > (each or 0) for each in since)

    async def declined(self, digest: str) -> Event | None:
        """Who declined that policy, unless it was approved since, or the file said another one."""
        looked = (RAN, HELD, REFUSED)
        query = select(
            _newest(_history.c.event == DECLINED, _history.c.hash == digest),
            _newest(_history.c.event == APPROVED, _history.c.hash == digest),
            _newest(_history.c.event.in_(looked), _history.c.hash != digest),
        )
        async with self._store.begin() as connection:
            number, *since = (await connection.execute(query)).one()
            if number is None or any(number < (each or 0) for each in since):
                return None
            found = await connection.execute(select(_history).where(_history.c.id == number))
            return _event(found.one())

    async def history(
        self, most: int, *, before: int | None = None, digest: str | None = None
    ) -> Sequence[Past]:
        """What happened, the newest first: before the event of a number, or with one policy."""
        query = (
            select(_history, _versions.c.hash.is_not(None).label("is_kept"))
            .join(_versions, _history.c.hash == _versions.c.hash, isouter=True)
            .order_by(_history.c.id.desc())
            .limit(most)
        )
        if before is not None:
            query = query.where(_history.c.id < before)
        if digest is not None:
            query = query.where(_history.c.hash == digest)
        async with self._store.begin() as connection:
            rows = (await connection.execute(query)).all()
        return [Past(number=row.id, event=_event(row), is_kept=bool(row.is_kept)) for row in rows]

    async def revision(self) -> int:
        """What moves on whenever the running processes are to look."""
        async with self._store.glance() as connection:
            return await _revision(connection)

    async def write(self, events: Sequence[Event], process: Process) -> None:
        """All of it, or StoreError."""

        async def written(connection: AsyncConnection) -> None:
            if events:
                await _in_turn(connection)
            for event in events:
                await _write(connection, event)
            row = _row(process)
            changed = update(_processes).where(_processes.c.id == process.id).values(**row)
            if (await connection.execute(changed)).rowcount == 0:
                await connection.execute(insert(_processes).values(id=process.id, **row))
                old = _processes.c.seen_at < process.seen_at - _FORGOTTEN
                await connection.execute(delete(_processes).where(old))

        await self._store.run(written)

    async def leave(self, process_id: str) -> None:
        """The process serves no more."""
        async with self._store.begin() as connection:
            await connection.execute(delete(_processes).where(_processes.c.id == process_id))

    async def pids(self, host: str) -> set[int]:
        """The ids of all processes of a machine that did not say that they leave."""
        query = select(_processes.c.pid).where(_processes.c.host == host)
        async with self._store.begin() as connection:
            return set((await connection.execute(query)).scalars())

    async def forget(self, host: str, pids: Collection[int]) -> None:
        """These processes of a machine have ended without a word."""
        gone = (_processes.c.host == host) & _processes.c.pid.in_(pids)
        async with self._store.begin() as connection:
            await connection.execute(delete(_processes).where(gone))

    async def running(self, now: datetime) -> list[Process]:
        """The processes that serve, the oldest first."""
        query = (
            select(_processes)
            .where(_processes.c.seen_at > now - SILENT)
            .order_by(_processes.c.started_at)
        )
        async with self._store.begin() as connection:
            rows = (await connection.execute(query)).mappings().all()
        return [Process(**{**row, "state": json.loads(row["state"])}) for row in rows]

    async def ask(self, decision: Event | None = None) -> int:
        """Have the running processes look, at a decision too; the revision to wait for."""

        async def asked(connection: AsyncConnection) -> int:
            moved = update(revisions).where(revisions.c.name == "policy")
            await connection.execute(moved.values(value=revisions.c.value + 1))
            if decision is not None:
                await _write(connection, decision)
            return await _revision(connection)

        return await self._store.run(asked)


def _newest(*conditions: ColumnElement[bool]) -> ScalarSelect[Any]:
    return select(func.max(_history.c.id)).where(*conditions).scalar_subquery()


def _event(row: Any) -> Event:
    return Event(at=row.at, event=row.event, hash=row.hash, who=row.who, reason=row.reason)


def _version(row: Any) -> Version | None:
    if row is None:
        return None
    running, _, file = (row.made_of or "").partition(" ")
    made_of = (running, file) if file else None
    return Version(hash=row.hash, content=row.content or b"", file=row.file or "", made_of=made_of)


async def _revision(connection: AsyncConnection) -> int:
    found = await connection.execute(select(revisions.c.value).where(revisions.c.name == "policy"))
    return int(found.scalar_one())


async def _in_turn(connection: AsyncConnection) -> None:
    """One after the other, so that the numbers of what happened are in the order of commits."""
    locked = select(revisions.c.value).where(revisions.c.name == "policy").with_for_update()
    await connection.execute(locked)


def _row(process: Process) -> dict[str, Any]:
    return {
        "host": process.host,
        "pid": process.pid,
        "started_at": process.started_at,
        "seen_at": process.seen_at,
        "revision": process.revision,
        "state": json.dumps(process.state),
    }


async def _write(connection: AsyncConnection, event: Event) -> None:
    if event.version is not None:
        await _keep(connection, event.version, event.at if event.event == RAN else None)
    await connection.execute(
        insert(_history).values(
            at=event.at, event=event.event, hash=event.hash, who=event.who, reason=event.reason
        )
    )


async def _keep(connection: AsyncConnection, version: Version, ran_at: datetime | None) -> None:
    """The version, where it is not kept yet, and that it ran."""
    at = _versions.c.hash == version.hash
    found = (await connection.execute(select(_versions.c.first_ran_at).where(at))).one_or_none()
    if found is None:
        values = {"content": version.content, "file": version.file, "first_ran_at": ran_at}
        made_of = " ".join(version.made_of) if version.made_of else None
        row = adding(connection, _versions).values(hash=version.hash, made_of=made_of, **values)
        await connection.execute(row.on_conflict_do_nothing())
    elif found.first_ran_at is None and ran_at is not None:
        await connection.execute(update(_versions).where(at).values(first_ran_at=ran_at))
