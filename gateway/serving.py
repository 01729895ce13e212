"""A gateway whose parts are open: it begins to answer, and comes to its end in order.

It is one process, or an operations process with workers beside it.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from socket import socket
from typing import Any

from aiohttp import web

from adapters.base import Adapter, AdapterError
from adapters.documents.problems import DocumentErrors
from gateway.backend import BackendProbe
from gateway.contract.operations import BASE_PATH
from gateway.keys.ring import KeyRing
from gateway.keys.store import KeyStore
from gateway.observe.logs import Events
from gateway.policy.policy import Policy
from gateway.policy.running.follower import Follower, Taker
from gateway.policy.running.keeper import Keeper
from gateway.processes.reports import Reporter
from gateway.settings import Settings
from gateway.store import Store
from gateway.usage import Usage
from gateway.web.front import Front
from gateway.web.server import Acceptor
from gateway.web.system import Readiness
from gateway.web.tls import Certificate

# Seconds for which a worker that is replaced keeps connections without a call: what a partner has
# just sent on one gets an answer, which says that the connection ends.
LAST_CALLS = 2.0
_GLANCE = 0.05


class Faults:
    """Says what goes wrong outside a call: the same fault may come with every connection."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._unsaid = 0
        self._said_at = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        """The handler of an event loop; it speaks at most once a second."""
        self._unsaid += 1
        if loop.time() - self._said_at < 1.0:
            return
        error = context.get("exception") or RuntimeError(context["message"])
        self._events.fault("fault outside a call", error, times=self._unsaid)
        self._unsaid, self._said_at = 0, loop.time()


@dataclass(slots=True, kw_only=True)
class PublicSide:
    """Where partners are answered; `drain` and `patience` are seconds."""

    front: Front
    runner: web.ServerRunner
    socket: socket
    certificate: Certificate | None
    drain: float
    events: Events

    @property
    def port(self) -> int:
        """The port on which partners are answered."""
        port: int = self.socket.getsockname()[1]
        return port

    async def open(self) -> None:
        """Answer."""
        await _listen(self.runner, self.socket, self.certificate)
        if self.certificate is not None:
            self.certificate.start()

    async def leave(self, *, delay: float = 0.0, last_calls: float = 0.0) -> None:
        """After the delay let nobody in; then what runs has its time to end.

        Connections without a call are kept for `last_calls` seconds more. All the while calls are
        answered, each answer closing its connection. aiohttp's own shutdown comes last: from its
        beginning it drops what still arrives of a body.
        """
        self.front.leave()
        await asyncio.sleep(delay)
        for site in list(self.runner.sites):
            await site.stop()
        await self._keep(last_calls)
        if not await self.front.idle(self.drain):
            self.events.info("calls cut off: they did not end in time")
        await self.runner.cleanup()

    async def _keep(self, seconds: float) -> None:
        server = self.runner.server
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while server is not None and server.connections and loop.time() < until:  # noqa: ASYNC110
            await asyncio.sleep(_GLANCE)  # aiohttp does not say when they end


@dataclass(slots=True, kw_only=True)
class SystemSide:
    """Where the operator asks how it fares."""

    readiness: Readiness
    runner: web.ServerRunner
    socket: socket

    @property
    def port(self) -> int:
        """The port of /healthz, /readyz and /metrics."""
        port: int = self.socket.getsockname()[1]
        return port

    async def open(self) -> None:
        """Answer."""
        await _listen(self.runner, self.socket)


@dataclass(slots=True, kw_only=True)
class PanelSide:
    """Where the clinic's administrators work."""

    runner: web.AppRunner
    socket: socket
    certificate: Certificate | None

    @property
    def port(self) -> int:
        """The panel's port."""
        return int(self.socket.getsockname()[1])

    @property
    def url(self) -> str:
        """The address that this machine can call."""
        scheme = "http" if self.certificate is None else "https"
        return f"{scheme}://127.0.0.1:{self.port}"

    async def open(self) -> None:
        """Answer."""
        await _listen(self.runner, self.socket, self.certificate)
        if self.certificate is not None:
            self.certificate.start()


async def _listen(
    runner: web.ServerRunner | web.AppRunner,
    listening: socket,
    certificate: Certificate | None = None,
) -> None:
    await runner.setup()
    await Acceptor(runner, listening, certificate).start()


@dataclass(slots=True, kw_only=True)
class Gateway:
    """A gateway in one process, whose addresses are taken; `start` makes it answer."""

    settings: Settings
    store: Store
    keys: KeyStore
    ring: KeyRing
    adapter: Adapter
    probe: BackendProbe
    keeper: Keeper
    follower: Follower
    usage: Usage
    events: Events
    public: PublicSide
    system: SystemSide
    panel: PanelSide | None
    closers: AsyncExitStack

    @property
    def port(self) -> int:
        """The port on which partners are answered."""
        return self.public.port

    @property
    def operations_port(self) -> int:
        """The port of /healthz, /readyz and /metrics."""
        return self.system.port

    @property
    def base(self) -> str:
        """The address that this machine can call, with /api/v1."""
        scheme = "http" if self.public.certificate is None else "https"
        return f"{scheme}://127.0.0.1:{self.port}{BASE_PATH}"

    def policy(self) -> Policy:
        """What runs now."""
        return self.keeper.policy()

    async def start(self) -> None:
        """Answer on both listeners."""
        asyncio.get_running_loop().set_exception_handler(Faults(self.events))
        await self.public.open()
        await self.system.open()
        ports = {"port": self.port, "operations_port": self.operations_port}
        if self.panel is not None:
            await self.panel.open()
            ports["admin_port"] = self.panel.port
        self.events.info("serving", **ports)
        await self.follower.start()
        await greet(self.probe, self.events)

    async def drain(self) -> None:
        """Not ready; after the delay not listening; then what runs has its time to end."""
        self.system.readiness.stopping = True
        await self.public.leave(delay=self.settings.shutdown_delay)

    async def aclose(self) -> None:
        """Let go of everything, last made first."""
        await self.public.runner.cleanup()
        await self.system.runner.cleanup()
        if self.panel is not None:
            await self.panel.runner.cleanup()
        await self.closers.aclose()


@dataclass(slots=True, kw_only=True)
class Worker:
    """One of several processes that answer partners; it is told which policy runs."""

    settings: Settings
    taker: Taker
    events: Events
    public: PublicSide
    reporter: Reporter
    readiness: Readiness
    closers: AsyncExitStack

    async def start(self) -> None:
        """Answer partners."""
        asyncio.get_running_loop().set_exception_handler(Faults(self.events))
        self.taker.start()
        self.reporter.start()
        await self.public.open()

    async def drain(self, *, alone: bool) -> None:
        """End what runs; `alone` where no other worker goes on taking calls."""
        self.readiness.stopping = True
        if alone:
            await self.public.leave(delay=self.settings.shutdown_delay)
        else:
            await self.public.leave(last_calls=LAST_CALLS)

    async def aclose(self) -> None:
        """Let go of everything, last made first."""
        await self.public.runner.cleanup()
        await self.closers.aclose()


@dataclass(slots=True, kw_only=True)
class Operations:
    """The process beside the workers: it decides the policy, watches, and tells how all fare."""

    settings: Settings
    follower: Follower
    probe: BackendProbe
    events: Events
    system: SystemSide
    panel: PanelSide | None
    closers: AsyncExitStack

    async def start(self) -> None:
        """Hand over the policy, and answer the operator."""
        asyncio.get_running_loop().set_exception_handler(Faults(self.events))
        await self.follower.start()
        await self.system.open()
        if self.panel is not None:
            await self.panel.open()
        await greet(self.probe, self.events)

    def leave(self) -> None:
        """The end has begun: not ready any more."""
        self.system.readiness.stopping = True

    async def aclose(self) -> None:
        """Let go of everything, last made first."""
        await self.system.runner.cleanup()
        if self.panel is not None:
            await self.panel.runner.cleanup()
        await self.closers.aclose()


async def greet(probe: BackendProbe, events: Events) -> None:
    """Say at once where the practice system cannot be reached; calls are 503 until it can."""
    try:
        await probe()
    except (AdapterError, DocumentErrors) as error:
        events.warn("the practice system does not answer", said=str(error))
