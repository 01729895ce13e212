"""Gets tokens by a login call or by OAuth 2, and renews them: one call at a time, in time."""

import asyncio
import json
import math
import re
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeGuard
from urllib.parse import quote, quote_plus

import orjson
from yarl import URL

from adapters.base import AdapterError, BackendNonsense, BackendUnavailable
from adapters.mapping.models import Login, OAuth, TokenMap
from adapters.mapping.paths import path
from adapters.rest.client import Client, Request
from adapters.rest.requests import FORM_TYPE, pairs_text
from adapters.rest.rules import is_good
from adapters.values.convert import Unreadable, whole

# A token without a known end is used for so many seconds.
USUAL_LIFETIME = 300
# A token is renewed so many seconds before its end, or after four fifths of a short life.
MARGIN = 30.0
# Seconds between two logins where the first did not help: more of them would lock the account.
REST = 5.0
# Seconds that a call waits for a new token while the old one is still good.
PATIENCE = 2.0
# Characters of what a server says of an error, and the members in which it does so.
LONGEST_TOLD = 200
_TELLS = ("error", "error_description", "message", "detail", "title")
# Characters of what is hidden in it: where a user's name is shorter, nothing else could be read.
SHORTEST_HIDDEN = 4
_PRINTABLE = re.compile(r"[^\x20-\x7e]+").sub
# What of the mapping or the settings an error of OAuth 2 is about.
_ABOUT = {
    "invalid_client": "{client}",
    "unauthorized_client": "backend.oauth.grant",
    "unsupported_grant_type": "backend.oauth.grant",
    "invalid_scope": "backend.oauth.scope",
    "invalid_target": "backend.oauth.more",
    "invalid_request": "backend.oauth",
    "invalid_grant": "backend.token",
}


class LoggedOut(BackendNonsense):
    """No call is let in: what fails is not one record's answer."""


class Token(NamedTuple):
    """A token, and how many seconds it is good for; None where that is not known."""

    text: str
    lives: float | None


class Scheme(Protocol):
    """One way to get a token."""

    @property
    def mapped(self) -> TokenMap:
        """How calls carry it."""

    async def token(self) -> Token:
        """Returns a new token. Raises BackendNonsense where there is none, BackendUnavailable."""


class Logins:
    """Keeps the headers of all calls, with a live token where the mapping says how to get one.

    A token is renewed before it ends, and when it is refused, once for all calls. Where a renewal
    ahead of time fails or takes long, the old token is used until it ends. After a renewal that
    failed, or whose token was refused, the next one waits for REST seconds. `token` is the last
    one, and `lives` how many seconds it is good for; None while there is none. `count` is how many
    tokens it has got.
    """

    def __init__(self, scheme: Scheme | None, fixed: Mapping[str, str]) -> None:
        self._scheme, self.fixed = scheme, fixed
        self._headers = fixed
        # a task of its own, as a call that is cancelled must not lose the answer
        self._renewal: asyncio.Task[None] | None = None
        # when the token is renewed, and when it ends
        self._until = self._ends = -math.inf
        self._failure: tuple[type[AdapterError], str] | None = None
        self._failed_at = self._refused_at = -math.inf
        self.token, self.count = "", 0
        self.lives: float | None = None

    @property
    def renews(self) -> bool:
        """Whether a token that is refused can be renewed."""
        return self._scheme is not None

    @property
    def rotates(self) -> bool:
        """Whether the server gives another refresh token for that of the settings."""
        return isinstance(self._scheme, OAuthCall) and self._scheme.rotates

    async def headers(self, refused: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """Returns headers with a live token, or those `refused` while none are new."""
        scheme, now = self._scheme, time.monotonic()
        is_refused = refused is not None and self._headers == refused
        if scheme is None or (now < self._until and not is_refused):
            return self._headers
        if is_refused and self._renewal is None:
            if now < self._refused_at + REST:
                return self._headers
            self._refused_at, self._until, self._ends = now, -math.inf, -math.inf
        if self._renewal is None and now >= self._failed_at + REST:
            self._renewal = asyncio.create_task(self._renew(scheme))
        if (renewal := self._renewal) is not None:
            lasts = now + PATIENCE < self._ends
            await asyncio.wait({renewal}, timeout=PATIENCE if lasts else None)
            if renewal.done():
                renewal.result()
        if self._failure is not None and time.monotonic() >= self._ends:
            kind, text = self._failure
            raise kind(text)
        return self._headers

    async def _renew(self, scheme: Scheme) -> None:
        began = time.monotonic()
        try:
            token = await scheme.token()
        except AdapterError as error:
            kind = LoggedOut if isinstance(error, BackendNonsense) else type(error)
            self._failed_at, self._failure = time.monotonic(), (kind, str(error))
            return
        finally:
            self._renewal = None
        self._failure = None
        self.count += 1
        lives, mapped = token.lives, scheme.mapped
        if lives is None or lives <= 0:
            lives = mapped.lifetime or USUAL_LIFETIME
        self.token, self.lives, self._ends = token.text, lives, began + lives
        self._until = began + max(lives - MARGIN, lives * 0.8)
        self._headers = {**self.fixed, mapped.header: mapped.form.format(token.text)}


class LoginCall:
    """A login by a call of the mapping's own; `ask` makes it.

    It gives the answer's JSON and what is wrong with it, and raises where there is no usable one.
    """

    def __init__(self, login: Login, ask: Callable[[], Awaitable[Any]]) -> None:
        self.mapped, self._ask = login, ask

    async def token(self) -> Token:
        answer = await self._ask()
        try:
            token = path(self.mapped.token)(answer)
            seconds = path(self.mapped.seconds)(answer) if self.mapped.seconds else None
        except Unreadable as error:
            raise BackendNonsense("the login's answer cannot be read") from error
        if not is_sendable(token):
            raise BackendNonsense("the login's answer has no token: see backend.login.token")
        return Token(token, whole(seconds))


class TokenRefused(BackendNonsense):
    """The server will give no token for what was sent, however often it is asked."""


class OAuthCall:
    """A token of OAuth 2, as RFC 6749 has it: a form is sent, and JSON comes back.

    A refresh token that comes with it gets the next ones, until the server says `invalid_grant`:
    then the grant of the mapping is used again. No other error loses it. `rotates` tells whether
    the server gives a new refresh token for that of the settings, which is then good for nothing.
    """

    label = "POST backend.oauth.url"

    def __init__(self, oauth: OAuth, secrets: Mapping[str, str], client: Client) -> None:
        self.mapped, self._client, self._secrets = oauth, client, secrets
        self._target = URL(oauth.url).raw_path_qs
        self._refresh: str | None = None
        name, secret = (quote_plus(secrets[each]) for each in oauth.client)
        self._basic = basic(name, secret)
        # what no error tells, beside the secrets
        self._given = {"client": self._basic.removeprefix("Basic ")}
        self.rotates = False

    async def token(self) -> Token:
        if self._refresh is not None:
            try:
                return await self._granted(
                    {"grant_type": "refresh_token", "refresh_token": self._refresh}
                )
            except TokenRefused:
                self._refresh = None  # it has ended: the grant of the mapping begins anew
            except BackendNonsense:
                if self.mapped.grant == "refresh_token":  # which may be good no longer
                    raise
        grant: dict[str, str] = {"grant_type": self.mapped.grant}
        if self.mapped.grant == "refresh_token":
            grant["refresh_token"] = self._secrets["token"]
        return await self._granted(grant)

    async def _granted(self, grant: Mapping[str, str]) -> Token:
        oauth = self.mapped
        form, headers = {**grant, **oauth.more}, {"Accept": "application/json"}
        if oauth.scope is not None:
            form["scope"] = oauth.scope
        if oauth.authenticate == "basic":
            headers["Authorization"] = self._basic
        else:
            name, secret = (self._secrets[each] for each in oauth.client)
            form |= {"client_id": name, "client_secret": secret}
        body = pairs_text(form.items()).encode()
        request = Request(self.label, "POST", self._target, body, FORM_TYPE)
        received = await self._client.read(request, headers)
        try:
            answer = orjson.loads(received.body)
        except orjson.JSONDecodeError:
            answer = None
        if not is_good(received.status):
            raise self._refused(received.status, answer)
        given = answer.get("refresh_token") if isinstance(answer, dict) else None
        self._refresh = was = grant.get("refresh_token")
        if isinstance(given, str) and given:
            self._refresh = self._given["refresh"] = given
            self.rotates = self.rotates or (was is not None and was != given)
        token = answer.get("access_token") if isinstance(answer, dict) else None
        if not is_sendable(token):
            text = f"{self.label}: the answer has no access_token; see backend.oauth.url"
            raise BackendNonsense(text)
        self._given["access"] = token
        return Token(token, whole(answer.get("expires_in")))

    def _refused(self, status: int, answer: Any) -> BackendNonsense | BackendUnavailable:
        told = error_told(answer, self._secrets, self._given.values())
        if status in (429, 502, 503, 504):
            return BackendUnavailable(f"{self.label}: it answers {status}{told}")
        error = answer.get("error") if isinstance(answer, dict) else None
        kind = TokenRefused if error == "invalid_grant" else BackendNonsense
        client = " and ".join(f"backend.{name}" for name in self.mapped.client)
        about = _ABOUT.get(str(error), "{client}" if status == 401 else "backend.oauth")
        see = about.format(client=client)
        return kind(f"{self.label}: it answers {status}{told}; see {see}")


def is_sendable(token: Any) -> TypeGuard[str]:
    """Returns whether it is a token that a header can carry."""
    return isinstance(token, str) and bool(token) and token.isascii() and token.isprintable()


def basic(name: str, secret: str) -> str:
    return f"Basic {b64encode(f'{name}:{secret}'.encode()).decode()}"


def error_told(answer: Any, secrets: Mapping[str, str], given: Iterable[str] = ()) -> str:
    """Returns what an answer to a login says of an error, as `: TEXT`; "" for nothing.

    It holds none of the secrets, in whatever spelling, nor of what was `given` by the server, and
    no sign that a terminal would take for a command.
    """
    members = answer if isinstance(answer, dict) else {}
    texts = [text for name in _TELLS if isinstance(text := members.get(name), str) and text]
    told, password = ", ".join(dict.fromkeys(texts)), secrets.get("password")
    hidden = {text for text in (*secrets.values(), *given) if len(text) >= SHORTEST_HIDDEN}
    hidden |= {password} if password else set()
    if hidden:
        spelt = sorted({it for text in hidden for it in _spellings(text)}, key=len, reverse=True)
        told = re.sub("|".join(map(re.escape, spelt)), "***", told, flags=re.IGNORECASE)
    told = " ".join(_PRINTABLE(" ", told).split())
    if len(told) > LONGEST_TOLD:
        told = f"{told[:LONGEST_TOLD]}..."
    return f": {told}" if told else ""


def _spellings(text: str) -> Iterator[str]:
    """Yields a text as it is, as JSON has it, and as addresses and forms do."""
    yield text
    for is_ascii in (True, False):
        written = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
        yield from (written, written.replace("/", r"\/"))
    yield from (quote(text, safe=""), quote(text, safe="!'()*"), quote_plus(text))
