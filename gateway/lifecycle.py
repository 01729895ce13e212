"""Starts and stops the processes of a gateway: listeners, signals, and the order of an ending."""

import asyncio
import ctypes
import os
import resource
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from socket import socket
from typing import Any

from aiohttp import web

from adapters.base import Adapter, AdapterError
from adapters.documents.problems import DocumentErrors
from gateway.backend import BackendProbe
from gateway.contract.operations import BASE_PATH
from gateway.events import Events
from gateway.keys.ring import KeyRing
from gateway.keys.store import KeyStore
from gateway.policy.running.follower import Follower, Taker
from gateway.policy.running.keeper import Keeper
from gateway.processes.event_loop import running_loop
from gateway.processes.reports import Reporter
from gateway.settings import Settings, StartRefused
from gateway.store import Store
from gateway.usage import Usage
from gateway.web.front import Front
from gateway.web.server import Acceptor
from gateway.web.system import Readiness
from gateway.web.tls import Certificate

# Seconds for which a replaced worker keeps connections without a call: what a partner has just sent
# on one is answered, and the answer says that the connection ends.
LAST_CALLS = 2.0
_GLANCE = 0.05
_PR_SET_DUMPABLE = 4


def forbid_core_dumps() -> None:
    """Forbids core files of this process and its forks; raises StartRefused where it cannot.

    A crash must not write its memory, keys included. The limit keeps the kernel from writing a
    file. A program that collects cores ignores the limit, but gets none of a process that is not
    dumpable. Nor can others of the same account read the memory of such a process.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
            reason = os.strerror(ctypes.get_errno()).lower()
            raise StartRefused(
                f"core dumps cannot be turned off: {reason}; let the sandbox allow prctl"
            )


class Faults:
    """The handler of faults outside a call, of which the same may come with every connection."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._unsaid = 0
        self._said_at = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        """Reports a fault of the event loop, at most once a second."""
        self._unsaid += 1
        if loop.time() - self._said_at < 1.0:
            return
        error = context.get("exception") or RuntimeError(context["message"])
        self._events.report("fault_outside_call", error, times=self._unsaid)
        self._unsaid, self._said_at = 0, loop.time()


@dataclass(slots=True, kw_only=True)
class BoundListener:
    """An address that is taken, and what answers there once it is open."""

    runner: web.ServerRunner | web.AppRunner
    socket: socket
    certificate: Certificate | None = None

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])

    @property
    def url(self) -> str:
        """The address that this machine can call."""
        scheme = "http" if self.certificate is None else "https"
        return f"{scheme}://127.0.0.1:{self.port}"

    async def open(self) -> None:
        """Begins to answer."""
        await self.runner.setup()
        await Acceptor(self.runner, self.socket, self.certificate).start()
        if self.certificate is not None:
            self.certificate.start()

    async def aclose(self) -> None:
        """Closes the address and its connections."""
        await self.runner.cleanup()


@dataclass(slots=True, kw_only=True)
class PublicListener(BoundListener):
    """The address where partners are answered; calls have `drain` seconds to end."""

    front: Front
    drain: float
    events: Events

    async def leave(self, *, delay: float = 0.0, last_calls: float = 0.0) -> None:
        """Closes the address after `delay` seconds; then the calls that run have time to end.

        Connections without a call are kept for `last_calls` seconds more. Meanwhile calls are
        answered, and each answer closes its connection. aiohttp's own shutdown comes last, as it
        drops what still arrives of a body.
        """
        self.front.leaving = True
        await asyncio.sleep(delay)
        for site in list(self.runner.sites):
            await site.stop()
        server, loop = self.runner.server, asyncio.get_running_loop()
        until = loop.time() + last_calls
        while server is not None and server.connections and loop.time() < until:  # noqa: ASYNC110
            await asyncio.sleep(_GLANCE)  # aiohttp does not tell when they end
        if not await self.front.idle(self.drain):
            self.events.report("calls_cut_off")
        await self.runner.cleanup()


@dataclass(slots=True, kw_only=True)
class ServingProcess:
    """A process of a gateway; `closers` close all that it opened."""

    settings: Settings
    events: Events
    readiness: Readiness
    closers: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def aclose(self) -> None:
        """Closes everything, what was opened last first."""
        await self.closers.aclose()


@dataclass(slots=True, kw_only=True)
class Operations(ServingProcess):
    """The process beside the workers: it decides the policy, watches, and answers the operator."""

    follower: Follower
    probe: BackendProbe
    system: BoundListener
    panel: BoundListener | None

    async def start(self) -> None:
        """Begins to answer, hands over the policy, and reports an unreachable practice system."""
        await self.open()
        await self.follower.start()
        try:
            await self.probe()
        except (AdapterError, DocumentErrors) as error:
            self.events.report("practice_unreachable", said=str(error))

    async def open(self) -> None:
        """Begins to answer on the listeners."""
        await self.system.open()
        if self.panel is not None:
            await self.panel.open()

    def leave(self) -> None:
        """Marks the process as not ready, since its end has begun."""
        self.readiness.stopping = True


@dataclass(slots=True, kw_only=True)
class Gateway(Operations):
    """A gateway in one process, whose addresses are taken; `start` makes it answer."""

    store: Store
    keys: KeyStore
    ring: KeyRing
    adapter: Adapter
    keeper: Keeper
    usage: Usage
    public: PublicListener

    @property
    def port(self) -> int:
        """The port on which partners are answered."""
        return self.public.port

    @property
    def base(self) -> str:
        """The address that this machine can call, with /api/v1."""
        return f"{self.public.url}{BASE_PATH}"

    async def open(self) -> None:
        await self.public.open()
        await Operations.open(self)  # a dataclass with slots has no super()
        ports = {"port": self.port, "operations_port": self.system.port}
        if self.panel is not None:
            ports["admin_port"] = self.panel.port
        self.events.report("serving", **ports, event_loop=running_loop())

    async def drain(self) -> None:
        """Marks it as not ready, closes the address after the delay, and lets calls end."""
        self.readiness.stopping = True
        await self.public.leave(delay=self.settings.shutdown_delay)


@dataclass(slots=True, kw_only=True)
class Worker(ServingProcess):
    """One of several processes that answer partners; it is told which policy runs."""

    taker: Taker
    public: PublicListener
    reporter: Reporter

    async def start(self) -> None:
        """Begins to answer partners."""
        self.taker.start()
        self.reporter.start()
        await self.public.open()

    async def drain(self, *, alone: bool) -> None:
        """Lets calls end; `alone` is whether no other worker goes on taking calls."""
        self.readiness.stopping = True
        if alone:
            await self.public.leave(delay=self.settings.shutdown_delay)
        else:
            await self.public.leave(last_calls=LAST_CALLS)
