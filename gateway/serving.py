"""A gateway whose parts are open: it begins to answer, and comes to its end in order."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from socket import socket
from typing import Any

from aiohttp import web

from adapters.base import Adapter, AdapterError
from adapters.problems import DocumentErrors
from gateway.backend import BackendProbe
from gateway.contract.operations import BASE_PATH
from gateway.keys.ring import MemoryKeyRing
from gateway.keys.store import KeyStore
from gateway.observe.logs import Events
from gateway.policy.policy import Policy
from gateway.policy.running.follow import Follower
from gateway.policy.running.keeper import Keeper
from gateway.settings import Settings
from gateway.store import Store
from gateway.usage.counting import Usage
from gateway.web.acceptor import Acceptor
from gateway.web.front import Front
from gateway.web.system import Readiness
from gateway.web.tls import Certificate


@dataclass(slots=True, kw_only=True)
class Gateway:
    """A gateway whose parts are open and whose addresses are taken; `start` makes it answer."""

    settings: Settings
    port: int
    operations_port: int
    store: Store
    keys: KeyStore
    ring: MemoryKeyRing
    adapter: Adapter
    probe: BackendProbe
    keeper: Keeper
    follower: Follower
    readiness: Readiness
    usage: Usage
    events: Events
    front: Front
    public: web.ServerRunner
    system: web.ServerRunner
    certificate: Certificate | None
    sockets: tuple[socket, socket]
    closers: AsyncExitStack
    faults: int = 0
    fault_at: float = 0.0

    @property
    def base(self) -> str:
        """The address that this machine can call, with /api/v1."""
        scheme = "http" if self.certificate is None else "https"
        return f"{scheme}://127.0.0.1:{self.port}{BASE_PATH}"

    def policy(self) -> Policy:
        """What runs now."""
        return self.keeper.policy()

    async def start(self) -> None:
        """Answer on both listeners."""
        asyncio.get_running_loop().set_exception_handler(self._fault)
        certificates = (self.certificate, None)
        runners = (self.public, self.system)
        for runner, listening, certificate in zip(runners, self.sockets, certificates, strict=True):
            await runner.setup()
            await Acceptor(runner, listening, certificate).start()
        if self.certificate is not None:
            self.certificate.start()
        self.events.info("serving", port=self.port, operations_port=self.operations_port)
        await self.follower.start()
        await self._greet()

    async def _greet(self) -> None:
        """Say at once where the practice system cannot be reached; calls are 503 until it can."""
        try:
            await self.probe()
        except (AdapterError, DocumentErrors) as error:
            self.events.warn("the practice system does not answer", said=str(error))

    async def drain(self) -> None:
        """Not ready; after the delay not listening; then what runs has its time to end.

        All the while calls are answered, each answer closing its connection. aiohttp's own
        shutdown comes last: from its beginning it drops what still arrives of a body.
        """
        self.readiness.stopping = True
        self.front.leave()
        await asyncio.sleep(self.settings.shutdown_delay)
        for site in list(self.public.sites):
            await site.stop()
        if not await self.front.idle(self.settings.drain):
            self.events.info("calls cut off: they did not end in time")
        await self.public.cleanup()

    async def aclose(self) -> None:
        """Let go of everything, last made first."""
        await self.public.cleanup()
        await self.system.cleanup()
        await self.closers.aclose()

    def _fault(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        """Said at most once a second: the same fault may come with every connection."""
        self.faults += 1
        if loop.time() - self.fault_at < 1.0:
            return
        error = context.get("exception") or RuntimeError(context["message"])
        self.events.fault("fault outside a call", error, times=self.faults)
        self.faults, self.fault_at = 0, loop.time()
