"""The chains in the store: where each was begun, and its head, so that a cut end shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Row, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.audit.chain import Head
from gateway.store import Store
from gateway.store.tables import audit_chains as chains


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the store knows of a chain.

    `dropped` is the last day whose file went since it was old; `base` the head of then, and
    `base_seal` what the audit's key says of the two.
    """

    id: str
    place: str
    host: str
    begun: datetime
    head: Head
    ended: bool
    dropped: date | None
    base: Head
    base_seal: str


class Chains:
    """Reads and writes the chains of one store. Every verb: StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def shared(self) -> bool:
        """Whether other machines may use the store too."""
        return self._store.engine.dialect.name != "sqlite"

    async def any_at(self, place: str) -> bool:
        """Whether a chain was ever begun in that folder."""
        query = select(chains.c.id).where(chains.c.place == place).limit(1)
        async with self._store.begin() as connection:
            return (await connection.execute(query)).first() is not None

    async def begin(self, chain: str, place: str, host: str, pid: int, at: datetime) -> None:
        """A chain without a line."""
        none = Head()
        row = {"id": chain, "place": place, "host": host, "pid": pid, "begun_at": at}
        row |= {"seq": none.seq, "mac": none.mac.hex(), "ended": 0}
        row |= {"dropped_seq": none.seq, "dropped_mac": none.mac.hex()}
        async with self._store.begin() as connection:
            await connection.execute(insert(chains).values(**row))

    @staticmethod
    async def enter(connection: AsyncConnection, found: Sequence[Known]) -> None:
        """Chains of processes that have ended, with the heads that were found in their files."""
        for each in found:
            row = {"id": each.id, "place": each.place, "host": each.host, "pid": 0}
            row |= {"begun_at": each.begun, "seq": each.head.seq, "mac": each.head.mac.hex()}
            row |= {"ended": int(each.ended)}
            row |= {"dropped_seq": each.base.seq, "dropped_mac": each.base.mac.hex()}
            await connection.execute(insert(chains).values(**row))

    async def record(self, chain: str, head: Head, at: datetime, *, ended: bool) -> None:
        """Its last line."""
        row = {"seq": head.seq, "mac": head.mac.hex(), "written_at": at, "ended": int(ended)}
        async with self._store.begin() as connection:
            await connection.execute(update(chains).where(chains.c.id == chain).values(**row))

    async def advance(self, chain: str, head: Head, at: datetime, *, ended: bool) -> None:
        """Its last line, as another has found it; never one before what is known."""
        row = {"seq": head.seq, "mac": head.mac.hex(), "written_at": at, "ended": int(ended)}
        change = update(chains).where(chains.c.id == chain, chains.c.seq < head.seq)
        async with self._store.begin() as connection:
            await connection.execute(change.values(**row))

    async def drop(self, chain: str, day: date, base: Head, seal: str) -> None:
        """Its files up to that day go now; `base` is the head of then."""
        row = {"dropped": str(day), "dropped_seq": base.seq, "dropped_mac": base.mac.hex()}
        change = update(chains).where(chains.c.id == chain, chains.c.dropped_seq <= base.seq)
        async with self._store.begin() as connection:
            await connection.execute(change.values(**row, dropped_seal=seal))

    async def known(self) -> Sequence[Known]:
        """All, in the order in which they were begun."""
        async with self._store.begin() as connection:
            rows = await connection.execute(select(chains).order_by(chains.c.begun_at))
            return [_known(row) for row in rows]


def _known(row: Row[tuple[object, ...]]) -> Known:
    return Known(
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


def _head(seq: int, mac: str) -> Head:
    """A mac that is none is that of no line: the chain does not verify then."""
    try:
        return Head(seq, bytes.fromhex(mac))
    except ValueError:
        return Head(seq, b"")
