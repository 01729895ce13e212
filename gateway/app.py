"""The composition root: settings become a gateway that serves; nothing here decides anything."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from socket import socket
from typing import Any

from aiohttp import web

from adapters.base import Adapter, AdapterError, Trouble
from adapters.problems import DocumentErrors, Problem
from gateway.backend import (
    BackendProbe,
    bare_adapter_of,
    check_configured,
    check_serves,
    open_backend,
    unserved_rows,
)
from gateway.booking.ledger import Ledger
from gateway.booking.watch import Watch
from gateway.contract.operations import BASE_PATH, OPERATIONS
from gateway.keys.ring import UNKNOWN_FOR, MemoryKeyRing
from gateway.keys.store import KeyStore
from gateway.limits import open_limiter
from gateway.observe.audit import Journal
from gateway.observe.logs import Events
from gateway.observe.metrics import Metrics
from gateway.observe.troubles import (
    BackendTroubles,
    KeyTroubles,
    LogTroubles,
    PolicyNews,
    Troubles,
    UsageTroubles,
)
from gateway.pipeline.cursor import Cursors
from gateway.pipeline.pipeline import Pipeline
from gateway.pipeline.shed import Gate
from gateway.policy.cases import verify
from gateway.policy.document import load_policy
from gateway.policy.follow import Follower
from gateway.policy.found import Found, find
from gateway.policy.keeper import Examiner, Keeper
from gateway.policy.policy import Policy
from gateway.policy.versions import RAN, Versions
from gateway.settings import ConfigurationErrors, Settings, StartRefused, split_address
from gateway.state import open_own_store, sole_use
from gateway.store import Store, StoreError
from gateway.usage.counting import Usage
from gateway.web.documents import NAMES, Documents
from gateway.web.front import Front
from gateway.web.noting import Observers
from gateway.web.replies import Replies
from gateway.web.server import BACKLOG, PublicServer, bind, check_runtime
from gateway.web.system import Readiness, system_server

# Seconds that a listener's last answers have to leave, once nothing is waited for any more.
CUT_OFF = 1.0


def utc_now() -> datetime:
    """The clock of a real gateway."""
    return datetime.now(UTC)


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
    policy: Callable[[], Policy]
    follower: Follower
    readiness: Readiness
    usage: Usage
    events: Events
    front: Front
    public: web.ServerRunner
    system: web.ServerRunner
    sockets: tuple[socket, socket]
    closers: AsyncExitStack
    faults: int = 0
    fault_at: float = 0.0

    @property
    def base(self) -> str:
        """The address that this machine can call, with /api/v1."""
        return f"http://127.0.0.1:{self.port}{BASE_PATH}"

    async def start(self) -> None:
        """Answer on both listeners."""
        asyncio.get_running_loop().set_exception_handler(self._fault)
        for runner, listening in zip((self.public, self.system), self.sockets, strict=True):
            await runner.setup()
            await web.SockSite(runner, listening, backlog=BACKLOG).start()
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


async def all_problems(error: ConfigurationErrors) -> DocumentErrors:
    """What is wrong with the configuration, and with the files that the rest of it names."""
    settings, problems = error.settings, list(error.problems)
    try:
        load_policy(settings.policy, _unheard)
    except DocumentErrors as more:
        problems += more.problems
    if settings.backend.mapping is not None:
        try:
            await bare_adapter_of(settings, bytes(32), _unheard).aclose()
        except DocumentErrors as more:
            problems += [each for each in more.problems if each.file not in error.left_out]
        except StartRefused as more:
            problems.append(Problem("backend", 0, 0, str(more)))
    return DocumentErrors(problems)


async def _lacking(probe: BackendProbe) -> Sequence[Problem]:
    """What the practice system lacks; nothing where it cannot be asked, as it may come back."""
    try:
        await probe.at_first()
    except DocumentErrors as error:
        return error.problems
    except AdapterError:
        return ()
    return ()


def _unheard(_: Trouble) -> None:
    """Nothing is read while files are checked."""


async def build(settings: Settings, *, now: Callable[[], datetime] = utc_now) -> Gateway:
    """A gateway for these settings.

    StartRefused, StoreError or DocumentErrors where it can't be; nothing is left open then.
    """
    check_runtime()
    async with AsyncExitStack() as closers:
        gateway = await _Assembly(settings, closers, now).gateway()
        gateway.closers = closers.pop_all()
    return gateway


class _Assembly:
    """Opens the parts in their order, each with its closing."""

    def __init__(
        self, settings: Settings, closers: AsyncExitStack, now: Callable[[], datetime]
    ) -> None:
        self.settings = settings
        self.closers = closers
        self.now = now
        self.events = Events()
        self.metrics = Metrics([*(each.id for each in OPERATIONS), *NAMES.values()])
        self.backend = BackendTroubles(self.metrics, self.events)
        self.report = Troubles(self.metrics, self.events).report
        self.examiner = Examiner(path=settings.policy, report=self.report, verify=verify)

    async def gateway(self) -> Gateway:
        settings, closers, now = self.settings, self.closers, self.now
        check_configured(settings)
        public, system = self.sockets()
        port, operations_port = public.getsockname()[1], system.getsockname()[1]
        public_url = settings.public_url_at(port)
        store = open_own_store(settings)
        closers.push_async_callback(store.aclose)
        closers.enter_context(sole_use(settings.state))
        await store.migrate()
        found, policy, adapter, probe, secret = await self.policy_and_adapter(store)
        keys = KeyStore(store)
        # with connections of its own: bookings that wait for the store must not hold it up
        own = open_own_store(settings)
        closers.push_async_callback(own.aclose)
        ring = MemoryKeyRing(KeyStore(own), KeyTroubles(self.events))
        self.metrics.keys_loaded(lambda: len(ring))
        keeper, follower = await self.keeper(Versions(own), found, policy)
        closers.push_async_callback(ring.aclose)
        await ring.start()
        usage = Usage(own, UsageTroubles(self.metrics, self.events), now)
        closers.push_async_callback(usage.aclose)
        usage.start()
        limiter = open_limiter(settings.limiter)
        closers.push_async_callback(limiter.aclose)
        ledger = Ledger(store, wait=settings.booking_wait, failed=self.outcome_waits)
        closers.push_async_callback(ledger.aclose)
        ledger.start(now)
        watch = Watch(store, adapter, self.overwritten, self.unreadable, self.watch_failed)
        self.metrics.overwritten(lambda: watch.overwritten)
        closers.push_async_callback(watch.aclose)
        watch.start(now)
        pipeline = Pipeline(
            keys=ring,
            limiter=limiter,
            policy=keeper.policy,
            adapter=adapter,
            ledger=ledger,
            cursors=Cursors(secret),
            now=now,
            gate=Gate(settings.in_flight, settings.in_flight_per_key),
        )
        replies = Replies(public_url)
        observers = Observers(self.journal(), self.metrics, usage, self.events, now)
        front = Front(
            pipeline=pipeline,
            documents=Documents(
                public_url=public_url, keys=ring, policy=keeper.policy, adapter=adapter, now=now
            ),
            replies=replies,
            observers=observers,
            body_timeout=settings.body_timeout,
        )
        server = PublicServer(front, replies, observers)
        readiness = self.readiness(own, ledger, ring, probe, keeper)
        return Gateway(
            settings=settings,
            port=port,
            operations_port=operations_port,
            store=store,
            keys=keys,
            ring=ring,
            adapter=adapter,
            probe=probe,
            policy=keeper.policy,
            follower=follower,
            readiness=readiness,
            usage=usage,
            events=self.events,
            front=front,
            public=web.ServerRunner(server, shutdown_timeout=CUT_OFF),
            system=web.ServerRunner(
                system_server(readiness, self.metrics, self.events), shutdown_timeout=CUT_OFF
            ),
            sockets=(public, system),
            closers=closers,
        )

    def sockets(self) -> tuple[socket, socket]:
        """Both addresses, taken before anything else is touched."""
        listening = []
        for setting in ("listen", "operations_listen"):
            listening.append(bind(*split_address(getattr(self.settings, setting)), setting))
            self.closers.callback(listening[-1].close)
        return listening[0], listening[1]

    async def policy_and_adapter(
        self, store: Store
    ) -> tuple[Found, Policy, Adapter, BackendProbe, bytes]:
        """Both, or what is wrong with either."""
        problems: list[Problem] = []
        policy: Policy | None = None
        found = await asyncio.to_thread(find, self.settings.policy)
        try:
            policy = self.examiner.policy(found)
        except DocumentErrors as error:
            problems += error.problems
        try:
            adapter, secret = await open_backend(self.settings, store, self.report, self.backend)
        except DocumentErrors as error:
            raise DocumentErrors([*problems, *error.problems]) from error
        self.closers.push_async_callback(adapter.aclose)
        probe = BackendProbe(adapter)
        self.closers.push_async_callback(probe.aclose)
        problems += await _lacking(probe)
        if policy is not None:
            self.examiner = replace(self.examiner, narrows=partial(unserved_rows, adapter))
            problems += await asyncio.to_thread(self.examiner.problems, policy)
        if policy is None or problems:
            raise DocumentErrors(problems)
        check_serves(adapter, self.settings)
        return found, policy, adapter, probe, secret

    async def keeper(
        self, versions: Versions, found: Found, policy: Policy
    ) -> tuple[Keeper, Follower]:
        """What keeps the running policy, and what follows its file; the file's policy is sound."""
        news, approve = PolicyNews(self.metrics, self.events), self.settings.policy_widening

        async def approved(digest: str) -> bool:
            if any(each.event == RAN and each.hash != digest for each in keeper.unwritten):
                raise StoreError("the store does not know yet of another policy that ran")
            return await versions.approved(digest)

        keeper = Keeper(
            self.examiner,
            news,
            self.now,
            approve=approve == "approve",
            approved=approved,
        )
        await keeper.begin(found, policy, await versions.last())
        follower = Follower(keeper, self.settings.policy, versions, news, self.now)
        self.closers.push_async_callback(follower.aclose)
        return keeper, follower

    def journal(self) -> Journal:
        try:
            journal = Journal(self.settings.state, LogTroubles(self.metrics, self.events))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise StartRefused(
                f"the logs in the state folder {self.settings.state} cannot be written: {reason}"
            ) from error
        self.closers.callback(journal.close)
        return journal

    def overwritten(self, appointment: str) -> None:
        event = "the practice's desk has written over a booking of a partner's"
        self.events.warn(event, appointment=appointment)

    def unreadable(self, appointment: str) -> None:
        event = "a booking of a partner's cannot be read, so that nobody knows what became of it"
        self.events.warn(event, appointment=appointment)

    def watch_failed(self, error: Exception) -> None:
        self.events.fault("the bookings cannot be watched", error, said=str(error))

    def outcome_waits(self, error: Exception) -> None:
        event = "a booking's outcome cannot be written yet; it is kept"
        self.events.fault(event, error, said=str(error))

    def readiness(
        self,
        store: Store,
        ledger: Ledger,
        ring: MemoryKeyRing,
        probe: BackendProbe,
        keeper: Keeper,
    ) -> Readiness:
        async def backend() -> Mapping[str, Any]:
            await probe()
            return {"breaker": self.backend.state}

        async def own_store() -> Mapping[str, Any]:
            await store.ping()
            return {"unwritten": ledger.waiting} if ledger.waiting else {}

        async def keys() -> Mapping[str, Any]:
            if ring.age > UNKNOWN_FOR:
                raise StoreError(f"the keys were last read {ring.age:.0f} seconds ago")
            return {"known": len(ring)}

        async def running_policy() -> Mapping[str, Any]:
            return keeper.standing.told()

        async def limiter() -> Mapping[str, Any]:
            return {"url": self.settings.limiter}

        return Readiness(
            {
                "backend": backend,
                "store": own_store,
                "keys": keys,
                "policy": running_policy,
                "limiter": limiter,
            }
        )
