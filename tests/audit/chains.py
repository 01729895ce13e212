"""Chains as processes write them, made at once: real writers, a real store, a told clock."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

from gateway.audit.buffer import Writer
from gateway.audit.chains import Chains, files_by_chain, named_place
from gateway.audit.entries import (
    ANSWERED,
    Entry,
    newest_secret,
    read_secrets,
    secrets_at_start,
)
from gateway.audit.upkeep import Upkeep
from gateway.audit.verification import ChainVerdict, verify
from gateway.observe.lines import texts
from gateway.settings import Settings
from gateway.store import Store, open_store
from tests.heard import Heard

START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
KEY, OTHER_KEY = str(UUID(int=1)), str(UUID(int=2))


def entry(
    at: datetime,
    records: Sequence[str] = (),
    *,
    key: str | None = KEY,
    operation: str = "get_client",
    policy: str = "0123456789ab",
    outcome: str = ANSWERED,
) -> Entry:
    reason = None if outcome == ANSWERED else "NotFound"
    return Entry(
        at, uuid4().hex, key, operation, records, "FULL", policy, outcome, reason
    )  # fmt: skip


@dataclass
class Clock:
    """Both clocks of a machine; `set` moves the wall clock alone."""

    wall: datetime = START
    ticks: float = 0.0

    def now(self) -> datetime:
        return self.wall

    def clock(self) -> float:
        return self.ticks

    def pass_(self, **time: float) -> None:
        passed = timedelta(**time)
        self.wall += passed
        self.ticks += passed.total_seconds()

    def set(self, **time: float) -> None:
        self.wall += timedelta(**time)


@dataclass
class Machine:
    """A folder, a key and a store."""

    folder: Path
    store: Store
    clock: Clock = field(default_factory=Clock)

    @property
    def audit(self) -> Path:
        return self.folder / "audit"

    @property
    def key(self) -> Path:
        return self.folder / "audit.key"

    async def begin(self) -> "Process":
        secrets = secrets_at_start(self.key, may_make=True)
        chain = str(uuid4())
        place = named_place(self.audit)
        await Chains(self.store).begin(chain, place, "host", 1, self.clock.now())
        newest = newest_secret(self.key, secrets[0])
        writer = Writer(self.audit, chain, newest, self.clock.now(), self.clock.clock)
        return Process(self, chain, writer)

    async def verdicts(self) -> list[ChainVerdict]:
        before = files_by_chain(self.audit)
        known = await Chains(self.store).known()
        return list(verify(self.audit, before, known, read_secrets(self.key)))

    async def alarms(self) -> list[str]:
        return [each.broken for each in await self.verdicts() if each.broken]


@dataclass
class Process:
    """One that writes a chain."""

    machine: Machine
    chain: str
    writer: Writer

    async def note(self, *entries: Entry, records: bool = True) -> None:
        """On disk, and where `records` is so, known to the store."""
        clock = self.machine.clock
        self.writer.write(texts(entries or (entry(clock.now()),)), clock.now())
        if records:
            await self._record(ended=False)

    async def end(self) -> None:
        self.writer.end(self.machine.clock.now())
        await self._record(ended=True)
        self.writer.close()

    def killed(self) -> None:
        self.writer.close()

    async def _record(self, *, ended: bool) -> None:
        now, head = self.machine.clock.now(), self.writer.head
        await Chains(self.machine.store).record(self.chain, head, now, ended=ended)

    def files(self) -> list[Path]:
        return sorted(self.machine.audit.glob(f"*{self.chain}*"))


@asynccontextmanager
async def machine(folder: Path) -> AsyncIterator[Machine]:
    store = open_store(folder / "gateway.db")
    await store.migrate()
    try:
        yield Machine(folder, store)
    finally:
        await store.aclose()


async def expire(made: Machine, before: date, heard: Heard | None = None) -> int:
    """Drop the days before that one, as the running gateway does."""
    return await upkeep_of(made, heard).expire(before)


def upkeep_of(made: Machine, heard: Heard | None = None) -> Upkeep:
    settings = Settings.model_validate({"state": made.folder, "audit": {"keep_days": 2}})
    return Upkeep(settings, made.store, heard or Heard(), made.clock.now, made.clock.clock)
