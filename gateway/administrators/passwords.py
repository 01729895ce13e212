"""Hashes and compares passwords, and delays attempts after failures.

A password that somebody chose is kept as an Argon2id hash. A one-time password is random, with 99
bits, and is kept as a SHA-256 digest: no guessing finds it, and comparing it costs next to nothing.

Argon2 works in two threads, one for known browsers and sessions, one for strangers. So a flood of
strangers takes neither more memory nor the turn of an administrator at a known browser.

After five failures of one subject each attempt waits longer. A subject is a session, a known
browser, or a name, which counts the attempts of all strangers. No address is counted: a whole
clinic may share one.
"""

import asyncio
import hmac
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from math import ceil
from typing import TYPE_CHECKING

from sqlalchemy import delete, update

from gateway.administrators.administrator import name_key
from gateway.administrators.sessions import digest
from gateway.store import Store
from gateway.store.engine import AsyncConnection
from gateway.store.tables import adding
from gateway.store.tables import admin_failures as table

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST, LONGEST = 12, 200
# The most strangers who wait for their turn, and about the seconds of one turn.
MOST_WAITING, TURN = 64, 0.1
# Seconds after which all of them have had their turn.
ALL_TURNS = ceil(MOST_WAITING * TURN)
# Failures after which a subject waits, and the longest wait.
FREE, LONGEST_PAUSE = 5, timedelta(minutes=15)
_FORGOTTEN = timedelta(days=1)
# Letters and digits that look different from each other.
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_ONE_TIME, _ARGON2 = "sha256$", "$argon2"
# As long as the digest of a one-time password, but the digest of none.
_NO_ONE_TIME = _ONE_TIME + "-" * 64


class TooManyWaiting(Exception):
    """Too many strangers wait for their turn."""


class Passwords:
    """Makes and compares the Argon2id hashes of one process; each takes 64 MiB meanwhile."""

    def __init__(self) -> None:
        self._known, self._strangers = asyncio.Semaphore(1), asyncio.Semaphore(1)
        self._waiting = 0

    async def hash(self, password: str) -> str:
        """Returns what is kept of a password that a signed-in user chose."""
        async with self._known:
            return await asyncio.to_thread(_hasher().hash, password)

    @asynccontextmanager
    async def turn(self, *, is_known: bool) -> AsyncIterator[None]:
        """Waits for a turn to compare a password; raises TooManyWaiting for too many strangers."""
        if is_known:
            async with self._known:
                yield
            return
        if self._waiting >= MOST_WAITING:
            raise TooManyWaiting
        self._waiting += 1
        try:
            async with self._strangers:
                yield
        finally:
            self._waiting -= 1

    async def is_right(self, kept: str, password: str) -> bool:
        """Returns whether it is the password; call it within a turn.

        Where `kept` is no Argon2id hash the answer is False, after as much work.
        """
        return await asyncio.to_thread(_verify, kept, password)


@cache
def _hasher() -> "PasswordHasher":
    # imported at the first password: most processes see none
    from argon2 import PasswordHasher  # noqa: PLC0415

    return PasswordHasher()


@cache
def _nobody() -> str:
    return _hasher().hash(secrets.token_urlsafe())


def _verify(kept: str, password: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError  # noqa: PLC0415

    # made in any case: the first attempt takes as long for a name that nobody has
    nobody, is_hash = _nobody(), kept.startswith(_ARGON2)
    try:
        _hasher().verify(kept if is_hash else nobody, password)
    except (VerificationError, InvalidHashError):
        return False
    return is_hash


def check(password: str, name: str) -> None:
    """Raises ValueError, with the remedy, for a password that is too easy to guess."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise ValueError(f"a password has {SHORTEST} to {LONGEST} characters")
    if len(set(password)) < SHORTEST // 3 or password.casefold() == name.casefold():
        raise ValueError("that password is easily guessed: take several words, for example")


def made_up() -> str:
    """Returns a one-time password that is easy to read out, as four groups of five characters."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(5)) for _ in range(4))


def one_time_digest(password: str) -> str:
    """Returns what is kept of a one-time password."""
    return _ONE_TIME + sha256(password.encode()).hexdigest()


def is_one_time(kept: str, password: str) -> bool:
    """Returns whether it is the one-time password of which `kept` is kept.

    The work is always the same, so that the time does not tell who has a one-time password.
    """
    known = kept if kept.startswith(_ONE_TIME) else _NO_ONE_TIME
    return hmac.compare_digest(one_time_digest(password), known)


def pause_after(times: int) -> timedelta:
    """Returns how long the next attempt waits: 1, 2, 4, ... seconds from the fifth failure on."""
    if times < FREE:
        return timedelta()
    return min(timedelta(seconds=2 ** min(times - FREE, 20)), LONGEST_PAUSE)


class AttemptLimiter:
    """Counts failed attempts in the store, where they outlast a restart; may raise StoreError.

    Subjects are kept as digests: a name may be a password that was typed into the wrong field.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def try_now(self, subject: str, now: datetime) -> timedelta:
        """Returns how long to wait; where that is zero, it counts a failure, until it is forgiven.

        Simultaneous attempts are counted one by one, also those of other processes.
        """

        async def attempt(connection: AsyncConnection) -> timedelta:
            await connection.execute(delete(table).where(table.c.last_at < now - _FORGOTTEN))
            same = table.c.subject == digest(subject)
            row = adding(connection, table).values(subject=digest(subject), times=0, last_at=now)
            # the write locks the row, so that another attempt reads it only after this one
            locked = row.on_conflict_do_update(
                index_elements=[table.c.subject], set_={"times": table.c.times}
            ).returning(table.c.times, table.c.last_at)
            times, last_at = (await connection.execute(locked)).one()
            wait: timedelta = last_at + pause_after(times) - now
            # a time far ahead comes from a clock that was set back since
            if wait > timedelta() and last_at <= now + LONGEST_PAUSE:
                return wait
            failed = update(table).where(same).values(times=table.c.times + 1, last_at=now)
            await connection.execute(failed)
            return timedelta()

        return await self._store.run(attempt)

    async def forgive(self, subject: str) -> None:
        """Forgets the failures of a subject that has signed in."""
        await self._store.change(delete(table).where(table.c.subject == digest(subject)))


def of_name(name: str) -> str:
    """Returns the subject for all strangers who try a name, however it is spelt."""
    return f"name {name_key(name)}"
