"""The composition root: settings become a gateway that serves; nothing here decides anything."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from socket import socket
from typing import Protocol, TypeVar

from aiohttp import web

from adapters.base import Adapter, AdapterError
from adapters.problems import DocumentErrors, Problem
from gateway.audit.journal import Journal, open_journal
from gateway.audit.troubles import AuditTroubles
from gateway.audit.upkeep import Upkeep
from gateway.backend import (
    BackendProbe,
    check_configured,
    check_serves,
    open_backend,
    unserved_rows,
)
from gateway.booking.blocked import Blocked
from gateway.booking.ledger import Ledger
from gateway.booking.owners import Owners
from gateway.booking.reconcile import Reconciler
from gateway.booking.standing import LedgerStanding
from gateway.booking.watch import Watch
from gateway.booking.work import Patience
from gateway.contract.operations import OPERATIONS
from gateway.keys.ring import MemoryKeyRing
from gateway.keys.store import KeyStore
from gateway.limits import Counters, Limiter, open_limiter, place_of
from gateway.observe.access import ACCESS
from gateway.observe.lag import Lag
from gateway.observe.lines import Lines
from gateway.observe.logs import Events
from gateway.observe.metrics import Metrics
from gateway.observe.process import watch_process
from gateway.observe.tracing import open_traces
from gateway.observe.tracing.base import Traces
from gateway.observe.troubles import (
    BackendTroubles,
    BookingTroubles,
    CertificateTroubles,
    ConnectionTroubles,
    KeyTroubles,
    LimiterTroubles,
    LogTroubles,
    PolicyNews,
    TraceTroubles,
    Troubles,
    UsageTroubles,
)
from gateway.pipeline.cursor import Cursors
from gateway.pipeline.pipeline import Pipeline
from gateway.pipeline.redact import hidden_fields
from gateway.pipeline.shed import Gate
from gateway.policy.cases.run import verify
from gateway.policy.policy import Policy
from gateway.policy.running.examiner import Examiner
from gateway.policy.running.follow import Follower
from gateway.policy.running.found import Found, find
from gateway.policy.running.handed import Handed, Taker, hand_over, nobody, take
from gateway.policy.running.keeper import Keeper
from gateway.policy.running.presence import Presence
from gateway.policy.running.versions import RAN, Versions
from gateway.processes.reports import Report, Reporter, Reports
from gateway.processes.workers import Workers
from gateway.readiness import (
    of_audit,
    of_backend,
    of_keys,
    of_ledger,
    of_limiter,
    of_loop,
    of_policy,
    of_store,
    of_workers,
)
from gateway.serving import Gateway, Operations, PublicSide, SystemSide, Worker
from gateway.settings import Settings, StartRefused, split_address
from gateway.state import open_own_store, sole_use
from gateway.store import Store, StoreError
from gateway.usage.counting import Usage
from gateway.web.documents import NAMES, Documents
from gateway.web.doorman import reserve_files
from gateway.web.entrance import Entrance, entrance
from gateway.web.front import Front
from gateway.web.noting import Observers
from gateway.web.proxies import Proxies
from gateway.web.replies import Replies
from gateway.web.server import PublicServer, bind, check_runtime
from gateway.web.system import Probe, Readiness, system_server, watch_parts, watch_readiness
from gateway.web.tls import Certificate

# Seconds that a listener's last answers have to leave, once nothing is waited for any more.
CUT_OFF = 1.0
# Seconds that a booking may still be at work after the time that it has.
LANDS_WITHIN = 5.0


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What the processes of one gateway have in common: sockets, and where they find what."""

    public: socket
    system: socket
    handed: Path
    reports: Path
    counters: Counters | None


async def build(settings: Settings, *, now: Callable[[], datetime] = utc_now) -> Gateway:
    """A gateway in one process for these settings.

    StartRefused, StoreError or DocumentErrors where it can't be; nothing is left open then.
    """
    check_runtime()
    async with AsyncExitStack() as closers:
        gateway = await _Assembly(settings, closers, now).gateway()
        gateway.closers = closers.pop_all()
    return gateway


async def build_operations(
    settings: Settings, shared: Shared, *, now: Callable[[], datetime] = utc_now
) -> Operations:
    """The process beside the workers of a gateway; as `build`."""
    async with AsyncExitStack() as closers:
        operations = await _Assembly(settings, closers, now, "operations").operations(shared)
        operations.closers = closers.pop_all()
    return operations


async def build_worker(
    settings: Settings, shared: Shared, number: int, *, now: Callable[[], datetime] = utc_now
) -> Worker:
    """One of the workers of a gateway; as `build`."""
    async with AsyncExitStack() as closers:
        worker = await _Assembly(settings, closers, now, f"worker {number}").worker(shared, number)
        worker.closers = closers.pop_all()
    return worker


def bind_both(settings: Settings) -> tuple[socket, socket]:
    """Both addresses, taken before anything else is touched: partners', and the operator's."""
    public = bind(*split_address(settings.listen), "listen")
    try:
        return public, bind(*split_address(settings.operations_listen), "operations_listen")
    except BaseException:
        public.close()
        raise


class _Closable(Protocol):
    async def aclose(self) -> None: ...


Part = TypeVar("Part", bound=_Closable)


@dataclass(frozen=True, slots=True)
class _Practice:
    """The practice system, opened; and the policy of the file, where that was looked at."""

    adapter: Adapter
    probe: BackendProbe
    secret: bytes
    policy: Policy | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answering:
    """What answers partners, and how each of its parts fares."""

    front: Front
    server: PublicServer
    ring: MemoryKeyRing
    usage: Usage
    parts: Mapping[str, Probe]


class _Assembly:
    """Opens the parts in their order, each with its closing."""

    def __init__(
        self,
        settings: Settings,
        closers: AsyncExitStack,
        now: Callable[[], datetime],
        process: str = "gateway",
    ) -> None:
        self.settings = settings
        self.closers = closers
        self.now = now
        self.events = Events()
        operations = [*(each.id for each in OPERATIONS), *NAMES.values()]
        self.metrics = Metrics(operations, process)
        self.backend = BackendTroubles(self.metrics, self.events)
        self.bookings = BookingTroubles(self.events)
        self.report = Troubles(self.metrics, self.events).report
        self.examiner = Examiner(path=settings.policy, report=self.report, verify=verify)

    async def gateway(self) -> Gateway:
        """Everything in one process."""
        settings = self.settings
        check_configured(settings)
        reserve_files(settings.connections)
        public, system = bind_both(settings)
        for each in (public, system):
            self.closers.callback(each.close)
        store = self.closing(open_own_store(settings))
        self.closers.enter_context(sole_use(settings.state))
        await store.migrate()
        found = await asyncio.to_thread(find, settings.policy)
        practice = await self.practice(store, found)
        # with connections of its own: bookings that wait for the store must not hold it up
        own = self.closing(open_own_store(settings))
        keeper, follower = await self.decider(Versions(own), practice, found)
        port = public.getsockname()[1]
        owners = await self.owners(store)
        answering = await self.answering((store, own), owners, practice, keeper.policy, port)
        await self.after_bookings(store, practice.adapter, owners)
        self.upkeep(own)
        readiness = Readiness({**self.deciding_parts(practice, keeper), **answering.parts})
        watch_readiness(readiness, self.metrics)
        look = self.standing(own).look

        async def figures() -> bytes:
            await look()
            return self.metrics.text()

        return Gateway(
            settings=settings,
            store=store,
            keys=KeyStore(store),
            ring=answering.ring,
            adapter=practice.adapter,
            probe=practice.probe,
            keeper=keeper,
            follower=follower,
            usage=answering.usage,
            events=self.events,
            public=self.public(answering, public),
            system=self.system(readiness, system, figures),
            closers=self.closers,
        )

    async def operations(self, shared: Shared) -> Operations:
        """What stands beside the workers; it begins before them, and makes what they find."""
        settings = self.settings
        store = self.closing(open_own_store(settings))
        await store.migrate()
        found = await asyncio.to_thread(find, settings.policy)
        before = take(shared.handed)
        practice = await self.practice(store, found if before is None else None)
        keeper, follower = await self.decider(Versions(store), practice, found, shared, before)
        await self.after_bookings(store, practice.adapter, await self.owners(store))
        self.upkeep(store)
        workers = Workers(self.metrics.snapshot, settings.workers)
        reports = self.closing(Reports(shared.reports, workers.ended))
        await reports.start()
        parts = {
            **self.deciding_parts(practice, keeper),
            "store": of_store(store),
            "workers": of_workers(workers, reports),
        }

        readiness = Readiness(parts)
        watch_readiness(readiness, self.metrics)
        watch_process(self.metrics)
        look = self.standing(store).look

        async def figures() -> bytes:
            await look()
            return workers.figures(await reports.ask())

        return Operations(
            settings=settings,
            follower=follower,
            probe=practice.probe,
            events=self.events,
            system=self.system(readiness, shared.system, figures),
            closers=self.closers,
        )

    async def worker(self, shared: Shared, number: int) -> Worker:
        """One that answers partners, by the policy that is handed to it."""
        settings = self.settings
        store = self.closing(open_own_store(settings))
        practice = await self.practice(store)
        own = self.closing(open_own_store(settings))
        presence = Presence(Versions(own), self.now, f"worker {number}")
        news = PolicyNews(self.metrics, self.events)
        taker = self.closing(Taker(shared.handed, self.report, presence, news.untaken))
        await taker.begin()
        port = shared.public.getsockname()[1]
        owners = await self.owners(store)
        answering = await self.answering(
            (store, own), owners, practice, taker.policy, port, shared.counters
        )
        readiness = Readiness(answering.parts)
        watch_parts(readiness, self.metrics)

        async def report() -> Report:
            return Report(
                worker=number,
                pid=os.getpid(),
                stopping=readiness.stopping,
                parts=(await readiness.report())["parts"],
                figures=dict(self.metrics.snapshot()),
            )

        return Worker(
            settings=settings,
            taker=taker,
            events=self.events,
            public=self.public(answering, shared.public),
            reporter=self.closing(Reporter(shared.reports, report)),
            readiness=readiness,
            closers=self.closers,
        )

    def closing(self, part: Part) -> Part:
        """The same, closed at the end: what was opened last goes first."""
        self.closers.push_async_callback(part.aclose)
        return part

    async def practice(self, store: Store, found: Found | None = None) -> _Practice:
        """The practice system and the policy, or what is wrong with either.

        Without a file of the policy neither is looked at more closely: that was done before.
        """
        problems: list[Problem] = []
        policy: Policy | None = None
        try:
            policy = None if found is None else self.examiner.policy(found)
        except DocumentErrors as error:
            problems += error.problems
        try:
            adapter, secret = await open_backend(self.settings, store, self.report, self.backend)
        except DocumentErrors as error:
            raise DocumentErrors([*problems, *error.problems]) from error
        adapter = Blocked(adapter, store)
        probe = BackendProbe(self.closing(adapter))
        problems += await _lacking(self.closing(probe)) if found is not None else ()
        self.examiner = replace(self.examiner, narrows=partial(unserved_rows, adapter))
        if policy is not None:
            problems += await asyncio.to_thread(self.examiner.problems, policy)
        if problems:
            raise DocumentErrors(problems)
        check_serves(adapter, self.settings)
        return _Practice(adapter, probe, secret, policy)

    async def decider(
        self,
        versions: Versions,
        practice: _Practice,
        found: Found,
        shared: Shared | None = None,
        before: Handed | None = None,
    ) -> tuple[Keeper, Follower]:
        """What keeps the running policy, and what follows its file.

        `before` is what ran in other processes of this gateway: it goes on, whatever the file says.
        """
        news = PolicyNews(self.metrics, self.events)

        async def approved(digest: str) -> bool:
            if any(each.event == RAN and each.hash != digest for each in keeper.unwritten):
                raise StoreError("the store does not know yet of another policy that ran")
            return await versions.approved(digest)

        approve = self.settings.policy_widening == "approve"
        keeper = Keeper(self.examiner, news, self.now, approve=approve, approved=approved)
        if practice.policy is not None:
            await keeper.begin(found, practice.policy, await versions.last())
        elif before is not None:
            await keeper.go_on(before.version, before.loaded_at)
            news.loaded(before.hash, before.hash, before.loaded_at)
        role = "operations" if shared else ""
        presence = Presence(versions, self.now, role, sweeps=bool(shared))
        hand_on = partial(hand_over, shared.handed) if shared else nobody
        follower = Follower(keeper, self.settings.policy, versions, presence, news, hand_on)
        return keeper, self.closing(follower)

    async def answering(
        self,
        stores: tuple[Store, Store],
        owners: Owners,
        practice: _Practice,
        policy: Callable[[], Policy],
        port: int,
        counters: Counters | None = None,
    ) -> _Answering:
        """What answers partners at that port; the ledger has the first store for itself."""
        settings = self.settings
        store, own = stores
        ring = await self.ring(own)
        usage = self.usage(own)
        ledger = self.ledger(store, owners)
        journal = await self.journal(own)
        limiter = await self.limiter(counters)
        pipeline = Pipeline(
            keys=ring,
            limiter=limiter,
            policy=policy,
            adapter=practice.adapter,
            ledger=ledger,
            cursors=Cursors(practice.secret),
            now=self.now,
            gate=Gate(settings.in_flight, settings.in_flight_per_key, settings.in_flight_bytes),
            audit=journal.audit,
        )
        observers = Observers(journal, self.metrics, usage, self.events, self.now)
        proxies = Proxies(settings.proxies, settings.proxy_hops)
        public_url = settings.public_url_at(port)
        replies = Replies(public_url)
        documents = Documents(
            public_url=public_url, keys=ring, policy=policy, adapter=practice.adapter, now=self.now
        )
        front = Front(
            pipeline=pipeline,
            documents=documents,
            replies=replies,
            observers=observers,
            traces=self.traces(),
            body_timeout=settings.body_timeout,
            proxies=proxies,
        )
        parts = {
            "store": of_ledger(own, ledger),
            "keys": of_keys(ring),
            "audit": of_audit(journal),
            "limiter": of_limiter(place_of(settings.limiter.get_secret_value()), limiter),
            "loop": of_loop(self.lag()),
        }
        inside = self.entrance(proxies)
        server = PublicServer(front, replies, observers, inside)
        self.watch_answering(front, inside, ledger)
        self.metrics.hides(partial(hidden_fields, policy))
        return _Answering(front=front, server=server, ring=ring, usage=usage, parts=parts)

    def deciding_parts(self, practice: _Practice, keeper: Keeper) -> Mapping[str, Probe]:
        """What is asked once for a whole gateway, however many of its processes answer."""
        return {
            "backend": of_backend(practice.probe, lambda: self.backend.state),
            "policy": of_policy(lambda: keeper.standing),
        }

    def public(self, answering: _Answering, listening: socket) -> PublicSide:
        runner = web.ServerRunner(answering.server, shutdown_timeout=CUT_OFF)
        return PublicSide(
            front=answering.front,
            runner=runner,
            socket=listening,
            certificate=self.certificate(),
            drain=self.settings.drain,
            events=self.events,
        )

    def system(
        self, readiness: Readiness, listening: socket, figures: Callable[[], Awaitable[bytes]]
    ) -> SystemSide:
        server = system_server(readiness, figures, self.events)
        runner = web.ServerRunner(server, shutdown_timeout=CUT_OFF)
        return SystemSide(readiness=readiness, runner=runner, socket=listening)

    async def ring(self, store: Store) -> MemoryKeyRing:
        ring = MemoryKeyRing(KeyStore(store), KeyTroubles(self.events))
        self.metrics.keys_loaded(lambda: len(ring))
        self.metrics.ask("gateway_keys_age_seconds", lambda: ring.age)
        await self.closing(ring).start()
        return ring

    def usage(self, store: Store) -> Usage:
        usage = Usage(store, UsageTroubles(self.metrics, self.events), self.now)
        self.closing(usage).start()
        return usage

    async def owners(self, store: Store) -> Owners:
        """This process among all that book."""
        owners = self.closing(Owners(store, self.settings.state))
        await owners.start()
        return owners

    def ledger(self, store: Store, owners: Owners) -> Ledger:
        """The ledger of bookings."""
        patience = Patience(lands=self.lands())
        wait = self.settings.booking_wait
        ledger = Ledger(store, owners, self.bookings, wait=wait, patience=patience)
        self.closing(ledger).start(self.now)
        return ledger

    def watch(self, store: Store, adapter: Adapter) -> None:
        """Looks now and then at what became of bookings."""
        told = self.bookings
        watch = Watch(store, adapter, told.overwritten, told.unreadable, told.watch_failed)
        self.metrics.overwritten(lambda: watch.overwritten)
        self.closing(watch).start(self.now)

    async def limiter(self, counters: Counters | None) -> Limiter:
        settings, url = self.settings, self.settings.limiter.get_secret_value()
        if settings.nodes > 1 and url == "memory:":
            raise StartRefused(
                "more than one of nodes cannot count in memory:, as each would admit every limit"
                " whole; name a limiter such as redis://127.0.0.1:6379",
                "limiter",
            )
        watcher = LimiterTroubles(self.metrics, self.events)
        try:
            limiter = open_limiter(
                url,
                watcher,
                share=settings.nodes * settings.workers,
                patience=settings.limiter_timeout,
                counters=counters,
            )
        except ValueError as error:
            raise StartRefused(str(error), "limiter") from error
        self.metrics.limiter(lambda: limiter.degraded)
        await self.closing(limiter).start()
        return limiter

    def traces(self) -> Traces:
        """Spans for a collector, where one is named."""
        told, tracing = TraceTroubles(self.metrics, self.events), self.settings.tracing
        try:
            traces = open_traces(tracing.endpoint, tracing.share, told.lost, told.failed)
        except ImportError as error:
            raise StartRefused(
                f"tracing.endpoint needs {error.name}, which is not installed:"
                " pip install 'clinic-gateway[otel]', or leave the setting out"
            ) from error
        return self.closing(traces)

    def lag(self) -> Lag:
        lag = Lag(self.metrics)
        self.closing(lag).start()
        return lag

    def standing(self, store: Store) -> LedgerStanding:
        """What the ledger holds, as the figures tell it."""
        standing = LedgerStanding(store, self.now)
        self.metrics.ask_all("gateway_ledger_bookings", standing.states)
        self.metrics.ask("gateway_ledger_oldest_unknown_seconds", standing.oldest_unknown)
        return standing

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

    def entrance(self, proxies: Proxies) -> Entrance:
        """Who lets connections in, and how many."""
        settings, troubles = self.settings, ConnectionTroubles(self.metrics, self.events)
        most, most_of_one = settings.connections, settings.connections_per_address
        return entrance(most, most_of_one, proxies, troubles.turned_away)

    def watch_answering(self, front: Front, inside: Entrance, ledger: Ledger) -> None:
        """What is looked up when the figures are read."""
        ask = self.metrics.ask
        ask("gateway_calls_in_flight", lambda: front.running)
        ask("gateway_connections", lambda: len(inside.doorman))
        ask("gateway_ledger_unwritten", lambda: ledger.waiting)
        watch_process(self.metrics)

    async def after_bookings(self, store: Store, adapter: Adapter, owners: Owners) -> None:
        """What becomes of bookings: one process of a machine looks after that."""
        await self.reconciler(store, adapter, owners)
        self.watch(store, adapter)

    async def reconciler(self, store: Store, adapter: Adapter, owners: Owners) -> Reconciler:
        """What looks up, first of all, what an earlier process has left, and goes on with it."""
        reconciler = Reconciler(store, adapter, owners, self.bookings, lands=self.lands())
        await self.closing(reconciler).begin()
        reconciler.start()
        return reconciler

    def lands(self) -> float:
        """Seconds after which an attempt that nobody waits for any more has come to its end."""
        return self.settings.backend.booking_timeout + LANDS_WITHIN

    async def journal(self, store: Store) -> Journal:
        """The access log and the audit, with a chain of this process's own."""
        troubles = AuditTroubles(self.metrics, self.events)
        try:
            access = Lines(self.settings.state / ACCESS, LogTroubles(self.metrics, self.events))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise StartRefused(
                f"the logs in the state folder {self.settings.state} cannot be written: {reason}"
            ) from error
        journal = await open_journal(self.settings, store, access, troubles, self.now)
        files = self.closing(journal).files
        self.metrics.ask_all(
            "gateway_log_lines_waiting",
            lambda: {(name,): each.waiting for name, each in files.items()},
        )
        self.metrics.ask_all(
            "gateway_log_writable",
            lambda: {(name,): not each.broken for name, each in files.items()},
        )
        return journal

    def upkeep(self, store: Store) -> None:
        """Keeps the audit's index, and drops what is old: for all processes of a machine."""
        troubles = AuditTroubles(self.metrics, self.events)
        self.closing(Upkeep(self.settings, store, troubles, self.now)).start()
