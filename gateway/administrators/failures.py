"""Failed attempts with a password: after five of one name or address each next one waits longer."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.administrators.administrator import name_key
from gateway.store import Store
from gateway.store.adding import adding
from gateway.store.tables import admin_failures as table

FREE = 5
LONGEST = timedelta(minutes=15)
_FORGOTTEN = timedelta(days=1)


def pause_after(times: int) -> timedelta:
    """How long the next attempt has to wait: 1, 2, 4, ... seconds from the fifth failure on."""
    if times < FREE:
        return timedelta()
    return min(timedelta(seconds=2 ** min(times - FREE, 20)), LONGEST)


class Failures:
    """Counts them in the store, so that a restart forgives nobody; every verb may raise StoreError.

    Subjects are kept as digests: a name may be a password that was typed into the wrong field.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def try_now(self, subjects: Sequence[str], now: datetime) -> timedelta:
        """How long this attempt has to wait; zero: it may be made, and has failed until forgiven.

        Attempts made at once are counted one by one, whichever process they come to.
        """

        async def tried(connection: AsyncConnection) -> timedelta:
            # written before it is read: until the end of this nobody else reads these rows so
            await _count(connection, subjects, now, 0)
            wait = await _longest(connection, subjects, now)
            if not wait:
                await _count(connection, subjects, now, 1)
            return wait

        return await self._store.run(tried)

    async def forgive(self, subjects: Sequence[str]) -> None:
        """They have signed in."""
        gone = table.c.subject.in_([_digest(each) for each in subjects])
        async with self._store.begin() as connection:
            await connection.execute(delete(table).where(gone))


def of_name(name: str) -> str:
    """The subject that stands for somebody's name, however it is spelt."""
    return f"name {name_key(name)}"


async def _count(
    connection: AsyncConnection, subjects: Sequence[str], now: datetime, more: int
) -> None:
    """So many more of each; the time of the last one stays where there are none more."""
    await connection.execute(delete(table).where(table.c.last_at < now - _FORGOTTEN))
    # in one order, whoever writes: two processes do not wait for each other's rows
    for subject in sorted(map(_digest, subjects)):
        row = adding(connection, table).values(subject=subject, times=more, last_at=now)
        last_at = row.excluded.last_at if more else table.c.last_at
        changes = {"times": table.c.times + more, "last_at": last_at}
        await connection.execute(
            row.on_conflict_do_update(index_elements=[table.c.subject], set_=changes)
        )


async def _longest(
    connection: AsyncConnection, subjects: Sequence[str], now: datetime
) -> timedelta:
    wanted = select(table).where(table.c.subject.in_([_digest(each) for each in subjects]))
    rows = (await connection.execute(wanted)).all()
    # a time that is far ahead was told by a clock that has been set since
    waits: list[timedelta] = [
        row.last_at + pause_after(row.times) - now for row in rows if row.last_at <= now + LONGEST
    ]
    return max([timedelta(), *waits])


def _digest(subject: str) -> bytes:
    return sha256(subject.encode()).digest()
