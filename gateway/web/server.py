"""Listens and accepts connections; aiohttp's own refusals come out in the gateway's shape."""

import asyncio
import errno
import os
import socket
import sys
from asyncio import sslproto
from collections.abc import Awaitable, Callable
from ssl import SSLContext
from typing import Any, cast

from aiohttp import StreamReader, http_parser, web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler
from yarl import URL

from gateway.contract.errors import GatewayError, HeadersTooLarge, InternalError, NotARequest
from gateway.settings import StartRefused
from gateway.web.connection import (
    MOST_REQUESTS,
    TAKEN_AT_ONCE,
    BoundedReader,
    Connection,
    MoreBlanks,
    Refuse,
    TakePlain,
)
from gateway.web.connection_limiter import ConnectionLimiter, Overflow
from gateway.web.front import Front
from gateway.web.observers import Observers
from gateway.web.replies import RawResponse, Replies
from gateway.web.tls import TlsProtocol

BACKLOG = 1024
# The parser has no class of its own for this.
_TOO_MANY = ("Too many headers received",)
# Connections that are accepted before the event loop turns again.
AT_ONCE = 16
# Seconds without accepting, where the machine has no more files or memory to give.
PAUSE = 1.0
# Seconds that the last handshakes have once the listener stops.
LAST_WELCOMES = 1.0
# Seconds for which the other end may leave sent data unacknowledged, or its window shut.
UNANSWERED = 10.0


class Listener(web.Server):
    """Makes a Connection for each caller; `handler` answers requests, as `make` builds them.

    `take` answers plain requests before they become such, where it is given.
    """

    def __init__(
        self,
        handler: Callable[[Any], Awaitable[web.StreamResponse]],
        refuse: Refuse,
        limiter: ConnectionLimiter,
        make: Callable[..., web.BaseRequest] | None = None,
        take: TakePlain | None = None,
    ) -> None:
        super().__init__(handler)
        self._take = take
        self._make = make or super()._make_request
        self._answer_instead = refuse
        self.limiter = limiter

    def meet(self, address: str) -> Connection:
        """Returns a connection from that address, which has no transport yet."""
        limit, leave = self.limiter.write_limit, self.limiter.leave
        is_proxy = self.limiter.proxies.trusts(address)
        return Connection(
            self, self._answer_instead, limit, leave, address, is_proxy=is_proxy, take=self._take
        )

    def _make_request(
        self, message: Any, payload: StreamReader, protocol: RequestHandler, *rest: Any
    ) -> web.BaseRequest:
        """Returns the request; with the path / where the host of its target cannot be decoded.

        The connection closes after it where the end of its body is not known beforehand.
        """
        ends = message.chunked or message.upgrade
        if ends or protocol._request_count >= MOST_REQUESTS:  # noqa: SLF001 - aiohttp's own
            message = message._replace(should_close=True)
        try:
            return self._make(message, payload, protocol, *rest)
        except ValueError:
            message = message._replace(url=URL("/"))
            return self._make(message, payload, protocol, *rest)


class AppRunner(web.AppRunner):
    """Runs an application behind a Listener instead of aiohttp's own server."""

    def __init__(
        self, app: web.Application, refuse: Refuse, limiter: ConnectionLimiter, *, end: float
    ):
        super().__init__(app, handle_signals=False, shutdown_timeout=end)
        self._refuse = refuse
        self._limiter = limiter

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        return Listener(server.request_handler, self._refuse, self._limiter, server.request_factory)


def public_server(
    front: Front, replies: Replies, observers: Observers, limiter: ConnectionLimiter
) -> Listener:
    """Returns the listener that partners call."""

    def refuse(error: BaseException | None, status: int) -> RawResponse:
        refusal = refusal_of(error, status)
        # what was sent stays out of every log
        observers.metrics.count("", refusal.status, 0.0)
        observers.events.report("not_a_request", kind=type(error).__name__)
        return replies.error(front.request_id(None), refusal, close=True)

    return Listener(front, refuse, limiter, take=front.take)


def refusal_of(error: BaseException | None, status: int) -> GatewayError:
    """Returns the error that is answered instead of aiohttp's own text."""
    if isinstance(error, MoreBlanks):
        return NotARequest("request", "must have one blank between method, target and version")
    if isinstance(error, LineTooLong) or (error is not None and error.args == _TOO_MANY):
        return HeadersTooLarge()
    return NotARequest() if status < 500 else InternalError()


def check_runtime() -> None:
    """Raises StartRefused where Python or aiohttp run in a way that is not safe to serve in."""
    for name in ("AIOHTTP_NO_EXTENSIONS", "PYTHONASYNCIODEBUG", "PYTHONDEVMODE"):
        if os.environ.get(name):
            raise StartRefused(
                f"{name} is set: it weakens the server or puts tracebacks into answers; unset it"
            )
    if sys.flags.dev_mode:
        raise StartRefused("-X dev puts tracebacks into answers: leave it out")
    if http_parser.HttpRequestParser.__module__ != "aiohttp._http_parser":
        raise StartRefused(
            "aiohttp is installed without its C parser; install a binary wheel of aiohttp"
        )
    if not hasattr(sslproto.SSLProtocol, "max_size"):
        raise StartRefused(
            "this Python's asyncio cannot be told how much to read at once; use the Python of the"
            " image, or an earlier one"
        )


def bind(host: str, port: int, setting: str) -> socket.socket:
    """Returns a listening socket; raises StartRefused, with the setting's name, where it fails."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, TypeError) as error:
        # the operating system says why; the resolver too, with numbers below zero
        if isinstance(error, TypeError):  # a name that cannot even be asked for
            reason = "that is no host's name"
        elif error.errno and error.errno > 0:
            reason = os.strerror(error.errno).lower()
        else:
            reason = str(error.strerror or error).partition(" (while ")[0].lower()
        is_taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        raise StartRefused(
            f"{setting}: cannot listen on {host} port {port}: {reason};"
            f" {'free it or ' if is_taken else ''}choose another address",
            setting,
        ) from error


class Acceptor(web.BaseSite):
    """A listening socket whose connections are let in by the limiter of the runner's listener.

    `certificate` gives the context of each handshake. Without it there is no TLS. The socket may
    be shared with other processes, of which one accepts each caller.
    """

    def __init__(
        self,
        runner: web.ServerRunner | web.AppRunner,
        listening: socket.socket,
        certificate: Callable[[], SSLContext] | None = None,
    ) -> None:
        super().__init__(runner, backlog=BACKLOG)
        self._loop = asyncio.get_running_loop()
        self._socket = listening
        self._listener = cast(Listener, runner.server)
        self._limiter = self._listener.limiter
        self._certificate = certificate
        self._overflow = Overflow()
        self._buffer = memoryview(bytearray(TAKEN_AT_ONCE))
        self._welcomes: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None

    @property
    def name(self) -> str:
        host, port, *_ = self._socket.getsockname()
        return f"{'https' if self._certificate else 'http'}://{host}:{port}"

    async def start(self) -> None:
        await super().start()
        self._socket.setblocking(False)
        # callers who vanish are given up; accepted sockets inherit these options
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (
            ("TCP_KEEPIDLE", 30),
            ("TCP_KEEPINTVL", 10),
            ("TCP_KEEPCNT", 3),
            ("TCP_USER_TIMEOUT", int(UNANSWERED * 1000)),
        ):
            if hasattr(socket, name):  # not every system has all of them
                self._socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self._loop.add_reader(self._socket, self._accept)

    async def stop(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self._overflow.close()
        # who was accepted gets an answer, unless the handshake takes too long
        if self._welcomes:
            await asyncio.wait(self._welcomes, timeout=LAST_WELCOMES)
        for welcome in self._welcomes:
            welcome.cancel()
        await super().stop()

    def _accept(self) -> None:
        loop = self._loop
        for _ in range(AT_ONCE):
            try:
                line, peer = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno == errno.EINVAL:  # the gateway ends: the socket listens no more
                    loop.remove_reader(self._socket)
                    return
                # callers wait meanwhile: to try again at once would fail again
                self._limiter.on_refusal("files")
                loop.remove_reader(self._socket)
                self._pause = loop.call_later(PAUSE, loop.add_reader, self._socket, self._accept)
                return
            self._meet(line, str(peer[0]))

    def _meet(self, line: socket.socket, address: str) -> None:
        connection = self._listener.meet(address)
        if not self._limiter.admit(connection, address):
            if self._certificate is None:
                self._overflow.turn_away(line)
            else:  # an answer takes a handshake, which costs more than a call
                line.close()
            return
        task = self._loop.create_task(self._welcome(connection, line))
        self._welcomes.add(task)
        task.add_done_callback(self._welcomes.discard)

    async def _welcome(self, connection: Connection, line: socket.socket) -> None:
        try:
            if self._certificate is None:
                reader = BoundedReader(connection, self._buffer)
                await self._loop.connect_accepted_socket(lambda: reader, line)
            else:
                connection.welcome = asyncio.current_task()
                await self._shake_hands(connection, line, self._certificate())
        except OSError:  # a handshake that failed, or took too long
            self._limiter.on_refusal("tls")
        finally:
            if connection.transport is None:
                self._limiter.leave(connection)

    async def _shake_hands(
        self, connection: Connection, line: socket.socket, context: SSLContext
    ) -> None:
        done = self._loop.create_future()
        tls = TlsProtocol(connection, context, done)
        transport, _ = await self._loop.connect_accepted_socket(lambda: tls, line)
        try:
            await done
        except BaseException:
            transport.abort()
            raise
