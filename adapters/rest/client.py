"""Sends requests to the backend, and returns its answers as bytes.

What is asked by GET goes over a Reader's connections. All else goes over aiohttp's client, whose
defaults suit a browser: here no redirect is followed, no cookie is kept, nothing is read from the
environment or decompressed, an answer is cut off where it grows too large, and each request gets a
connection that was never used before.
"""

import asyncio
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType, SimpleNamespace
from typing import NamedTuple

import aiohttp
from yarl import URL

from adapters import base
from adapters.base import AdapterError, BackendNonsense, BackendUnavailable, OutcomeUnknown
from adapters.call_notes import CALL_NOTES
from adapters.rest.reader import (
    CLOSED,
    COMPRESSED,
    CONNECT_PATIENCE,
    LARGEST,
    NO_LENGTH,
    TOO_LARGE,
    Reader,
    Received,
    opened_socket,
)
from adapters.rest.rules import Rules
from adapters.wrappers.call_limiter import CallLimiter
from adapters.wrappers.connection_errors import reason
from adapters.wrappers.deadline import CallSpan, Deadline

CHUNK = 64 * 1024
JSON = "application/json"
OWN_HEADERS = {
    "Accept": JSON,
    "Accept-Encoding": "identity",
    "User-Agent": "clinic-gateway",
}
IN_VAIN = "no answer in time"
_BROKEN = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*").fullmatch


def _single_use() -> aiohttp.ClientSession:
    """Returns a session that opens a connection for each request, and closes it."""
    trace = aiohttp.TraceConfig()
    trace.on_request_headers_sent.append(_note_sent)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True, socket_factory=opened_socket),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        trace_configs=[trace],
    )


async def _note_sent(_: object, context: SimpleNamespace, __: object) -> None:
    context.trace_request_ctx.yes = True


class Request(NamedTuple):
    """A request: `target` is its path and query, `label` names it in errors without values.

    `content` is the media type of its body. Its own `headers` take the place of all others, and its
    `rules` say what answers to it mean.
    """

    label: str
    method: str
    target: str = "/"
    body: bytes | None = None
    content: str = JSON
    headers: Mapping[str, str] = MappingProxyType({})
    rules: Rules = ()


# How addresses for the sql adapter begin.
_DATABASES = (
    "postgres",
    "mysql",
    "mariadb",
    "mssql",
    "firebird",
    "odbc",
    "sqlite",
    "access",
    "dbf",
)


def address_problem(url: str) -> str | None:
    """Returns what is wrong with a backend's address; None where nothing is."""
    try:
        address = URL(url)
        named = address.scheme in ("http", "https") and bool(address.host)
        _ = address.port
    except ValueError:
        named = False
    if not named and url.startswith(_DATABASES):
        return "is a database's address: it needs backend.adapter: sql"
    if not named:
        return "must be the backend's address, such as https://cloud.example.org/api"
    if address.user is not None or address.password is not None:
        return "must not hold a user or password: write them into backend.user, backend.password"
    if address.query_string or "?" in url or "#" in url:
        return "takes nothing behind a ? or #: parameters stand in the mapping, under query"
    return None


class Client:
    """Sends requests to one backend; a read may take `timeout` seconds.

    At most `in_flight` requests are under way at once, and no more connections are open. What is
    asked beyond that waits, partners taking turns: the gateway lets as many calls in, of which some
    ask for several things at once. A place is held for one request alone, so that nobody who has
    one waits for another.

    Once it is closed nothing more is sent. What is under way ends as BackendUnavailable, or as
    OutcomeUnknown where something was written.
    """

    def __init__(self, address: str, *, timeout: float, in_flight: int = 20) -> None:
        self._base = URL(address)
        self._path = self._base.raw_path.rstrip("/")
        self._timeout, self._deadline = timeout, Deadline(timeout)
        self._in_flight = in_flight
        self._room = CallLimiter(in_flight, sys.maxsize, timeout)
        self._reader: Reader | None = None
        self._session: aiohttp.ClientSession | None = None
        self._arriving: set[aiohttp.StreamReader] = set()
        # the headers that were sent last, and the lines that they make
        self._lines: tuple[Mapping[str, str], bytes] | None = None
        self._is_closed = False

    async def read(self, request: Request, headers: Mapping[str, str]) -> Received:
        """Returns the answer; a GET is sent once more where a kept connection proves broken."""
        if request.method != "GET":
            with self._translated(request.label, unsure=False) as sent:
                return await self._send(request, headers, self._timeout, sent)
        self._must_be_open(request.label)
        try:
            with CallSpan(self._deadline):
                if not self._room.take():
                    await self._room.enter()
                try:
                    self._must_be_open()
                    reader = self._reader = self._reader or Reader(self._base)
                    return await reader.get(self._head(request, headers))
                finally:
                    self._room.leave()
        except (AdapterError, OSError, ValueError) as error:
            raise self._named(request.label, error) from error

    async def write(
        self, request: Request, headers: Mapping[str, str], patience: float
    ) -> Received:
        """Sends a request at most once. Raises OutcomeUnknown where it went and no answer came."""
        with self._translated(request.label, unsure=True) as sent:
            return await self._send(request, headers, patience, sent)

    async def aclose(self) -> None:
        """Closes every connection, for good."""
        self._is_closed = True
        if self._reader is not None:
            await self._reader.aclose()
        if self._session is not None:
            await self._session.close()
        for content in self._arriving:  # closing does not wake their readers
            content.set_exception(aiohttp.ServerDisconnectedError())

    def _must_be_open(self, label: str = "") -> None:
        if self._is_closed:
            raise BackendUnavailable(f"{label}: {CLOSED}" if label else CLOSED)

    def _named(self, label: str, error: Exception) -> AdapterError:
        """Returns what an error of the reader means."""
        if self._is_closed:
            return BackendUnavailable(f"{label}: {CLOSED}")
        if isinstance(error, AdapterError):
            kind = BackendNonsense if isinstance(error, BackendNonsense) else BackendUnavailable
            return kind(f"{label}: {error}")
        if isinstance(error, TimeoutError):
            return base.BackendTimeout(f"{label}: {IN_VAIN}")
        if isinstance(error, OSError):
            return BackendUnavailable(f"{label}: {_unreachable(error)}")
        return BackendNonsense(f"{label}: {error}")

    def _head(self, request: Request, headers: Mapping[str, str]) -> bytes:
        """Returns the head of a GET. Raises ValueError where it would not be one line for each."""
        if request.headers:
            lines = _lines(self._base, {**headers, **request.headers})
        elif self._lines is not None and self._lines[0] is headers:
            lines = self._lines[1]
        else:
            lines = _lines(self._base, headers)
            self._lines = headers, lines
        target = f"{self._path}{request.target}"
        if not (target.isascii() and target.isprintable()) or " " in target:
            raise ValueError("the address that is asked for cannot be sent")
        if not target.startswith("/"):
            target = f"/{target}"
        traceparent = CALL_NOTES.get().traceparent
        trace = f"traceparent: {traceparent}\r\n" if traceparent else ""
        return b"GET %b HTTP/1.1\r\n%b%b\r\n" % (target.encode(), lines, trace.encode())

    @contextmanager
    def _translated(self, label: str, *, unsure: bool) -> Iterator[SimpleNamespace]:
        """Raises aiohttp's errors as ours; with `unsure`, what was sent is OutcomeUnknown."""
        self._must_be_open(label)
        sent = SimpleNamespace(yes=False)
        try:
            yield sent
        except AdapterError as error:
            if unsure and sent.yes:
                raise OutcomeUnknown(str(error)) from error
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if not self._is_closed or task is None or task.cancelling():
                raise
            # nobody cancelled it: it waited for a connection, and there will be none
            raise BackendUnavailable(f"{label}: {CLOSED}") from error
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            kind, text = _translation(error)
            if self._is_closed:
                kind, text = BackendUnavailable, CLOSED
            if unsure:
                kind = OutcomeUnknown if sent.yes else BackendUnavailable
            raise kind(f"{label}: {text}") from error

    def behind(self, link: str, request: Request) -> str:
        """Returns the target of a link in an answer. Raises BackendNonsense for one elsewhere.

        A link of either scheme is one of the backend's, as a server behind a proxy may not know
        which one it has; what is asked for goes over the backend's own scheme and address.
        """
        named, base = f"{request.label}: the link to the next page", self._base
        try:
            url = self._url(request).join(URL(link))
            is_same = url.scheme in ("http", "https") and url.host == base.host
            is_usual = url.is_default_port() and base.is_default_port()
            is_same = is_same and (is_usual or url.port == base.port) and not url.fragment
        except ValueError as error:
            raise BackendNonsense(f"{named} is no address") from error
        if not is_same or not f"{url.raw_path}/".startswith(f"{self._path}/"):
            raise BackendNonsense(f"{named} leads elsewhere")
        return url.raw_path_qs.removeprefix(self._path)

    def _url(self, request: Request) -> URL:
        path, _, query = request.target.partition("?")
        path = self._path + path
        return URL.build(  # of parts, so that no target names another host
            scheme=self._base.scheme,
            authority=self._base.raw_authority,
            path=path,
            query_string=query,
            encoded=True,
        )

    async def _send(
        self,
        request: Request,
        headers: Mapping[str, str],
        patience: float,
        sent: SimpleNamespace,
    ) -> Received:
        """Sends a request over a connection of its own, within so many seconds in all."""
        async with asyncio.timeout(patience):
            await self._room.enter()
            try:
                self._must_be_open(request.label)
                if self._reader is not None:
                    self._reader.keep(self._in_flight - self._room.in_use)
                return await self._exchange(request, headers, sent)
            finally:
                self._room.leave()

    async def _exchange(
        self, request: Request, headers: Mapping[str, str], sent: SimpleNamespace
    ) -> Received:
        self._session = self._session or _single_use()
        kind = {} if request.body is None else {"Content-Type": request.content}
        traceparent = CALL_NOTES.get().traceparent
        trace = {"traceparent": traceparent} if traceparent else {}
        try:
            lines = _merged(OWN_HEADERS, kind, trace, headers, request.headers)
        except ValueError as error:  # aiohttp would notice it where it says that they are sent
            raise BackendNonsense(f"{request.label}: {error}") from error
        async with self._session.request(
            request.method,
            self._url(request),
            data=request.body,
            headers=lines,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(sock_connect=CONNECT_PATIENCE),
            trace_request_ctx=sent,
        ) as response:
            self._arriving.add(response.content)
            try:
                return await _received(response, request.label)
            except AdapterError:
                response.close()  # whatever else is on its way
                raise
            finally:
                self._arriving.discard(response.content)


def _merged(*groups: Mapping[str, str]) -> dict[str, str]:
    """Returns all headers; a later one takes the place of an earlier one, whatever its case.

    Raises ValueError where one would not be one line.
    """
    lines = {name.lower(): (name, value) for group in groups for name, value in group.items()}
    if not all(_NAME(name) and _VALUE(value) for name, value in lines.values()):
        raise ValueError("a header of the mapping cannot be sent")
    return dict(lines.values())


def _lines(address: URL, headers: Mapping[str, str]) -> bytes:
    """Returns the lines of a head that all requests have. Raises ValueError for a bad header."""
    lines = _merged({"Host": address.host_port_subcomponent or ""}, OWN_HEADERS, headers)
    return "".join(f"{name}: {value}\r\n" for name, value in lines.items()).encode()


async def _received(response: aiohttp.ClientResponse, label: str) -> Received:
    if 300 <= response.status < 400:
        raise BackendNonsense(f"{label}: it sends us elsewhere ({response.status})")
    headers = response.headers
    if headers.get("Content-Encoding", "identity").lower() != "identity":
        raise BackendNonsense(f"{label}: {COMPRESSED}")
    chunked = "chunked" in headers.get("Transfer-Encoding", "").lower()
    if not chunked and "Content-Length" not in headers and response.status != 204:
        raise BackendNonsense(f"{label}: {NO_LENGTH}")
    body = bytearray()
    async for chunk in response.content.iter_chunked(CHUNK):
        body += chunk
        if len(body) > LARGEST:
            raise BackendNonsense(f"{label}: {TOO_LARGE}")
    charset, link = (response.charset or "utf-8").lower(), headers.get("Link", "")
    date, status = headers.get("Date", ""), response.status
    raw = {name.lower(): value for name, value in response.raw_headers}
    return Received(status, response.content_type, charset, link, date, bytes(body), raw)


def _translation(error: Exception) -> tuple[type[AdapterError], str]:
    if isinstance(error, TimeoutError):
        return base.BackendTimeout, IN_VAIN
    if isinstance(error, aiohttp.ClientConnectorError):
        return BackendUnavailable, _unreachable(error)
    kind = BackendUnavailable if isinstance(error, (*_BROKEN, OSError)) else BackendNonsense
    return kind, f"the answer cannot be used ({type(error).__name__})"


def _unreachable(error: Exception) -> str:
    why = reason(error) or f"the connection failed ({type(error).__name__})"
    return f"it cannot be reached: {why}; see backend.url"
