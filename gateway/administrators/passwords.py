"""Passwords: what is one, and whether one is right. Argon2 works in a thread, two at a time."""

import asyncio
import secrets
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST, LONGEST = 12, 200
# One hash takes 64 MiB for as long as it is made.
AT_ONCE = 2
# Letters and digits that nobody mistakes for each other.
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_GROUPS, _LETTERS_EACH = 4, 5


class Passwords:
    """Makes and compares hashes for one process."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def hash(self, password: str) -> str:
        """What is kept of a password."""
        async with self._turns:
            return await asyncio.to_thread(_hasher().hash, password)

    async def is_right(self, kept: str, password: str) -> bool:
        """Whether it is the password; of nobody's (an empty `kept`) it takes as long to say no."""
        async with self._turns:
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

    try:
        _hasher().verify(kept or _nobody(), password)
    except (VerificationError, InvalidHashError):
        return False
    return bool(kept)


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
