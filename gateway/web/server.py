"""The listeners' low-level servers: what aiohttp answers by itself comes out in our shape.

There is no web.Application: nothing here routes, renders or decodes twice.
"""

import errno
import os
import socket
import sys
from asyncio import selector_events, sslproto
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import StreamReader, http_parser, web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler
from yarl import URL

from gateway.contract.errors import GatewayError, HeadersTooLarge, InternalError, NotARequest
from gateway.settings import StartRefused
from gateway.web.connections import Connection, Refuse
from gateway.web.entrance import Entrance
from gateway.web.front import Front
from gateway.web.heads import MoreBlanks
from gateway.web.noting import Observers
from gateway.web.replies import Replies, Written

BACKLOG = 1024
# Requests that one connection may bring.
MOST_REQUESTS = 10_000
# The parser has no class of its own for this.
_TOO_MANY = ("Too many headers received",)
_FORBIDDEN = ("AIOHTTP_NO_EXTENSIONS", "PYTHONASYNCIODEBUG", "PYTHONDEVMODE")


class Listener(web.Server):
    """Makes a Connection for each caller; `handler` answers every request that could be read.

    `entrance` knows how many there may be, and who of them speaks for others; `make` gives requests
    of another class.
    """

    def __init__(
        self,
        handler: Callable[[Any], Awaitable[web.StreamResponse]],
        refuse: Refuse,
        entrance: Entrance,
        make: Callable[..., web.BaseRequest] | None = None,
    ) -> None:
        super().__init__(handler)
        self._make = make or super()._make_request
        self._answer_instead = refuse
        self.entrance = entrance

    def meet(self, address: str) -> Connection:
        """A connection from that address, which has no line yet."""
        entrance = self.entrance
        return Connection(
            self,
            self._answer_instead,
            entrance.unsent,
            entrance.doorman.leave,
            address,
            is_proxy=entrance.proxies.trusts(address),
        )

    def _make_request(
        self, message: Any, payload: StreamReader, protocol: RequestHandler, *rest: Any
    ) -> web.BaseRequest:
        """A target whose host cannot be decoded is kept as text, so that it gets an answer at all.

        Nothing may follow where nobody knows beforehand where the body ends.
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
    """Runs an application behind a Listener of ours, in the place of aiohttp's own server."""

    def __init__(self, app: web.Application, refuse: Refuse, entrance: Entrance, *, end: float):
        super().__init__(app, handle_signals=False, shutdown_timeout=end)
        self._refuse = refuse
        self._entrance = entrance

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return Listener(made.request_handler, self._refuse, self._entrance, made.request_factory)


class PublicServer(Listener):
    """Where partners call."""

    def __init__(
        self, front: Front, replies: Replies, observers: Observers, entrance: Entrance
    ) -> None:
        super().__init__(front, self._refuse, entrance)
        self._front = front
        self._replies = replies
        self._observers = observers

    def _refuse(self, error: BaseException | None, status: int) -> Written:
        refusal = refusal_of(error, status)
        self._observers.unparsed(refusal.status, type(error).__name__)
        return self._replies.error(self._front.request_id(None), refusal, close=True)


def refusal_of(error: BaseException | None, status: int) -> GatewayError:
    """What is told instead of aiohttp's own words."""
    if isinstance(error, MoreBlanks):
        return NotARequest("request", "must have one blank between method, target and version")
    if isinstance(error, LineTooLong) or (error is not None and error.args == _TOO_MANY):
        return HeadersTooLarge()
    return NotARequest() if status < 500 else InternalError()


def check_runtime() -> None:
    """StartRefused where Python or aiohttp run in a way that is not safe to serve in."""
    for name in _FORBIDDEN:
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
    plain: Any = selector_events
    kinds = plain._SelectorTransport, sslproto.SSLProtocol  # noqa: SLF001 - asyncio's own
    if not all(hasattr(each, "max_size") for each in kinds):
        raise StartRefused(
            "this Python's asyncio cannot be told how much to read at once; use the Python of the"
            " image, or an earlier one"
        )


def bind(host: str, port: int, setting: str) -> socket.socket:
    """A listening socket; StartRefused, with the setting's name, where it can't be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, TypeError) as error:
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        raise StartRefused(
            f"{setting}: cannot listen on {host} port {port}: {_reason(error)};"
            f" {'free it or ' if taken else ''}choose another address",
            setting,
        ) from error


def _reason(error: OSError | TypeError) -> str:
    """What the operating system or the resolver says, whose numbers are below zero."""
    if isinstance(error, TypeError):  # a name that cannot even be asked for
        return "that is no host's name"
    if error.errno and error.errno > 0:
        return os.strerror(error.errno).lower()
    return str(error.strerror or error).partition(" (while ")[0].lower()
