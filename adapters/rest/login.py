"""The login at a backend: a token that is renewed before it ends, and when it is refused."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

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


class TokenHeaders:
    """Fixed headers, and a token that `ask` gets: the login call's answer, as JSON.

    Renewed before it ends, and when it is refused; by one call, for which the others wait. A login
    that was turned down, or whose token was, is not tried again for a while. `lives` is how many
    seconds the token is good for; None while there is none.
    """

    def __init__(
        self, login: Login, fixed: Mapping[str, str], ask: Callable[[], Awaitable[Any]]
    ) -> None:
        self._login = login
        self._fixed = fixed
        self._ask = ask
        self._lock = asyncio.Lock()
        self._headers: dict[str, str] = {}
        self._until = -math.inf
        self._turned_down: tuple[float, str] = (-math.inf, "")
        self._refused_at = -math.inf
        self.lives: float | None = None

    async def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """The headers with a token that still lives; those refused where none are new for now."""
        async with self._lock:
            if refused is not None and (self._until == -math.inf or self._headers == refused):
                if time.monotonic() < self._refused_at + REST:
                    return refused
                self._refused_at = time.monotonic()
                await self._renew()
            elif time.monotonic() >= self._until:
                await self._renew()
        return self._headers

    async def _renew(self) -> None:
        self._until = -math.inf
        began = time.monotonic()
        at, said = self._turned_down
        if began < at + REST:
            raise BackendNonsense(said)
        try:
            self._take(await self._ask(), began)
        except BackendNonsense as error:
            self._turned_down = (began, str(error))
            raise

    def _take(self, answer: Any, began: float) -> None:
        login = self._login
        try:
            token = path(login.token)(answer)
            seconds = path(login.seconds)(answer) if login.seconds else None
        except Unreadable as error:
            raise BackendNonsense("the login's answer cannot be read") from error
        is_sendable = isinstance(token, str) and token.isascii() and token.isprintable()
        if not is_sendable or not token:
            raise BackendNonsense("the login's answer has no token: see backend.login.token")
        lives = whole(seconds)
        if lives is None or lives <= 0:
            lives = login.lifetime or USUAL_LIFETIME
        self.lives = lives
        self._until = began + max(lives - MARGIN, lives * 0.8)
        self._headers = {**self._fixed, login.header: login.form.format(token)}
