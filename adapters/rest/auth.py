"""How the gateway proves to the backend who it is: fixed headers, or a token that expires."""

import asyncio
import math
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from adapters.base import BackendNonsense
from adapters.mapping.models import Login
from adapters.mapping.paths import path
from adapters.values.convert import Unreadable, whole

# A token whose end nobody tells is used for so many seconds.
USUAL_LIFETIME = 300
# Renewed so many seconds before its end, or after four fifths of a short life.
MARGIN = 30.0
# Seconds between two logins of which the first did not help: more would lock the account.
REST = 5.0


class Auth(Protocol):
    """Headers that prove who asks; `renew` makes others where these were refused."""

    async def headers(self) -> Mapping[str, str]: ...

    @property
    def lives(self) -> float | None:
        """How many seconds a token is good for; None where there is none, or none yet."""

    async def renew(self, refused: Mapping[str, str]) -> bool:
        """Whether there are others now than those that were refused."""


class Fixed:
    """The same headers for ever."""

    lives = None

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = dict(headers)

    async def headers(self) -> Mapping[str, str]:
        return self._headers

    async def renew(self, refused: Mapping[str, str]) -> bool:
        return False


def basic(user: str, password: str) -> dict[str, str]:
    """The header of HTTP's own user and password."""
    return {"Authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}


class Token:
    """Fixed headers, and a token that `ask` gets: the login call's answer, as JSON.

    Renewed before it ends, and when it is refused; by one call, for which the others wait. A login
    that was turned down, or whose token was, is not tried again for a while.
    """

    def __init__(
        self,
        login: Login,
        fixed: Mapping[str, str],
        ask: Callable[[], Awaitable[Any]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._login = login
        self._fixed = dict(fixed)
        self._ask = ask
        self._clock = clock
        self._lock = asyncio.Lock()
        self._headers: dict[str, str] | None = None
        self._until = 0.0
        self._turned_down: tuple[float, str] = (-math.inf, "")
        self._refused_at = -math.inf
        self.lives: float | None = None

    async def headers(self) -> Mapping[str, str]:
        """The headers with a token that still lives for a while."""
        if self._headers is None or self._clock() >= self._until:
            async with self._lock:
                if self._headers is None or self._clock() >= self._until:
                    await self._renew()
        return self._headers or {}

    async def renew(self, refused: Mapping[str, str]) -> bool:
        async with self._lock:
            if self._headers is None or self._headers == refused:
                if self._clock() < self._refused_at + REST:
                    return False
                self._refused_at = self._clock()
                await self._renew()
        return True

    async def _renew(self) -> None:
        self._headers = None
        began = self._clock()
        at, said = self._turned_down
        if began < at + REST:
            raise BackendNonsense(said)
        try:
            await self._log_in(began)
        except BackendNonsense as error:
            self._turned_down = (began, str(error))
            raise

    async def _log_in(self, began: float) -> None:
        answer = await self._ask()
        try:
            token = path(self._login.token)(answer)
            seconds = path(self._login.seconds)(answer) if self._login.seconds else None
        except Unreadable as error:
            raise BackendNonsense("the login's answer cannot be read") from error
        if (
            not isinstance(token, str)
            or not token
            or not token.isascii()
            or not token.isprintable()
        ):
            raise BackendNonsense("the login's answer has no token: see backend.login.token")
        lives = whole(seconds)
        if lives is None or lives <= 0:
            lives = self._login.lifetime or USUAL_LIFETIME
        self.lives = lives
        self._until = began + max(lives - MARGIN, lives * 0.8)
        self._headers = {**self._fixed, self._login.header: self._login.form.format(token)}
