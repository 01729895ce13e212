"""Reads by GET over connections that are kept open, with little work for each answer.

The parser is llhttp, by httptools; no leniency of it is set. It refuses two lengths, a length
beside chunks, signs and blanks in numbers, folded lines, bare CR or LF, and control characters. It
has no bounds, takes other protocols and versions for HTTP, takes every transfer coding, and reads
to the end of the connection where there is no length: all these are checked here. After an answer
it would read another one, which nobody asked for; that closes the connection.
"""

import asyncio
import math
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from email.message import EmailMessage
from email.policy import HTTP
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from yarl import URL

from adapters.base import AdapterError, BackendNonsense, BackendUnavailable

LARGEST = 2 * 1024 * 1024
LARGEST_HEAD = 16 * 1024
# Bytes of an answer with all that frames it: chunks may be small, but not all of them empty talk.
LARGEST_IN_ALL = 4 * LARGEST
# Answers before the answer (1xx).
MOST_INTERIM = 100
CONNECT_PATIENCE = 1.0
KEPT_ALIVE = 5.0
LOST_AFTER = 5_000  # milliseconds without a sign of life from the other side
# Seconds for which the addresses of a host name count.
FOUND_FOR = 10.0
BROKEN = "the connection broke before the answer came"
CLOSED = "the gateway has closed its connections"
TOO_LARGE = f"the answer is larger than {LARGEST // 1024**2} MiB"
NO_LENGTH = "the answer has no length, so it may be cut off"
COMPRESSED = "the answer is compressed, which was not asked for"


class Received(NamedTuple):
    """An answer, received as a whole; the names of its `headers` are in lower case."""

    status: int
    kind: str
    charset: str
    link: str
    date: str
    body: bytes
    headers: Mapping[bytes, bytes] = MappingProxyType({})


class Broken(BackendUnavailable):
    """The connection broke before a byte of the answer came."""


def opened_socket(address: Any) -> socket.socket:
    """Opens a socket that notices a peer who is gone without a word."""
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LOST_AFTER)
    return made


@lru_cache(64)
def _kind(header: bytes) -> tuple[str, str]:
    """Returns the media type that a Content-Type names, and its charset, in lower case."""
    message = EmailMessage(policy=HTTP)
    message["Content-Type"] = header.decode("latin-1")
    charset: str = message["Content-Type"].params.get("charset") or "utf-8"
    return message.get_content_type(), charset.lower()


def _fault(status: int, version: str, headers: Mapping[bytes, bytes]) -> str | None:
    """Returns why an answer with that head is not read on; None where it is."""
    if version not in ("1.1", "1.0"):
        return "the answer is in another version of HTTP"
    if 300 <= status < 400:
        return f"it sends us elsewhere ({status})"
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        return COMPRESSED
    coding, length = headers.get(b"transfer-encoding"), headers.get(b"content-length")
    if coding is not None:
        return None if coding.lower() == b"chunked" else NO_LENGTH
    if length is None:
        return None if status == 204 else NO_LENGTH
    return TOO_LARGE if int(length) > LARGEST else None


class ReaderConnection(asyncio.Protocol):
    """A connection of a reader. It has one request under way at most."""

    _transport: asyncio.Transport

    def __init__(self, reader: "Reader") -> None:
        self._reader, self._parser = reader, HttpResponseParser(self)
        self._waiter: asyncio.Future[Received] | None = None
        self.idle_since, self.is_reusable = 0.0, False

    def send(self, head: bytes, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Received]:
        """Sends a request, and returns what its answer will be set in."""
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._answer: Received | None = None
        self._fault: str | None = None
        self._size = self._taken = self._interim = 0
        self._in_head, self.is_reusable = True, False
        self._waiter = waiter = loop.create_future()
        if self in self._reader.open:
            self._transport.write(head)
        else:
            waiter.set_exception(Broken(BROKEN))
        return waiter

    def end(self, error: AdapterError) -> None:
        """Closes the connection at once; who waits for an answer gets the error."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
        self.close()

    def close(self) -> None:
        self.is_reusable, waiter = False, self._waiter
        if waiter is not None and waiter.done() and not waiter.cancelled():
            waiter.exception()  # who waited may have left at that moment
        self._reader.forget(self)
        self._transport.abort()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._reader.open.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        if self._waiter is None or self._waiter.done():
            self.close()
        elif not self._taken:
            self.end(Broken(BROKEN))
        elif self._in_head:
            self.end(BackendUnavailable("the connection broke within the head of the answer"))
        else:
            self.end(BackendNonsense("the answer is cut off"))

    def data_received(self, data: bytes) -> None:
        """Reads on in the answer. What nobody asked for closes the connection."""
        waiter = self._waiter
        if waiter is None or waiter.done():
            self.close()
            return
        room = LARGEST_HEAD - self._taken
        if self._in_head and len(data) > room:
            self._read(data[:room])
            data = data[room:]
        if self._answer is None and self._fault is None:
            self._read(data)
        elif data:
            self.is_reusable = False
        if self._fault is not None:
            self.end(BackendNonsense(self._fault))
        elif self._answer is not None:
            waiter.set_result(self._answer)

    def _read(self, data: bytes) -> None:
        """Sets `_answer` once it is whole, or `_fault` where it cannot be used."""
        if not self._taken and data[:1] != b"H":
            self._fault = "the answer is not HTTP"
            return
        self._taken += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            # also for what stands behind an answer: its length may be wrong
            self._fault = self._fault or f"the answer cannot be used ({type(error).__name__})"
        if self._in_head and self._taken >= LARGEST_HEAD:
            self._fault = f"the head of the answer is larger than {LARGEST_HEAD // 1024} KiB"
        elif self._size > LARGEST or self._taken > LARGEST_IN_ALL:
            self._fault = TOO_LARGE

    # what the parser calls

    def on_message_begin(self) -> None:
        if self._answer is not None:
            self.is_reusable = False
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # else it is a trailer
            name, value = name.lower(), value.strip()
            known = self._headers.get(name)
            self._headers[name] = value if known is None else b"%b, %b" % (known, value)

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            self._interim += 1
            if self._interim > MOST_INTERIM:
                self._fault = "the answer does not begin"
        elif self._in_head:
            self._in_head = False
            self._fault = _fault(status, self._parser.get_http_version(), self._headers)

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._in_head or self._fault is not None or self._answer is not None:
            return
        headers, parser = self._headers, self._parser
        kind, charset = _kind(headers.get(b"content-type", b""))
        link = headers.get(b"link", b"").decode(errors="replace")
        date = headers.get(b"date", b"").decode(errors="replace")
        body, self.is_reusable = b"".join(self._body), parser.should_keep_alive()
        status = parser.get_status_code()
        self._answer = Received(status, kind, charset, link, date, body, headers)


class Reader:
    """Keeps connections to one host, and asks it. Whoever calls bounds how many ask at once."""

    def __init__(self, address: URL) -> None:
        self._host, self._port = address.raw_host or "", address.port
        self._tls = ssl.create_default_context() if address.scheme == "https" else None
        self.open: set[ReaderConnection] = set()
        # those that nobody uses; the one that was used last is taken first
        self._idle: list[ReaderConnection] = []
        self._sweeper: asyncio.TimerHandle | None = None
        self._connecting: set[asyncio.Task[ReaderConnection]] = set()
        # what the host name leads to; an address leads to itself, without asking
        self._found, self._found_until = _numbers(self._host, self._port), 0.0
        if self._found:
            self._found_until = math.inf
        self._looking: asyncio.Task[None] | None = None
        self._is_closed = False

    async def get(self, head: bytes) -> Received:
        """Returns the answer to a request of that head.

        It is sent once more only where a connection that was kept broke before any answer. Raises
        AdapterErrors, and OSError or TimeoutError where there is no connection in time.
        """
        loop = asyncio.get_running_loop()
        if self._idle:
            try:
                return await self._asked(self._idle.pop(), head, loop)
            except Broken:
                for connection in list(self._idle):  # they are as old
                    connection.close()
        return await self._asked(await self._connected(loop), head, loop)

    async def _asked(
        self, connection: ReaderConnection, head: bytes, loop: asyncio.AbstractEventLoop
    ) -> Received:
        try:
            received = await connection.send(head, loop)
        except BaseException:
            connection.close()
            raise
        if not connection.is_reusable:
            connection.close()
            return received
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._sweeper is None:
            self._sweeper = loop.call_later(KEPT_ALIVE, self._sweep)
        return received

    def keep(self, most: int) -> None:
        """Closes idle connections, oldest first, until no more than so many are left."""
        for connection in self._idle[: max(0, len(self._idle) - most)]:
            connection.close()

    def forget(self, connection: ReaderConnection) -> None:
        self.open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    async def aclose(self) -> None:
        """Closes every connection, for good; what is under way is BackendUnavailable."""
        self._is_closed = True
        for task in (*self._connecting, self._looking):
            if task is not None:
                task.cancel()
        for connection in list(self.open):
            connection.end(BackendUnavailable(CLOSED))
        if self._sweeper is not None:
            self._sweeper.cancel()
        await asyncio.sleep(0)  # in which their sockets are closed

    def _sweep(self) -> None:
        """Closes what was idle for too long, and looks again when the next one will be."""
        loop, self._sweeper = asyncio.get_running_loop(), None
        for connection in list(self._idle):
            until = connection.idle_since + KEPT_ALIVE
            if until > loop.time():
                self._sweeper = loop.call_at(until, self._sweep)
                break
            connection.close()

    async def _connected(self, loop: asyncio.AbstractEventLoop) -> ReaderConnection:
        """Returns a new connection. Raises OSError where there is none, or none in time."""
        task = loop.create_task(self._connect(loop))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        try:
            return await task
        except asyncio.CancelledError as error:
            if task.done() and not task.cancelled() and task.exception() is None:
                task.result().close()
            caller = asyncio.current_task()
            if self._is_closed and caller is not None and not caller.cancelling():
                raise BackendUnavailable(CLOSED) from error
            raise

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> ReaderConnection:
        if self._is_closed:
            raise BackendUnavailable(CLOSED)
        if loop.time() >= self._found_until:
            await self._looked_up(loop)
        async with asyncio.timeout(CONNECT_PATIENCE):
            taken = await _first_that_answers(loop, self._found)
            try:
                # no certificate has the dot that may end a name
                name = None if self._tls is None else self._host.rstrip(".")
                _, connection = await loop.create_connection(
                    lambda: ReaderConnection(self), sock=taken, ssl=self._tls, server_hostname=name
                )
            except BaseException:
                taken.close()
                raise
        return connection

    async def _looked_up(self, loop: asyncio.AbstractEventLoop) -> None:
        """Waits for the look-up of the host name, one for all: each blocks a thread to its end."""
        if self._looking is None or self._looking.done():
            self._looking = loop.create_task(self._look_up(loop))
            self._looking.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        await asyncio.shield(self._looking)

    async def _look_up(self, loop: asyncio.AbstractEventLoop) -> None:
        self._found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        self._found_until = loop.time() + FOUND_FOR


def _numbers(host: str, port: int | None) -> Sequence[Any]:
    """Returns the address that the host's text is; none for a name."""
    with suppress(socket.gaierror):
        kind, numeric = socket.SOCK_STREAM, socket.AI_NUMERICHOST
        return socket.getaddrinfo(host, port, type=kind, flags=numeric)
    return ()


async def _first_that_answers(
    loop: asyncio.AbstractEventLoop, addresses: Sequence[Any]
) -> socket.socket:
    """Returns a socket connected to the first address that answers; each has its share of time."""
    failed: OSError | None = None
    until = loop.time() + CONNECT_PATIENCE
    for number, address in enumerate(addresses):
        share = (until - loop.time()) / (len(addresses) - number)
        try:
            tried = opened_socket(address)
        except OSError as error:  # as for IPv6 where this machine has none
            failed = error
            continue
        try:
            async with asyncio.timeout(share):
                await loop.sock_connect(tried, address[4])
        except BaseException as error:
            tried.close()
            if not isinstance(error, OSError):
                raise
            failed = error
        else:
            return tried
    raise failed or OSError("its host name leads to no address")
