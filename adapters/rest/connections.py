"""Connections to the backend: none that is dead, kept too long, or was spoken on unasked."""

import socket
from types import SimpleNamespace
from typing import Any

import aiohttp

CONNECTIONS = 20
KEPT_ALIVE = 5.0
LOST_AFTER = 5_000  # milliseconds without a sign of life from the other side


class _Connector(aiohttp.TCPConnector):
    """Takes no connection on which something came unasked: it would pass for the next answer."""

    async def _get(self, key: Any, traces: Any) -> Any:
        while (kept := await super()._get(key, traces)) is not None:
            if kept.protocol is not None and not kept.protocol.should_close:
                break
            kept.close()
        return kept


def connections(*, force_close: bool) -> aiohttp.ClientSession:
    """Pooled connections, or with `force_close` a new one for each request."""
    trace = aiohttp.TraceConfig()
    trace.on_request_headers_sent.append(_note_sent)
    session = aiohttp.ClientSession(
        connector=_Connector(
            limit=CONNECTIONS,
            limit_per_host=CONNECTIONS,
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
    # it would send a GET again by itself, beside our own once more
    session._retry_connection = False  # noqa: SLF001 - there is no public way
    return session


def _socket(address: Any) -> socket.socket:
    """A socket that notices a peer who is gone without a word."""
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LOST_AFTER)
    return made


async def _note_sent(_: object, context: SimpleNamespace, __: object) -> None:
    context.trace_request_ctx.yes = True
