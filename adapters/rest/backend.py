"""The backend as one that is asked: proves who asks, judges the answer, hands over its JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
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
from adapters.rest.auth import Auth, Fixed, Token, basic
from adapters.rest.client import Client, Received, Request
from adapters.rest.mapping import Backend as BackendMap
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
    """An answer's JSON, and its `Link` header."""

    data: Any
    link: str = ""


class Backend:
    """Asks the practice system. `within` seconds is all that one request may take."""

    def __init__(self, backend: BackendMap, templates: Templates, client: Client) -> None:
        self._client = client
        self._rules = Rules(backend.errors)
        self.relative = client.relative
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

    async def read(self, request: Request, *, one: bool = False) -> Answer:
        """The answer to a question; with `one` a 404 says that there is no such record."""
        received, means = await self._asked(request, None)
        if means is None:
            return Answer(data_of(received, request.label), received.link)
        if one and means == "no such record":
            raise NotFound(f"{request.label}: there is none")
        raise TO_A_READ.get(means, BackendNonsense)(_text(request, received, means))

    async def write(self, request: Request, patience: float, *, bare: bool = False) -> Any:
        """The JSON that came of it; with `bare` an answer may be empty, as none is wanted."""
        received, means = await self._asked(request, patience)
        if means is not None:
            raise TO_A_WRITE.get(means, OutcomeUnknown)(_text(request, received, means))
        if bare and not received.body:
            return None
        try:
            return data_of(received, request.label)
        except BackendNonsense as error:
            raise OutcomeUnknown(str(error)) from error

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    async def _asked(self, request: Request, patience: float | None) -> tuple[Received, str | None]:
        """The answer and what it means; asked again with a new token where the old was refused."""
        headers = await self._auth.headers()
        received = await self._sent(request, headers, patience)
        means = self._rules.meaning(received)
        if means == "logged out" and await self._auth.renew(headers):
            received = await self._sent(request, await self._auth.headers(), patience)
            means = self._rules.meaning(received)
        return received, means

    async def _sent(
        self, request: Request, headers: Mapping[str, str], patience: float | None
    ) -> Received:
        if patience is None or request.method == "GET":
            return await self._client.read(request, headers)
        return await self._client.write(request, headers, patience)

    async def _log_in(self) -> Any:
        received = await self._client.read(self._login, self._login_headers)
        means = self._rules.meaning(received)
        if means is None:
            return data_of(received, self._login.label)
        text = _text(self._login, received, means)
        if TO_A_READ.get(means) is BackendUnavailable:
            raise BackendUnavailable(text)
        raise BackendNonsense(f"{text}: see backend.user and backend.password")


def _text(request: Request, received: Received, means: str) -> str:
    return f"{request.label}: it answers {received.status}, {means}"
