"""The composition root: settings become a gateway that serves; nothing here decides anything."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from socket import socket
from typing import Protocol, TypeVar

from aiohttp import web

from adapters.base import Adapter, AdapterError
from adapters.problems import DocumentErrors, Problem
from gateway.backend import (
    BackendProbe,
    check_configured,
    check_serves,
    open_backend,
    unserved_rows,
)
from gateway.booking.ledger import Ledger
from gateway.booking.watch import Watch
from gateway.contract.operations import OPERATIONS
from gateway.keys.ring import MemoryKeyRing
from gateway.keys.store import KeyStore
from gateway.limits import open_limiter
from gateway.observe.audit import Journal
from gateway.observe.logs import Events
from gateway.observe.metrics import Metrics
from gateway.observe.troubles import (
    BackendTroubles,
    BookingTroubles,
    CertificateTroubles,
    ConnectionTroubles,
    KeyTroubles,
    LogTroubles,
    PolicyNews,
    Troubles,
    UsageTroubles,
)
from gateway.pipeline.cursor import Cursors
from gateway.pipeline.pipeline import Pipeline
from gateway.pipeline.shed import Gate
from gateway.policy.cases.run import verify
from gateway.policy.policy import Policy
from gateway.policy.running.examiner import Examiner
from gateway.policy.running.follow import Follower
from gateway.policy.running.found import Found, find
from gateway.policy.running.keeper import Keeper
from gateway.policy.running.versions import RAN, Versions
from gateway.readiness import of_backend, of_keys, of_limiter, of_policy, of_store
from gateway.serving import Gateway
from gateway.settings import Settings, StartRefused, split_address
from gateway.state import open_own_store, sole_use
from gateway.store import Store, StoreError
from gateway.usage.counting import Usage
from gateway.web.documents import NAMES, Documents
from gateway.web.doorman import reserve_files
from gateway.web.entrance import entrance
from gateway.web.front import Front
from gateway.web.noting import Observers
from gateway.web.proxies import Proxies
from gateway.web.replies import Replies
from gateway.web.server import PublicServer, bind, check_runtime
from gateway.web.system import Readiness, system_server
from gateway.web.tls import Certificate

# Seconds that a listener's last answers have to leave, once nothing is waited for any more.
CUT_OFF = 1.0


def utc_now() -> datetime:
    """The clock of a real gateway."""
    return datetime.now(UTC)


async def _lacking(probe: BackendProbe) -> Sequence[Problem]:
    """What the practice system lacks; nothing where it cannot be asked, as it may come back."""
    try:
        await probe.at_first()
    except DocumentErrors as error:
        return error.problems
    except AdapterError:
        return ()
    return ()


async def build(settings: Settings, *, now: Callable[[], datetime] = utc_now) -> Gateway:
    """A gateway for these settings.

    StartRefused, StoreError or DocumentErrors where it can't be; nothing is left open then.
    """
    check_runtime()
    async with AsyncExitStack() as closers:
        gateway = await _Assembly(settings, closers, now).gateway()
        gateway.closers = closers.pop_all()
    return gateway


class _Closable(Protocol):
    async def aclose(self) -> None: ...


Part = TypeVar("Part", bound=_Closable)


@dataclass(frozen=True, slots=True)
class _Practice:
    """The practice system, and the policy's file that it can serve."""

    adapter: Adapter
    probe: BackendProbe
    secret: bytes
    found: Found
    policy: Policy


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
        self.bookings = BookingTroubles(self.events)
        self.report = Troubles(self.metrics, self.events).report
        self.examiner = Examiner(path=settings.policy, report=self.report, verify=verify)

    async def gateway(self) -> Gateway:
        settings = self.settings
        check_configured(settings)
        reserve_files(settings.connections)
        certificate = self.certificate()
        sockets = self.sockets()
        port, operations_port = (each.getsockname()[1] for each in sockets)
        store = self.closing(open_own_store(settings))
        self.closers.enter_context(sole_use(settings.state))
        await store.migrate()
        practice = await self.practice(store)
        # with connections of its own: bookings that wait for the store must not hold it up
        own = self.closing(open_own_store(settings))
        keeper, follower = await self.policy(Versions(own), practice)
        ring = await self.ring(own)
        usage = self.usage(own)
        ledger = self.ledger(store, practice.adapter)
        observers = Observers(self.journal(), self.metrics, usage, self.events, self.now)
        public_url = settings.public_url_at(port)
        replies = Replies(public_url)
        documents = Documents(
            public_url=public_url,
            keys=ring,
            policy=keeper.policy,
            adapter=practice.adapter,
            now=self.now,
        )
        troubles = ConnectionTroubles(self.metrics, self.events)
        proxies = Proxies(settings.proxies, settings.proxy_hops)
        front = Front(
            pipeline=self.pipeline(practice, keeper, ring, ledger),
            documents=documents,
            replies=replies,
            observers=observers,
            body_timeout=settings.body_timeout,
            proxies=proxies,
        )
        inside = entrance(
            settings.connections, settings.connections_per_address, proxies, troubles.turned_away
        )
        self.metrics.connections(lambda: len(inside.doorman))
        server = PublicServer(front, replies, observers, inside)
        readiness = self.readiness(own, practice.probe, keeper, ring, ledger)
        system = system_server(readiness, self.metrics, self.events)
        return Gateway(
            settings=settings,
            port=port,
            operations_port=operations_port,
            store=store,
            keys=KeyStore(store),
            ring=ring,
            adapter=practice.adapter,
            probe=practice.probe,
            keeper=keeper,
            follower=follower,
            readiness=readiness,
            usage=usage,
            events=self.events,
            front=front,
            public=web.ServerRunner(server, shutdown_timeout=CUT_OFF),
            system=web.ServerRunner(system, shutdown_timeout=CUT_OFF),
            certificate=certificate,
            sockets=sockets,
            closers=self.closers,
        )

    def closing(self, part: Part) -> Part:
        """The same, closed at the end: what was opened last goes first."""
        self.closers.push_async_callback(part.aclose)
        return part

    def certificate(self) -> Certificate | None:
        """What the gateway speaks TLS with, where it does."""
        certificate, key = self.settings.tls_certificate, self.settings.tls_key
        if certificate is None and key is None:
            return None
        if certificate is None or key is None:
            lacking = "tls_key" if key is None else "tls_certificate"
            raise StartRefused(
                f"{lacking} is not set: TLS takes a certificate and its key", lacking
            )
        told = CertificateTroubles(self.events)
        return self.closing(
            Certificate(certificate, key, renewed=told.renewed, refused=told.refused)
        )

    def sockets(self) -> tuple[socket, socket]:
        """Both addresses, taken before anything else is touched."""
        listening = []
        for setting in ("listen", "operations_listen"):
            listening.append(bind(*split_address(getattr(self.settings, setting)), setting))
            self.closers.callback(listening[-1].close)
        return listening[0], listening[1]

    async def practice(self, store: Store) -> _Practice:
        """The practice system and the policy, or what is wrong with either."""
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
        probe = BackendProbe(self.closing(adapter))
        problems += await _lacking(self.closing(probe))
        if policy is not None:
            self.examiner = replace(self.examiner, narrows=partial(unserved_rows, adapter))
            problems += await asyncio.to_thread(self.examiner.problems, policy)
        if policy is None or problems:
            raise DocumentErrors(problems)
        check_serves(adapter, self.settings)
        return _Practice(adapter, probe, secret, found, policy)

    async def policy(self, versions: Versions, practice: _Practice) -> tuple[Keeper, Follower]:
        """What keeps the running policy, and what follows its file; the file's policy is sound."""
        news = PolicyNews(self.metrics, self.events)

        async def approved(digest: str) -> bool:
            if any(each.event == RAN and each.hash != digest for each in keeper.unwritten):
                raise StoreError("the store does not know yet of another policy that ran")
            return await versions.approved(digest)

        approve = self.settings.policy_widening == "approve"
        keeper = Keeper(self.examiner, news, self.now, approve=approve, approved=approved)
        await keeper.begin(practice.found, practice.policy, await versions.last())
        follower = Follower(keeper, self.settings.policy, versions, news, self.now)
        return keeper, self.closing(follower)

    async def ring(self, store: Store) -> MemoryKeyRing:
        ring = MemoryKeyRing(KeyStore(store), KeyTroubles(self.events))
        self.metrics.keys_loaded(lambda: len(ring))
        await self.closing(ring).start()
        return ring

    def usage(self, store: Store) -> Usage:
        usage = Usage(store, UsageTroubles(self.metrics, self.events), self.now)
        self.closing(usage).start()
        return usage

    def ledger(self, store: Store, adapter: Adapter) -> Ledger:
        """The ledger of bookings, with a watch over them."""
        told = self.bookings
        ledger = Ledger(store, wait=self.settings.booking_wait, failed=told.outcome_waits)
        self.closing(ledger).start(self.now)
        watch = Watch(store, adapter, told.overwritten, told.unreadable, told.watch_failed)
        self.metrics.overwritten(lambda: watch.overwritten)
        self.closing(watch).start(self.now)
        return ledger

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

    def pipeline(
        self, practice: _Practice, keeper: Keeper, ring: MemoryKeyRing, ledger: Ledger
    ) -> Pipeline:
        settings = self.settings
        return Pipeline(
            keys=ring,
            limiter=self.closing(open_limiter(settings.limiter)),
            policy=keeper.policy,
            adapter=practice.adapter,
            ledger=ledger,
            cursors=Cursors(practice.secret),
            now=self.now,
            gate=Gate(settings.in_flight, settings.in_flight_per_key, settings.in_flight_bytes),
        )

    def readiness(
        self,
        store: Store,
        probe: BackendProbe,
        keeper: Keeper,
        ring: MemoryKeyRing,
        ledger: Ledger,
    ) -> Readiness:
        return Readiness(
            {
                "backend": of_backend(probe, lambda: self.backend.state),
                "store": of_store(store, ledger),
                "keys": of_keys(ring),
                "policy": of_policy(lambda: keeper.standing),
                "limiter": of_limiter(self.settings.limiter),
            }
        )
