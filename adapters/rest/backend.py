"""The backend as one that is asked: proves who asks, judges the answer, hands over its JSON."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from adapters.base import (
    AdapterError,
    BackendNonsense,
    BackendUnavailable,
    NotFound,
    OutcomeUnknown,
    Rejected,
    SlotTaken,
)
from adapters.mapping.models import BackendMap
from adapters.rest.auth import Auth, Fixed, Token, basic
from adapters.rest.client import Client, Received, Request
from adapters.rest.refusals import Rules, data_of
from adapters.rest.templates import Templates, Values

# What is not good about an answer to a read, and to what writes.
TO_A_READ: Mapping[str, type[AdapterError]] = {
    "not found": NotFound,
    "unavailable": BackendUnavailable,
    "too busy": BackendUnavailable,
    "broken for now": BackendUnavailable,
}
TO_A_WRITE: Mapping[str, type[AdapterError]] = {
    "slot taken": SlotTaken,
    "not found": NotFound,
    "rejected": Rejected,
    "refused": Rejected,
    "no such record": Rejected,
    "logged out": Rejected,
    "unavailable": BackendUnavailable,
    "too busy": BackendUnavailable,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer's JSON, its `Link` header, and how a link in it reads behind the address."""

    data: Any
    link: str = ""
    behind: Callable[[str], str] = str


class Backend:
    """Asks the practice system. `within` seconds is all that one request may take."""

    def __init__(self, backend: BackendMap, templates: Templates, client: Client) -> None:
        self._client = client
        self._rules = Rules(backend.errors)
        self.linked = client.linked
        secrets = templates.secrets
        fixed = {
            name: str(templates.tree(each, {})(Values())) for name, each in backend.headers.items()
        }
        if backend.basic is not None:
            fixed |= basic(*(secrets[name] for name in backend.basic))
        self._auth: Auth = Fixed(fixed)
        if backend.login is not None:
            self._login = templates.call(backend.login, {}).request(Values())
            self._login_headers = fixed
            self._auth = Token(backend.login, fixed, self._log_in)

    async def log_in(self) -> float | None:
        """Get a token where one is needed: the seconds that it is good for; None without."""
        await self._auth.headers()
        return self._auth.lives

    async def read(self, request: Request, *, one: bool = False) -> Answer:
        """The answer to a question; with `one` a 404 says that there is no such record."""
        judged = await self._asked(request, None)
        if judged.means is None:
            behind = partial(self._client.behind, request=request)
            return Answer(judged.usable(), judged.received.link, behind)
        if one and judged.means == "no such record":
            raise NotFound(f"{request.label}: there is none")
        raise TO_A_READ.get(judged.means, BackendNonsense)(judged.said(request))

    async def write(self, request: Request, patience: float, *, bare: bool = False) -> Any:
        """The JSON that came of it; with `bare` an answer may be empty, as none is wanted."""
        judged = await self._asked(request, patience)
        if judged.means is not None:
            raise TO_A_WRITE.get(judged.means, OutcomeUnknown)(judged.said(request))
        if bare and not judged.received.body:
            return None
        try:
            return judged.usable()
        except BackendNonsense as error:
            raise OutcomeUnknown(str(error)) from error

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    async def _asked(self, request: Request, patience: float | None) -> "_Judged":
        """The answer and what it means; asked again with a new token where the old was refused."""
        headers = await self._auth.headers()
        clock = asyncio.get_running_loop().time
        begun = clock()
        judged = self._judged(request, await self._sent(request, headers, patience))
        if judged.means == "logged out" and await self._auth.renew(headers):
            left = None if patience is None else patience - (clock() - begun)
            if left is not None and left <= 0:
                raise BackendUnavailable(f"{request.label}: no time was left after a new login")
            again = await self._sent(request, await self._auth.headers(), left)
            judged = self._judged(request, again)
        return judged

    def _judged(self, request: Request, received: Received) -> "_Judged":
        try:
            data, flaw = data_of(received, request.label), None
        except BackendNonsense as error:
            data, flaw = None, error
        return _Judged(received, self._rules.meaning(received, data), data, flaw)

    async def _sent(
        self, request: Request, headers: Mapping[str, str], patience: float | None
    ) -> Received:
        if patience is None or request.method == "GET":
            return await self._client.read(request, headers)
        return await self._client.write(request, headers, patience)

    async def _log_in(self) -> Any:
        received = await self._client.read(self._login, self._login_headers)
        judged = self._judged(self._login, received)
        if judged.means is None:
            return judged.usable()
        text = judged.said(self._login)
        if TO_A_READ.get(judged.means) is BackendUnavailable:
            raise BackendUnavailable(text)
        raise BackendNonsense(f"{text}: see backend.user and backend.password")


@dataclass(frozen=True, slots=True)
class _Judged:
    """An answer, what it means (None for a good one), and its JSON, or why there is none."""

    received: Received
    means: str | None
    data: Any
    flaw: BackendNonsense | None

    def usable(self) -> Any:
        """The JSON; BackendNonsense where there is none."""
        if self.flaw is not None:
            raise self.flaw
        return self.data

    def said(self, request: Request) -> str:
        return f"{request.label}: it answers {self.received.status}, {self.means}"
