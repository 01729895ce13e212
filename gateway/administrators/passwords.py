"""Passwords: what is one, and whether one is right.

A password that somebody chose is kept as an Argon2id hash. A one-time password is random, with 99
bits, and is kept as a SHA-256 digest: no guessing finds it, and comparing it costs next to nothing.

Argon2 works in a thread, two at a time: one for whoever is known, one for strangers. So a flood of
strangers takes neither more memory, nor the turn of an administrator at a browser that is known.
"""

import asyncio
import hmac
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from hashlib import sha256
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST, LONGEST = 12, 200
# Strangers who wait for their turn; more are turned away. Seconds that one turn takes, about.
MOST_WAITING, TURN = 64, 0.1
# Seconds in which all who wait have had their turn.
ALL_TURNS = ceil(MOST_WAITING * TURN)
# Letters and digits that nobody mistakes for each other.
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_GROUPS, _LETTERS_EACH = 4, 5
_ONE_TIME, _ARGON2 = "sha256$", "$argon2"
# As long as the digest of a one-time password, and the digest of none.
_NO_ONE_TIME = _ONE_TIME + "-" * 64


class Busy(Exception):
    """Too many strangers wait already for their passwords to be looked at."""


class Passwords:
    """Makes and compares Argon2id hashes for one process; each takes 64 MiB meanwhile."""

    def __init__(self) -> None:
        self._known, self._strangers = asyncio.Semaphore(1), asyncio.Semaphore(1)
        self._waiting = 0

    async def hash(self, password: str) -> str:
        """What is kept of a password that somebody chose; for whoever is signed in."""
        async with self._known:
            return await asyncio.to_thread(_hasher().hash, password)

    @asynccontextmanager
    async def turn(self, *, is_known: bool) -> AsyncIterator[None]:
        """The time in which one password may be looked at; Busy for a stranger too many."""
        if is_known:
            async with self._known:
                yield
            return
        if self._waiting >= MOST_WAITING:
            raise Busy
        self._waiting += 1
        try:
            async with self._strangers:
                yield
        finally:
            self._waiting -= 1

    async def is_right(self, kept: str, password: str) -> bool:
        """Whether it is the password, asked within a turn.

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
    """ValueError, with the remedy, for a password that is too easy to guess."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise ValueError(f"a password has {SHORTEST} to {LONGEST} characters")
    if len(set(password)) < SHORTEST // 3 or password.casefold() == name.casefold():
        raise ValueError("that password is easily guessed: take several words, for example")


def made_up() -> str:
    """A password to be used once, easy to read out: four groups of five letters and digits."""
    groups = (
        "".join(secrets.choice(_LETTERS) for _ in range(_LETTERS_EACH)) for _ in range(_GROUPS)
    )
    return "-".join(groups)


def one_time_digest(password: str) -> str:
    """What is kept of a password that `made_up` gave: it is too random to be guessed."""
    return _ONE_TIME + sha256(password.encode()).hexdigest()


def is_one_time(kept: str, password: str) -> bool:
    """Whether it is the one-time password of which that is kept.

    The work is the same whatever is kept, so the time does not tell who has a one-time password.
    """
    known = kept if kept.startswith(_ONE_TIME) else _NO_ONE_TIME
    return hmac.compare_digest(one_time_digest(password), known)
