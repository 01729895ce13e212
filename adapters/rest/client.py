"""One request to the backend, and its answer as bytes: nothing is followed, kept, or unpacked.

aiohttp's defaults suit a browser's work. Here no redirect is followed, no cookie kept, nothing read
from the environment, nothing decompressed, and an answer is cut off where it grows too large. Reads
share pooled connections; what writes gets a connection of its own, that nobody has used before.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson
from yarl import URL

from adapters.asking import ASKING
from adapters.base import (
    AdapterError,
    BackendNonsense,
    BackendTimeout,
    BackendUnavailable,
    OutcomeUnknown,
)
from adapters.rest.connections import connections
from adapters.wrappers.unreachable import reason

LARGEST = 2 * 1024 * 1024
CHUNK = 64 * 1024
CONNECT_PATIENCE = 1.0
OWN_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": "clinic-gateway",
}
CLOSED = "the gateway has closed its connections"
_BROKEN = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is sent. `label` names it in errors: it holds no value."""

    label: str
    method: str
    parts: tuple[str, ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    body: Any = None
    sends_body: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What came back, whole."""

    status: int
    kind: str
    charset: str
    link: str
    date: str
    body: bytes


# How the addresses begin that are for the sql adapter.
_DATABASES = ("postgres", "mysql", "mariadb", "mssql", "sqlite")


def address_problem(url: str) -> str | None:
    """Why an address is none of a backend's; None where it is one."""
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
    """Sends requests to one backend. `timeout` bounds each in seconds.

    Once it is closed nothing more is sent, and what is under way ends as BackendUnavailable, or as
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
        """The answer; a GET whose connection fails is sent once more."""
        self._must_be_open(request)
        if self._reads is None:
            self._reads = connections(force_close=False)
        sent = SimpleNamespace(yes=False)
        with self._translated(request.label, sent, unsure=False):
            try:
                return await self._send(self._reads, request, headers, self._timeout, sent)
            except _BROKEN:
                if request.method != "GET":
                    raise
            self._must_be_open(request)
            return await self._send(self._reads, request, headers, self._timeout, sent)

    async def write(
        self, request: Request, headers: Mapping[str, str], patience: float
    ) -> Received:
        """The answer to what is sent at most once; OutcomeUnknown where it went and none came."""
        self._must_be_open(request)
        if self._writes is None:
            self._writes = connections(force_close=True)
        sent = SimpleNamespace(yes=False)
        with self._translated(request.label, sent, unsure=True):
            return await self._send(self._writes, request, headers, patience, sent)

    async def aclose(self) -> None:
        """Close every connection, for good."""
        self._is_closed = True
        for session in (self._reads, self._writes):
            if session is not None:
                await session.close()
        for content in self._arriving:  # the library forgets who reads them
            content.set_exception(aiohttp.ServerDisconnectedError())

    def _must_be_open(self, request: Request) -> None:
        if self._is_closed:
            raise BackendUnavailable(f"{request.label}: {CLOSED}")

    @contextmanager
    def _translated(self, label: str, sent: SimpleNamespace, *, unsure: bool) -> Iterator[None]:
        """The library's errors in ours; where `unsure`, what was sent has an unknown end."""
        try:
            yield
        except AdapterError as error:
            if unsure:
                raise OutcomeUnknown(str(error)) from error
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if not self._is_closed or task is None or task.cancelling():
                raise
            # nobody gives it up: it waited for a connection, and there will be none
            raise BackendUnavailable(f"{label}: {CLOSED}") from error
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            said = f"{label}: {CLOSED if self._is_closed else _said(error)}"
            if unsure:
                kind: type[AdapterError] = OutcomeUnknown if sent.yes else BackendUnavailable
            else:
                kind = BackendUnavailable if self._is_closed else _kind(error)
            raise kind(said) from error

    def behind(self, link: str, request: Request) -> str:
        """A link that stands in the answer to a request, as a path behind the address.

        BackendNonsense for one that leads away from the address.
        """
        home = self._base.raw_path.rstrip("/") + "/"
        try:
            url = self._url(request).join(URL(link))
            same = url.origin() == self._base.origin() and not url.fragment
        except ValueError as error:
            said = "the link to the next page is no address"
            raise BackendNonsense(f"{request.label}: {said}") from error
        if not same or not url.raw_path.startswith(home):
            raise BackendNonsense(f"{request.label}: the link to the next page leads elsewhere")
        return url.raw_path_qs.removeprefix(home.removesuffix("/"))

    def linked(self, behind: str, label: str) -> Request:
        """The request of such a path."""
        path, _, query = behind.partition("?")
        parts = tuple(URL.build(path=each, encoded=True).path for each in path.split("/")[1:])
        given = tuple(URL.build(query_string=query, encoded=True).query.items())
        return Request(label=label, method="GET", parts=parts, query=given)

    def _url(self, request: Request) -> URL:
        # each part is quoted by itself: a slash or a ? in an id stays within it
        parts = "/".join(quote(part, safe="") for part in request.parts)
        path = f"{self._base.raw_path.rstrip('/')}/{parts}"
        return self._base.with_path(path, encoded=True).with_query(list(request.query) or None)

    async def _send(
        self,
        session: aiohttp.ClientSession,
        request: Request,
        headers: Mapping[str, str],
        patience: float,
        sent: SimpleNamespace,
    ) -> Received:
        data = orjson.dumps(request.body) if request.sends_body else None
        kind = {"Content-Type": "application/json"} if request.sends_body else {}
        traceparent = ASKING.get().traceparent
        trace = {"traceparent": traceparent} if traceparent else {}
        async with session.request(
            request.method,
            self._url(request),
            data=data,
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
    return Received(
        status=response.status,
        kind=response.content_type,
        charset=(response.charset or "utf-8").lower(),
        link=headers.get("Link", ""),
        date=headers.get("Date", ""),
        body=await _body(response, label),
    )


async def _body(response: aiohttp.ClientResponse, label: str) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(CHUNK):
        body += chunk
        if len(body) > LARGEST:
            raise BackendNonsense(f"{label}: the answer is larger than {LARGEST // 1024**2} MiB")
    return bytes(body)


def _kind(error: Exception) -> type[AdapterError]:
    if isinstance(error, TimeoutError):
        return BackendTimeout
    return BackendUnavailable if isinstance(error, (*_BROKEN, OSError)) else BackendNonsense


def _said(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientConnectorError):
        why = reason(error) or f"the connection failed ({type(error).__name__})"
        return f"it cannot be reached: {why}; see backend.url"
    return f"the answer cannot be used ({type(error).__name__})"
