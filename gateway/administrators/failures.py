"""Failed attempts with a password: after five of one subject each next one waits longer.

A subject is a name, to which all strangers' attempts count together, or a browser that has signed
in before, or a session. Nothing is counted by address: a whole clinic may share one.
"""

from datetime import datetime, timedelta
from hashlib import sha256

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.administrators.administrator import name_key
from gateway.store import Store
from gateway.store.tables import adding
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

    async def try_now(self, subject: str, now: datetime) -> timedelta:
        """How long this attempt has to wait; zero: it may be made, and has failed until forgiven.

        Attempts made at once are counted one by one, whichever process they come to.
        """

        async def tried(connection: AsyncConnection) -> timedelta:
            # written before it is read: until the end of this nobody else reads the row so
            await _count(connection, subject, now, 0)
            wait = await _wait(connection, subject, now)
            if not wait:
                await _count(connection, subject, now, 1)
            return wait

        return await self._store.run(tried)

    async def forgive(self, subject: str) -> None:
        """It has signed in."""
        gone = table.c.subject == _digest(subject)
        async with self._store.begin() as connection:
            await connection.execute(delete(table).where(gone))


def of_name(name: str) -> str:
    """The subject that stands for all strangers who try somebody's name, however it is spelt."""
    return f"name {name_key(name)}"


def of_device(device: str) -> str:
    """The subject that stands for a browser that has signed in before."""
    return f"device {device}"


def of_session(session_id: str) -> str:
    """The subject that stands for whoever holds a session, and is asked for the password again."""
    return f"session {session_id}"


async def _count(connection: AsyncConnection, subject: str, now: datetime, more: int) -> None:
    """So many more; the time of the last one stays where there are none more."""
    await connection.execute(delete(table).where(table.c.last_at < now - _FORGOTTEN))
    row = adding(connection, table).values(subject=_digest(subject), times=more, last_at=now)
    last_at = row.excluded.last_at if more else table.c.last_at
    changes = {"times": table.c.times + more, "last_at": last_at}
    await connection.execute(
        row.on_conflict_do_update(index_elements=[table.c.subject], set_=changes)
    )


async def _wait(connection: AsyncConnection, subject: str, now: datetime) -> timedelta:
    wanted = select(table).where(table.c.subject == _digest(subject))
    row = (await connection.execute(wanted)).one()
    # a time that is far ahead was told by a clock that has been set since
    if row.last_at > now + LONGEST:
        return timedelta()
    wait: timedelta = row.last_at + pause_after(row.times) - now
    return max(timedelta(), wait)


def _digest(subject: str) -> bytes:
    return sha256(subject.encode()).digest()
