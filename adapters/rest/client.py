"""Sends requests to the backend, and returns its answers as bytes.

aiohttp's defaults suit a browser. Here no redirect is followed, no cookie is kept, nothing is read
from the environment or decompressed, and an answer is cut off where it grows too large. Reads share
pooled connections. Each write gets a connection that was never used before.
"""

import asyncio
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import aiohttp
from yarl import URL

from adapters import base
from adapters.base import AdapterError, BackendNonsense, BackendUnavailable, OutcomeUnknown
from adapters.call_notes import CALL_NOTES
from adapters.wrappers.connection_errors import reason

LARGEST = 2 * 1024 * 1024
CHUNK = 64 * 1024
CONNECT_PATIENCE = 1.0
CONNECTIONS = 20
KEPT_ALIVE = 5.0
LOST_AFTER = 5_000  # milliseconds without a sign of life from the other side
OWN_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": "clinic-gateway",
}
CLOSED = "the gateway has closed its connections"
_BROKEN = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)


class _Connector(aiohttp.TCPConnector):
    """A pool that drops connections with unexpected data: it would pass for the next answer."""

    async def _get(self, key: Any, traces: Any) -> Any:
        while (kept := await super()._get(key, traces)) is not None:
            if kept.protocol is not None and not kept.protocol.should_close:
                break
            kept.close()
        return kept


def connections(*, force_close: bool) -> aiohttp.ClientSession:
    """Returns a session with pooled connections, or one for each request (`force_close`)."""
    trace = aiohttp.TraceConfig()
    trace.on_request_headers_sent.append(_note_sent)
    session = aiohttp.ClientSession(
        connector=_Connector(
            limit=CONNECTIONS,
            force_close=force_close,
            socket_factory=_socket,
            # where connections are closed at once, no time may be named
            keepalive_timeout=None if force_close else KEPT_ALIVE,
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        trace_configs=[trace],
    )
    # it would repeat a GET by itself, and we repeat it too
    session._retry_connection = False  # noqa: SLF001 - there is no public way
    return session


def _socket(address: Any) -> socket.socket:
    """Opens a socket that notices a peer who is gone without a word."""
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LOST_AFTER)
    return made


async def _note_sent(_: object, context: SimpleNamespace, __: object) -> None:
    context.trace_request_ctx.yes = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request: `target` is its path and query, `label` names it in errors without values."""

    label: str
    method: str
    target: str = "/"
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Received:
    """An answer, received as a whole."""

    status: int
    kind: str
    charset: str
    link: str
    date: str
    body: bytes


# How addresses for the sql adapter begin.
_DATABASES = ("postgres", "mysql", "mariadb", "mssql", "sqlite")


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

    Once it is closed nothing more is sent. What is under way ends as BackendUnavailable, or as
    OutcomeUnknown where something was written.
    """

    def __init__(self, address: str, *, timeout: float) -> None:
        self._base = URL(address)
        self._timeout = timeout
        self._reads: aiohttp.ClientSession | None = None
        self._writes: aiohttp.ClientSession | None = None
        self._arriving: set[aiohttp.StreamReader] = set()
        self._is_closed = False

    async def read(self, request: Request, headers: Mapping[str, str]) -> Received:
        """Returns the answer; a GET whose connection fails is sent once more."""
        with self._translated(request.label, unsure=False) as sent:
            self._reads = self._reads or connections(force_close=False)
            send = partial(self._send, self._reads, request, headers, self._timeout, sent)
            try:
                return await send()
            except _BROKEN:
                if request.method != "GET":
                    raise
            self._must_be_open(request.label)
            return await send()

    async def write(
        self, request: Request, headers: Mapping[str, str], patience: float
    ) -> Received:
        """Sends a request at most once. Raises OutcomeUnknown where it went and no answer came."""
        with self._translated(request.label, unsure=True) as sent:
            self._writes = self._writes or connections(force_close=True)
            return await self._send(self._writes, request, headers, patience, sent)

    async def aclose(self) -> None:
        """Closes every connection, for good."""
        self._is_closed = True
        for session in (self._reads, self._writes):
            if session is not None:
                await session.close()
        for content in self._arriving:  # closing does not wake their readers
            content.set_exception(aiohttp.ServerDisconnectedError())

    def _must_be_open(self, label: str) -> None:
        if self._is_closed:
            raise BackendUnavailable(f"{label}: {CLOSED}")

    @contextmanager
    def _translated(self, label: str, *, unsure: bool) -> Iterator[SimpleNamespace]:
        """Raises aiohttp's errors as ours; with `unsure`, what was sent is OutcomeUnknown."""
        self._must_be_open(label)
        sent = SimpleNamespace(yes=False)
        try:
            yield sent
        except AdapterError as error:
            if unsure:
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
        """Returns the target of a link in an answer. Raises BackendNonsense for one elsewhere."""
        home = self._base.raw_path.rstrip("/") + "/"
        named = f"{request.label}: the link to the next page"
        try:
            url = self._url(request).join(URL(link))
            same = url.origin() == self._base.origin() and not url.fragment
        except ValueError as error:
            raise BackendNonsense(f"{named} is no address") from error
        if not same or not url.raw_path.startswith(home):
            raise BackendNonsense(f"{named} leads elsewhere")
        return url.raw_path_qs.removeprefix(home.removesuffix("/"))

    def _url(self, request: Request) -> URL:
        path, _, query = request.target.partition("?")
        path = self._base.raw_path.rstrip("/") + path
        return URL.build(  # of parts, so that no target names another host
            scheme=self._base.scheme,
            authority=self._base.raw_authority,
            path=path,
            query_string=query,
            encoded=True,
        )

    async def _send(
        self,
        session: aiohttp.ClientSession,
        request: Request,
        headers: Mapping[str, str],
        patience: float,
        sent: SimpleNamespace,
    ) -> Received:
        kind = {} if request.body is None else {"Content-Type": "application/json"}
        traceparent = CALL_NOTES.get().traceparent
        trace = {"traceparent": traceparent} if traceparent else {}
        async with session.request(
            request.method,
            self._url(request),
            data=request.body,
            headers={**OWN_HEADERS, **kind, **trace, **headers},
            allow_redirects=False,
            # not `connect`: it would bound the wait for a connection in use too
            timeout=aiohttp.ClientTimeout(
                total=patience, sock_connect=CONNECT_PATIENCE, sock_read=patience
            ),
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


async def _received(response: aiohttp.ClientResponse, label: str) -> Received:
    if 300 <= response.status < 400:
        raise BackendNonsense(f"{label}: it sends us elsewhere ({response.status})")
    headers = response.headers
    if headers.get("Content-Encoding", "identity").lower() != "identity":
        raise BackendNonsense(f"{label}: the answer is compressed, which was not asked for")
    chunked = "chunked" in headers.get("Transfer-Encoding", "").lower()
    if not chunked and "Content-Length" not in headers and response.status != 204:
        raise BackendNonsense(f"{label}: the answer has no length, so it may be cut off")
    body = bytearray()
    async for chunk in response.content.iter_chunked(CHUNK):
        body += chunk
        if len(body) > LARGEST:
            raise BackendNonsense(f"{label}: the answer is larger than {LARGEST // 1024**2} MiB")
    charset, link = (response.charset or "utf-8").lower(), headers.get("Link", "")
    date, status = headers.get("Date", ""), response.status
    return Received(status, response.content_type, charset, link, date, bytes(body))


def _translation(error: Exception) -> tuple[type[AdapterError], str]:
    if isinstance(error, TimeoutError):
        return base.BackendTimeout, "no answer in time"
    is_broken = isinstance(error, (*_BROKEN, OSError))
    kind = BackendUnavailable if is_broken else BackendNonsense
    name = type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorError):
        why = reason(error) or f"the connection failed ({name})"
        return kind, f"it cannot be reached: {why}; see backend.url"
    return kind, f"the answer cannot be used ({name})"
