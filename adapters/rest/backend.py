"""Asks the backend: logs in, judges each answer, and hands over its JSON."""

import asyncio
import math
import re
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import orjson

from adapters import base
from adapters.base import AdapterError, BackendNonsense, BackendUnavailable, OutcomeUnknown
from adapters.mapping.models import BackendMap, ErrorRule, Login
from adapters.mapping.paths import path
from adapters.rest.client import Client, Request
from adapters.rest.reader import Received
from adapters.rest.requests import Endpoint, Templates, TemplateValues, extended
from adapters.values.convert import Unreadable, whole

T = TypeVar("T")
U = TypeVar("U")
# The most calls of one read that are under way at once.
AT_ONCE = 8
LONGEST_TEXT = 10_000
# A token without a known end is used for so many seconds.
USUAL_LIFETIME = 300
# A token is renewed so many seconds before its end, or after four fifths of a short life.
MARGIN = 30.0
# Seconds between two logins where the first did not help: more of them would lock the account.
REST = 5.0

# The errors for what a bad answer means, by the kind of request.
Errors = Mapping[str, type[AdapterError]]
UNAVAILABLE: Errors = {"unavailable": BackendUnavailable, "too busy": BackendUnavailable}
TO_A_LOGIN = {**UNAVAILABLE, "broken for now": BackendUnavailable}
TO_A_READ = {**TO_A_LOGIN, "not found": base.NotFound}
TO_ONE = {**TO_A_READ, "no such record": base.NotFound}
TO_A_WRITE = {
    **UNAVAILABLE,
    "slot taken": base.SlotTaken,
    "not found": base.NotFound,
    **dict.fromkeys(("rejected", "refused", "no such record", "logged out"), base.Rejected),
}
_USUAL = {
    401: "logged out",
    404: "no such record",
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

    A token is renewed before it ends, and when it is refused. One call renews it while the others
    wait. After a login that was turned down, or whose token was, the next one waits for REST
    seconds. `lives` is how many seconds the token is good for; None while there is none.
    """

    def __init__(self, backend: BackendMap, templates: Templates, client: Client) -> None:
        self._client = client
        self._rules = [(_condition(rule), rule.means) for rule in backend.errors]
        fixed = {
            name: str(templates.tree(tree, {})(TemplateValues()))
            for name, tree in backend.headers.items()
        }
        if backend.basic is not None:
            account = ":".join(templates.secrets[name] for name in backend.basic)
            fixed["Authorization"] = f"Basic {b64encode(account.encode()).decode()}"
        self._fixed = self._headers = fixed
        self._login: tuple[Login, Request] | None = None
        if backend.login is not None:
            call = templates.call(backend.login, {}).request(TemplateValues())
            self._login = backend.login, call
        self._lock, self._until = asyncio.Lock(), -math.inf
        self._turned_down: tuple[float, str] = (-math.inf, "")
        self._refused_at = -math.inf
        self.lives: float | None = None

    async def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """Returns headers with a live token, or those `refused` while none are new."""
        if self._login is None or (refused is None and time.monotonic() < self._until):
            return self._headers
        async with self._lock:
            if refused is not None and (self._until == -math.inf or self._headers == refused):
                if time.monotonic() < self._refused_at + REST:
                    return refused
                self._refused_at = time.monotonic()
                await self._renew(*self._login)
            elif time.monotonic() >= self._until:
                await self._renew(*self._login)
        return self._headers

    async def _renew(self, login: Login, request: Request) -> None:
        self._until = -math.inf
        began = time.monotonic()
        (at, reason), see = self._turned_down, ""
        if began < at + REST:
            raise BackendNonsense(reason)
        try:
            answer = await self._sent(request, self._fixed, None)
            see = "" if answer.means is None else ": see backend.user and backend.password"
            self._take(login, answer.usable(request, TO_A_LOGIN, BackendNonsense).data, began)
        except BackendNonsense as error:
            self._turned_down = (began, f"{error}{see}")
            raise BackendNonsense(self._turned_down[1]) from error

    def _take(self, login: Login, answer: Any, began: float) -> None:
        """Uses the token of a login's answer from now on."""
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

    async def read(self, request: Request, errors: Errors = TO_A_READ) -> Answer:
        """Returns the answer to a question. Raises what it means, or BackendNonsense."""
        return (await self._answer(request, None)).usable(request, errors, BackendNonsense)

    def pages(self, endpoint: Endpoint, values: TemplateValues, params: Params = ()) -> Ask:
        """Returns what asks for pages of that call. Raises NotFound for ids that nobody has."""
        first = endpoint.request(values, params)

        def ask(more: Params, link: str | None) -> Awaitable[Answer]:
            if link is not None:
                return self.read(Request(endpoint.label, "GET", link))
            return self.read(extended(first, more))

        return ask

    async def write(self, request: Request, patience: float, *, bare: bool = False) -> Any:
        """Returns the JSON of the answer; with `bare` it may be empty, as none is wanted."""
        answer = await self._answer(request, patience)
        if bare and answer.means is None and answer.is_empty:
            return None
        try:
            return answer.usable(request, TO_A_WRITE, OutcomeUnknown).data
        except BackendNonsense as error:
            raise OutcomeUnknown(str(error)) from error

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _answer(self, request: Request, patience: float | None) -> Answer:
        """Returns the answer; asks again with a new token where the old one was refused."""
        if self._login is None:
            return await self._sent(request, self._fixed, patience)
        headers = await self.headers()
        begun = time.monotonic()
        answer = await self._sent(request, headers, patience)
        if answer.means != "logged out":
            return answer
        new = await self.headers(refused=headers)
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
        means = self._ruled(received, data) if self._rules else None
        if means is None and not _is_good(status):
            means = _USUAL.get(status, "broken" if status >= 500 or status < 200 else "refused")
        behind, is_empty = self._client.behind, not received.body
        return Answer(data, received.link, behind, request, status, means, is_empty)

    def _ruled(self, received: Received, data: Any) -> str | None:
        """Returns what the mapping's rules say that an answer means; None where none fits."""
        known = None if isinstance(data, BackendNonsense) else data
        text = received.body[:LONGEST_TEXT].decode(errors="replace")
        rules = (means for fits, means in self._rules if fits(received.status, known, text))
        return next(rules, None)


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


def _is_good(status: int) -> bool:
    return 200 <= status < 300


def _condition(rule: ErrorRule) -> Callable[[int, Any, str], bool]:
    """Returns what tells whether a rule fits an answer: its status, JSON (or None), and text."""
    statuses = (rule.status,) if isinstance(rule.status, int) else rule.status
    search = re.compile(rule.text, re.IGNORECASE).search if rule.text else None
    where = path(rule.path) if rule.path else None

    def fits(status: int, data: Any, text: str) -> bool:
        if statuses is not None and status not in statuses:
            return False
        if where is None:  # a good answer may repeat what a partner wrote
            return search is None or (not _is_good(status) and search(text) is not None)
        try:
            value = where(data)
        except Unreadable:
            return False
        # as in JSON, 1 is not true
        same = (type(value) is type(other) and value == other for other in rule.is_ or ())
        if rule.is_ is not None and not any(same):
            return False
        return search is None or (
            value is not None and search(str(value)[:LONGEST_TEXT]) is not None
        )

    return fits


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
