"""The chains of the audit: their day files in its folder, and their heads in the store.

The folder has a file for each day and chain, and an id of its own. The store knows each chain's
folder and last line, so that a missing end is noticed.
"""

import fcntl
import hmac
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import insert, select, update

from gateway.audit.entries import AuditSecret, ChainHead
from gateway.identity import content_of, state_line, write_new
from gateway.settings import Settings
from gateway.store import Store
from gateway.store.engine import AsyncConnection
from gateway.store.tables import audit_chains as chains

PLACE = "folder.id"
# What the folder in the state folder is called.
FOLDER = "audit"
# How often a lock that somebody else holds is tried again, and the seconds in between.
TRIES, PAUSE = 20, 0.005
# The head of a chain that has just begun.
NO_LINE = ChainHead()
_name = re.compile(r"(\d{4}-\d{2}-\d{2})\.([0-9a-f-]{36})\.jsonl").fullmatch


@dataclass(frozen=True, slots=True, order=True)
class DayFile:
    """The file that one process wrote on one day (UTC)."""

    day: date
    chain: str
    path: Path


def audit_folder(settings: Settings) -> Path:
    return settings.audit.folder or settings.state / FOLDER


def day_files(folder: Path) -> list[DayFile]:
    """Returns all day files, the oldest first. Raises OSError where the folder cannot be read."""
    return sorted(file for _, file in _listed(folder) if file)


def files_by_chain(folder: Path) -> dict[str, list[DayFile]]:
    """Returns each chain's files, the oldest first. Raises OSError as `day_files`."""
    files = sorted(day_files(folder), key=lambda file: (file.chain, file.day))
    return {chain: list(own) for chain, own in groupby(files, key=lambda file: file.chain)}


def strangers(folder: Path) -> list[Path]:
    """Returns the files that look like the audit's but whose names have the wrong form."""
    return sorted(path for path, file in _listed(folder) if ".jsonl" in path.name and not file)


def _listed(folder: Path) -> Iterator[tuple[Path, DayFile | None]]:
    with suppress(FileNotFoundError):
        for path in folder.iterdir():
            name, file = _name(path.name), None
            with suppress(ValueError):
                file = DayFile(date.fromisoformat(name[1]), name[2], path) if name else None
            yield path, file


def place_of(folder: Path) -> str | None:
    """Returns the folder's id, which stays when it is moved; None where none can be read."""
    with suppress(OSError, UnicodeDecodeError):
        return content_of((folder / PLACE).read_text("ascii")).strip() or None
    return None


def named_place(folder: Path, state: str | None = None) -> str:
    """Returns the folder's id; makes both, for their owner alone, where due. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if place_of(folder) is None:
        # of two processes that begin at once the first one's id stays
        with suppress(FileExistsError):
            write_new(folder / PLACE, f"{uuid4()}\n{state_line(state)}")
    return place_of(folder) or ""


def is_open(path: Path) -> bool:
    """Returns whether a process still writes to the file."""
    with suppress(OSError), path.open("rb") as file:
        try:
            # shared: two callers at once do not take each other for the writer
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def lock(file: int, tries: int = TRIES) -> bool:
    """Locks the file, which `is_open` may hold for an instant; returns whether it could."""
    for _ in range(tries):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(PAUSE)
        except OSError:  # there are no locks on this disk
            break
        else:
            return True
    return False


def sync_folder(folder: Path) -> None:
    """Syncs the folder, so that files made or removed in it stay so. Raises OSError."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the store knows of a chain.

    `dropped` is the last day whose file was dropped for its age, `base` the last line up to then,
    and `base_seal` their seal with the audit's key.
    """

    id: str
    place: str
    host: str
    begun: datetime
    head: ChainHead = NO_LINE
    ended: bool = False
    dropped: date | None = None
    base: ChainHead = NO_LINE
    base_seal: str = ""

    def is_sealed(self, secrets: Iterable[AuditSecret]) -> bool:
        """Returns whether a holder of one of the secrets dropped the days, where any were."""
        if self.dropped is None:
            return self.base == NO_LINE
        seals = [_base_seal(secret, self.id, self.dropped, self.base) for secret in secrets]
        return any(hmac.compare_digest(seal, self.base_seal) for seal in seals)


def _base_seal(secret: AuditSecret, chain: str, day: date, base: ChainHead) -> str:
    """Returns the seal of a chain's days up to that one, of which `base` is the last line."""
    text = b"dropped %b %b %d " % (chain.encode(), str(day).encode(), base.seq) + base.mac
    return f"{secret.id}:{hmac.digest(secret.value, text, 'sha256').hex()}"


class Chains:
    """The table of chains in one store. Every method raises StoreError where the store fails."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def shared(self) -> bool:
        """Whether other machines may use the store too."""
        return self._store.engine.dialect.name != "sqlite"

    async def begin(self, chain: str, place: str, host: str, pid: int, at: datetime) -> None:
        async with self._store.begin() as connection:
            await self.enter(connection, [Known(id=chain, place=place, host=host, begun=at)], pid)

    @staticmethod
    async def enter(connection: AsyncConnection, new: Sequence[Known], pid: int = 0) -> None:
        """Inserts chains with their heads; `pid` is 0 for processes that have ended."""
        for known in new:
            row = {"id": known.id, "place": known.place, "host": known.host, "pid": pid}
            row |= {"begun_at": known.begun, "ended": int(known.ended)}
            row |= _columns(known.head) | _columns(known.base, "dropped_")
            await connection.execute(insert(chains).values(row))

    async def record(self, chain: str, head: ChainHead, at: datetime, *, ended: bool) -> None:
        """Records the chain's last line, unless a later one is known."""
        change = update(chains).where(chains.c.id == chain, chains.c.seq <= head.seq)
        row = _columns(head) | {"written_at": at, "ended": int(ended)}
        await self._store.change(change.values(row))

    async def drop(self, chain: str, day: date, base: ChainHead, secret: AuditSecret) -> None:
        """Records that the files up to that day are dropped; `base` is the last line of them."""
        change = update(chains).where(chains.c.id == chain, chains.c.dropped_seq <= base.seq)
        sealed = {"dropped": str(day), "dropped_seal": _base_seal(secret, chain, day, base)}
        await self._store.change(change.values(_columns(base, "dropped_") | sealed))

    async def known(self) -> Sequence[Known]:
        """Returns all chains in the order in which they were begun."""
        rows = await self._store.rows(select(chains).order_by(chains.c.begun_at))
        return [
            Known(
                id=row.id,
                place=row.place,
                host=row.host,
                begun=row.begun_at,
                head=_head(row.seq, row.mac),
                ended=bool(row.ended),
                dropped=date.fromisoformat(row.dropped) if row.dropped else None,
                base=_head(row.dropped_seq, row.dropped_mac),
                base_seal=row.dropped_seal or "",
            )
            for row in rows
        ]


def _columns(head: ChainHead, prefix: str = "") -> dict[str, Any]:
    return {f"{prefix}seq": head.seq, f"{prefix}mac": head.mac.hex()}


def _head(seq: int, mac: str) -> ChainHead:
    """Returns the head; a malformed mac becomes an empty one, with which no chain verifies."""
    with suppress(ValueError):
        return ChainHead(seq, bytes.fromhex(mac))
    return ChainHead(seq, b"")
