"""Passwords: what is one, whether one is right, and when the next attempt may be made.

A password that somebody chose is kept as an Argon2id hash. A one-time password is random, with 99
bits, and is kept as a SHA-256 digest: no guessing finds it, and comparing it costs next to nothing.

Argon2 works in a thread, two at a time: one for whoever is known, one for strangers. So a flood of
strangers takes neither more memory, nor the turn of an administrator at a browser that is known.

After five failures of one subject each next attempt waits longer. A subject is a name, to which all
strangers' attempts count together, or a browser that has signed in before, or a session. Nothing is
counted by address: a whole clinic may share one.
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
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.administrators.administrator import digest, name_key
from gateway.store import Store
from gateway.store.tables import adding
from gateway.store.tables import admin_failures as table

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST, LONGEST = 12, 200
# Strangers who wait for their turn; more are turned away. Seconds that one turn takes, about.
MOST_WAITING, TURN = 64, 0.1
# Seconds in which all who wait have had their turn.
ALL_TURNS = ceil(MOST_WAITING * TURN)
# Failures after which a subject waits, and the longest that it waits.
FREE, LONGEST_PAUSE = 5, timedelta(minutes=15)
_FORGOTTEN = timedelta(days=1)
# Letters and digits that nobody mistakes for each other.
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_ONE_TIME, _ARGON2 = "sha256$", "$argon2"
# As long as the digest of a one-time password, and the digest of none.
_NO_ONE_TIME = _ONE_TIME + "-" * 64


class TooManyWaiting(Exception):
    """Too many strangers wait already for their passwords to be looked at."""


class Passwords:
    """Makes and compares Argon2id hashes for one process; each takes 64 MiB meanwhile."""

    def __init__(self) -> None:
        self._known, self._strangers = asyncio.Semaphore(1), asyncio.Semaphore(1)
        self._waiting = 0

    async def hash(self, password: str) -> str:
        """Returns what is kept of a password that somebody chose; for whoever is signed in."""
        async with self._known:
            return await asyncio.to_thread(_hasher().hash, password)

    @asynccontextmanager
    async def turn(self, *, is_known: bool) -> AsyncIterator[None]:
        """The time to look at one password; raises TooManyWaiting for a stranger too many."""
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
        """Returns whether it is the password; to be asked within a turn.

        Where `kept` is no Argon2id hash (nobody's, or of a one-time password) the answer is no,
        after as much work.
        """
        return await asyncio.to_thread(_verify, kept, password)


@cache
def _hasher() -> "PasswordHasher":
    # imported when the first password is asked for: most lives of a gateway see none
    from argon2 import PasswordHasher  # noqa: PLC0415

    return PasswordHasher()


@cache
def _nobody() -> str:
    return _hasher().hash(secrets.token_urlsafe())


def _verify(kept: str, password: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError  # noqa: PLC0415

    # made in any case: the first name of a process takes as long, whether or not somebody has it
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
    """Returns a one-time password, easy to read out: four groups of five letters and digits."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(5)) for _ in range(4))


def one_time_digest(password: str) -> str:
    """Returns what is kept of a password that `made_up` gave: it is too random to be guessed."""
    return _ONE_TIME + sha256(password.encode()).hexdigest()


def is_one_time(kept: str, password: str) -> bool:
    """Returns whether it is the one-time password of which that is kept.

    The work is the same whatever is kept, so the time does not tell who has a one-time password.
    """
    known = kept if kept.startswith(_ONE_TIME) else _NO_ONE_TIME
    return hmac.compare_digest(one_time_digest(password), known)


def pause_after(times: int) -> timedelta:
    """Returns how long the next attempt waits: 1, 2, 4, ... seconds from the fifth failure on."""
    if times < FREE:
        return timedelta()
    return min(timedelta(seconds=2 ** min(times - FREE, 20)), LONGEST_PAUSE)


class AttemptLimiter:
    """Counts failed attempts in the store, so that a restart forgives nobody; raises StoreError.

    A subject is `of_name`, or names a device or a session. They are kept as digests: a name may be
    a password that was typed into the wrong field.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def try_now(self, subject: str, now: datetime) -> timedelta:
        """Returns how long this attempt waits; zero: it is made, and has failed until forgiven.

        Attempts made at once are counted one by one, whichever process they come to.
        """

        async def attempt(connection: AsyncConnection) -> timedelta:
            await connection.execute(delete(table).where(table.c.last_at < now - _FORGOTTEN))
            same = table.c.subject == digest(subject)
            row = adding(connection, table).values(subject=digest(subject), times=0, last_at=now)
            # written before it is read: until the end of this nobody else reads the row so
            held = row.on_conflict_do_update(
                index_elements=[table.c.subject], set_={"times": table.c.times}
            ).returning(table.c.times, table.c.last_at)
            times, last_at = (await connection.execute(held)).one()
            wait: timedelta = last_at + pause_after(times) - now
            # a time that is far ahead was told by a clock that has been set since
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
    """Returns the subject for all strangers who try somebody's name, however it is spelt."""
    return f"name {name_key(name)}"
