"""Asks the backend: logs in, judges each answer, and hands over its JSON."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import orjson

from adapters import base
from adapters.base import AdapterError, BackendNonsense, BackendUnavailable, OutcomeUnknown
from adapters.mapping.models import BackendMap
from adapters.rest.client import Client, Request
from adapters.rest.login import LoggedOut, LoginCall, Logins, OAuthCall, Scheme, basic, error_told
from adapters.rest.reader import Received
from adapters.rest.requests import Endpoint, Templates, TemplateValues, header_texts
from adapters.rest.rules import LONGEST_TEXT, Rules, is_good, rules_of

T = TypeVar("T")
U = TypeVar("U")
# The most calls of one read that are under way at once.
AT_ONCE = 8

# The errors for what a bad answer means, by the kind of request.
Errors = Mapping[str, type[AdapterError]]
UNAVAILABLE: Errors = {"unavailable": BackendUnavailable, "too busy": BackendUnavailable}
TO_A_LOGIN = {**UNAVAILABLE, "broken for now": BackendUnavailable}
TO_A_READ = {**TO_A_LOGIN, "not found": base.NotFound, "logged out": LoggedOut}
TO_ONE = {**TO_A_READ, "no such record": base.NotFound}
TO_A_WRITE = {
    **UNAVAILABLE,
    "slot taken": base.SlotTaken,
    "not found": base.NotFound,
    **dict.fromkeys(("rejected", "refused", "no such record", "logged out"), base.Rejected),
    # what was to be changed is no longer as it was read
    "changed meanwhile": base.SlotTaken,
}
# a call of a booking that only reads
TO_A_STEP = {**TO_A_READ, "slot taken": base.SlotTaken, "rejected": base.Rejected}
_USUAL = {
    401: "logged out",
    404: "no such record",
    412: "changed meanwhile",
    429: "too busy",
    **dict.fromkeys((502, 503, 504), "broken for now"),
}


class Answer(NamedTuple):
    """An answer's JSON, its `Link` header, and what makes a link in it the target of a request.

    `means` is what is wrong with it, None for a good one. Where there is no JSON, `data` is the
    BackendNonsense that says why.
    """

    data: Any
    link: str = ""
    behind: Callable[[str, Request], str] = lambda link, request: link
    request: Request = Request("", "GET")
    status: int = 200
    means: str | None = None
    is_empty: bool = False
    headers: Mapping[bytes, bytes] = MappingProxyType({})

    def usable(self, request: Request, errors: Errors, other: type[AdapterError]) -> "Answer":
        """Returns the answer. Raises what it means, or BackendNonsense where there is no JSON."""
        if self.means is not None:
            text = f"{request.label}: it answers {self.status}, {self.means}"
            raise errors.get(self.means, other)(text)
        if isinstance(self.data, BackendNonsense):
            raise self.data
        return self


Params = Sequence[tuple[str, Any]]
# Asks for a page: by further parameters, or by a link instead.
Ask = Callable[[Params, str | None], Awaitable[Answer]]


class Backend:
    """Asks the practice system, as the `backend` part of its mapping says.

    `logins` keeps the headers by which it knows us. Tokens of OAuth 2 are asked for by the client
    `tokens`.
    """

    def __init__(
        self,
        backend: BackendMap,
        templates: Templates,
        client: Client,
        tokens: Client | None = None,
    ) -> None:
        self._client, self._tokens, self._secrets = client, tokens, templates.secrets
        self._rules = rules_of(backend.errors)
        headers = [(name, templates.tree(tree, {})) for name, tree in backend.headers.items()]
        fixed = header_texts(headers, TemplateValues())
        if backend.basic is not None:
            fixed["Authorization"] = basic(*(templates.secrets[name] for name in backend.basic))
        scheme: Scheme | None = None
        if backend.oauth is not None:
            scheme = OAuthCall(backend.oauth, templates.secrets, tokens or client)
        elif backend.login is not None:
            request = templates.call(backend.login, {}).request(TemplateValues())
            scheme = LoginCall(backend.login, partial(self._logged_in, request))
        self.logins = Logins(scheme, fixed)

    async def _logged_in(self, request: Request) -> Any:
        """Returns the JSON of a login's answer. Raises BackendNonsense where it is refused."""
        answer = await self._sent(request, self.logins.fixed, None)
        try:
            return answer.usable(request, TO_A_LOGIN, BackendNonsense).data
        except BackendNonsense as error:
            if answer.means is None:
                raise
            told = error_told(answer.data, self._secrets, [self.logins.token])
            see = "see backend.user and backend.password"
            raise BackendNonsense(f"{error}{told}: {see}") from error

    async def read(self, request: Request, errors: Errors = TO_A_READ) -> Answer:
        """Returns the answer to a question. Raises what it means, or BackendNonsense."""
        return (await self._answer(request, None)).usable(request, errors, BackendNonsense)

    def pages(self, endpoint: Endpoint, values: TemplateValues, params: Params = ()) -> Ask:
        """Returns what asks for pages of that call. Raises NotFound for ids that nobody has."""
        first = endpoint.request(values, params)

        def ask(more: Params, link: str | None) -> Awaitable[Answer]:
            if link is not None:
                return self.read(first._replace(method="GET", target=link, body=None))
            if not more:
                return self.read(first)
            # a query grows by `more`, a body is made anew
            params_of = more if endpoint.body is None else (*params, *more)
            return self.read(endpoint.further(first, values, params_of))

        return ask

    async def write(self, request: Request, patience: float, *, bare: bool = False) -> Answer:
        """Returns the answer; with `bare` it may be empty, as no JSON is wanted."""
        answer = await self._answer(request, patience)
        if bare and answer.means is None and answer.is_empty:
            return answer._replace(data=None)
        try:
            return answer.usable(request, TO_A_WRITE, OutcomeUnknown)
        except BackendNonsense as error:
            raise OutcomeUnknown(str(error)) from error

    async def aclose(self) -> None:
        await self._client.aclose()
        if self._tokens is not None:
            await self._tokens.aclose()

    async def _answer(self, request: Request, patience: float | None) -> Answer:
        """Returns the answer; asks again with a new token where the old one was refused."""
        if not self.logins.renews:
            return await self._sent(request, self.logins.fixed, patience)
        headers = await self.logins.headers()
        begun = time.monotonic()
        answer = await self._sent(request, headers, patience)
        if answer.means != "logged out":
            return answer
        new = await self.logins.headers(refused=headers)
        if new is headers:
            return answer
        left = None if patience is None else patience - (time.monotonic() - begun)
        if left is not None and left <= 0:
            raise BackendUnavailable(f"{request.label}: no time was left after a new login")
        return await self._sent(request, new, left)

    async def _sent(
        self, request: Request, headers: Mapping[str, str], patience: float | None
    ) -> Answer:
        if patience is None or request.method == "GET":
            received = await self._client.read(request, headers)
        else:
            received = await self._client.write(request, headers, patience)
        data, status = _json(received, request.label), received.status
        rules = [*request.rules, *self._rules] if request.rules else self._rules
        means = _ruled(rules, received, data) if rules else None
        if means is None and not is_good(status):
            means = _USUAL.get(status, "broken" if status >= 500 or status < 200 else "refused")
        behind, is_empty = self._client.behind, not received.body
        return Answer(
            data, received.link, behind, request, status, means, is_empty, received.headers
        )


def _ruled(rules: Rules, received: Received, data: Any) -> str | None:
    """Returns what the rules say that an answer means; None where none fits."""
    known = None if isinstance(data, BackendNonsense) else data
    text = received.body[:LONGEST_TEXT].decode(errors="replace")
    meanings = (means for fits, means in rules if fits(received.status, known, text))
    return next(meanings, None)


def _json(received: Received, label: str) -> Any:
    """Returns the answer's JSON, or a BackendNonsense where it is none."""
    if received.kind != "application/json" and not received.kind.endswith("+json"):
        return BackendNonsense(f"{label}: the answer does not say that it is JSON")
    if received.charset not in ("utf-8", "utf8", "us-ascii"):
        return BackendNonsense(f"{label}: the answer is not in UTF-8")
    try:
        return orjson.loads(received.body)
    except orjson.JSONDecodeError:
        return BackendNonsense(f"{label}: the answer is not JSON")


async def together(*coroutines: Coroutine[Any, Any, T]) -> list[T]:
    """Returns all answers in order. Raises the first error, and leaves nothing running."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def for_each(ask: Callable[[U], Awaitable[T]], values: Iterable[U]) -> list[T]:
    """Returns what `ask` gives for each of the values, a few at a time."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask_gated(value: U) -> T:
        async with gate:
            return await ask(value)

    return await together(*(ask_gated(value) for value in values))
