"""Lets connections in, one by one: counted before anything is spent on them, TLS included."""

import asyncio
import socket
from collections.abc import Callable
from errno import EINVAL
from ssl import SSLContext
from typing import cast

from aiohttp import web

from gateway.web.connections import KEEP_ALIVE, Connection
from gateway.web.overflow import Overflow
from gateway.web.server import BACKLOG, Listener

# So many come in before whoever is inside is looked after again.
AT_ONCE = 16
# Seconds without accepting, where the machine has no more files or memory to give.
PAUSE = 1.0
# Seconds that a handshake may take, and the farewell.
HANDSHAKE, FAREWELL = KEEP_ALIVE, 5.0
# Seconds in which those have to be inside who came before nobody else is let in.
LAST_WELCOMES = 1.0
# Seconds for which the other end may leave unanswered what was sent, its window being shut.
UNANSWERED = 10.0
# Why a connection was closed.
TLS = "tls"


class Acceptor(web.BaseSite):
    """A listening socket whose connections are let in by the doorman of the runner's listener.

    `certificate` gives the context of each handshake; without one, callers speak plainly. The
    socket may be shared with other processes: who comes too late finds nobody there.
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
        self._certificate = certificate
        self._overflow = Overflow()
        self._welcomes: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None

    @property
    def name(self) -> str:
        host, port, *_ = self._socket.getsockname()
        return f"{'https' if self._certificate else 'http'}://{host}:{port}"

    async def start(self) -> None:
        await super().start()
        self._socket.setblocking(False)
        set_patience(self._socket)
        self._loop.add_reader(self._socket, self._accept)

    async def stop(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self._overflow.close()
        # who came in before gets an answer; a handshake may take longer than that is worth
        if self._welcomes:
            await asyncio.wait(self._welcomes, timeout=LAST_WELCOMES)
        for each in self._welcomes:
            each.cancel()
        await super().stop()

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                line, peer = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno == EINVAL:  # the gateway's end: nobody listens any more
                    self._loop.remove_reader(self._socket)
                else:
                    self._rest()
                return
            self._meet(line, str(peer[0]))

    def _rest(self) -> None:
        """Whoever waits goes on waiting: to ask at once again would only cost."""
        self._listener.entrance.told("files")
        self._loop.remove_reader(self._socket)
        self._pause = self._loop.call_later(
            PAUSE, self._loop.add_reader, self._socket, self._accept
        )

    def _meet(self, line: socket.socket, address: str) -> None:
        guest = self._listener.meet(address)
        if not self._listener.entrance.doorman.admit(guest, address):
            self._turn_away(line)
            return
        task = self._loop.create_task(self._welcome(guest, line))
        self._welcomes.add(task)
        task.add_done_callback(self._welcomes.discard)

    def _turn_away(self, line: socket.socket) -> None:
        """Over TLS it gets no answer: that would take a handshake, which costs more than a call."""
        if self._certificate is None:
            self._overflow.turn_away(line)
        else:
            line.close()

    async def _welcome(self, guest: Connection, line: socket.socket) -> None:
        context = None if self._certificate is None else self._certificate()
        if context is not None:
            guest.welcome = asyncio.current_task()
        try:
            await self._loop.connect_accepted_socket(
                lambda: guest,
                line,
                ssl=context,
                ssl_handshake_timeout=HANDSHAKE if context else None,
                ssl_shutdown_timeout=FAREWELL if context else None,
            )
        except OSError:  # a handshake that failed, or took too long
            self._listener.entrance.told(TLS)
        finally:
            if guest.transport is None:
                self._listener.entrance.doorman.leave(guest)


def set_patience(listening: socket.socket) -> None:
    """Give up callers who are gone without a word; what is accepted inherits it."""
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", 30),
        ("TCP_KEEPINTVL", 10),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", int(UNANSWERED * 1000)),
    ):
        if hasattr(socket, name):  # not every system has them all
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
