"""Opens all that answers partners, and probes how each part fares."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from socket import socket
from typing import Any

from aiohttp import web

from gateway.assembly.kit import Kit, PracticeSystem, open_ledger, open_logs, open_spans
from gateway.assembly.listeners import CUT_OFF, certificate_of
from gateway.audit.buffer import Buffer
from gateway.audit.journal import Journal
from gateway.backend import BackendProbe
from gateway.booking.ledger import Ledger
from gateway.booking.takeover import Owners
from gateway.keys.ring import KNOWN_FOR, UNKNOWN_FOR, KeyRing
from gateway.keys.store import KeyStore
from gateway.lifecycle import PublicListener
from gateway.limits import open_limiter, place_of
from gateway.limits.base import Limiter
from gateway.limits.shared import Counters
from gateway.observe.process import Lag, watch_process
from gateway.pipeline.cursor import CursorCipher
from gateway.pipeline.pipeline import Pipeline
from gateway.pipeline.shedder import AdaptiveLimit, LoadShedder
from gateway.pipeline.steps import hidden_fields
from gateway.policy.policy import Policy
from gateway.policy.running.keeper import PolicyStatus
from gateway.processes.reports import Workers
from gateway.purposes import NotReady, Purpose
from gateway.settings import StartRefused
from gateway.settings.kinds import secret_text
from gateway.store import Store
from gateway.usage import Usage
from gateway.web.addresses import Proxies
from gateway.web.connection_limiter import ConnectionLimiter
from gateway.web.documents import Documents
from gateway.web.front import Front
from gateway.web.observers import Observers
from gateway.web.replies import Replies
from gateway.web.server import public_server
from gateway.web.system import Probe
from gateway.web.tls import STRICT

# Seconds for which the event loop may stand still, and for which that counts.
LAG_TOO_MUCH = 1.0
LAG_COUNTS = 5.0
# The time that workers have to take over a policy and report it.
TAKEN_WITHIN = timedelta(seconds=3)
# What a part tells where it can do its work.
Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answering:
    """The parts that answer partners, and a probe for each."""

    public: PublicListener
    ring: KeyRing
    usage: Usage
    limiter: Limiter
    audit: Buffer
    probes: Mapping[str, Probe]


async def open_answering(  # noqa: PLR0913 - what answers has that many parts
    kit: Kit,
    practice: PracticeSystem,
    policy: Callable[[], Policy],
    listening: socket,
    *,
    store: Store,
    ledger_store: Store,
    owners: Owners,
    counters: Counters | None = None,
) -> Answering:
    """Opens all that answers partners, in order; `counters` are shared with other processes.

    Bookings have a store of their own, so that those that wait for it hold up nobody else.
    """
    ring = KeyRing(KeyStore(store), kit.events, now=kit.now)
    kit.metrics.ask("gateway_keys_loaded", lambda: len(ring))
    kit.metrics.ask("gateway_keys_age_seconds", lambda: ring.age)
    await kit.closing(ring).start()
    usage = Usage(store, kit.events, kit.now)
    kit.closing(usage).start()
    ledger = open_ledger(kit, ledger_store, owners)
    journal = await open_logs(kit, store)
    limiter = await _open_limiter(kit, counters)
    shedder, lag = _open_shedder(kit)
    pipeline = Pipeline(
        keys=ring,
        limiter=limiter,
        policy=policy,
        adapter=practice.adapter,
        ledger=ledger,
        window=practice.window,
        cursors=CursorCipher(practice.secret),
        now=kit.now,
        shedder=shedder,
        audit=journal.audit,
    )
    observers = Observers(journal, kit.metrics, usage, kit.events, kit.now, ring.owner_of)
    documents = Documents(
        public_url=kit.settings.public_url_at(listening.getsockname()[1]),
        policy=policy,
        adapter=practice.adapter,
        window=practice.window,
    )
    probes = {
        "store": partial(probe_store, store, ledger),
        "keys": partial(probe_keys, ring),
        "audit": partial(probe_audit, journal),
        "limiter": partial(probe_limiter, place_of(secret_text(kit.settings.limiter)), limiter),
        "loop": partial(probe_loop, lag, shedder.places),
    }
    kit.metrics.hidden = partial(hidden_fields, policy)
    public = _public_listener(kit, pipeline, documents, observers, listening)
    return Answering(public, ring, usage, limiter, journal.audit, probes)


def _public_listener(
    kit: Kit,
    pipeline: Pipeline,
    documents: Documents,
    observers: Observers,
    listening: socket,
) -> PublicListener:
    watch_process(kit.metrics)
    settings, certificate = kit.settings, certificate_of(kit)
    proxies = Proxies(settings.proxies, settings.proxy_hops)
    replies = Replies(documents.public_url, {} if certificate is None else STRICT)
    front = Front(
        pipeline=pipeline,
        documents=documents,
        replies=replies,
        observers=observers,
        traces=open_spans(kit),
        body_timeout=settings.body_timeout,
        proxies=proxies,
        now=kit.now,
    )
    kit.metrics.ask("gateway_calls_in_flight", lambda: front.running)
    limiter = ConnectionLimiter(
        settings.connections,
        settings.connections_per_address,
        proxies,
        lambda reason: kit.events.report("connections_turned_away", reason=reason),
    )
    kit.metrics.ask("gateway_connections", lambda: len(limiter))
    server = public_server(front, replies, observers, limiter)
    return kit.closing(
        PublicListener(
            front=front,
            runner=web.ServerRunner(server, shutdown_timeout=CUT_OFF),
            socket=listening,
            certificate=certificate,
            drain=settings.drain,
            events=kit.events,
        )
    )


def _open_shedder(kit: Kit) -> tuple[LoadShedder, Lag]:
    """Opens the load shedder, which the lag of the event loop adjusts."""
    settings, lag = kit.settings, Lag(kit.metrics)
    bounds = settings.in_flight, settings.in_flight_per_key, settings.in_flight_bytes
    shedder = LoadShedder(*bounds, kit.events)
    kit.closing(lag).start()
    lag.on_lag = shedder.on_lag
    kit.metrics.ask("gateway_places_per_key", lambda: shedder.places.now)
    return shedder, lag


async def _open_limiter(kit: Kit, counters: Counters | None) -> Limiter:
    settings, url = kit.settings, secret_text(kit.settings.limiter)
    if settings.nodes > 1 and url == "memory:":
        raise StartRefused(
            "more than one of nodes cannot count in memory:, as each would admit every limit"
            " whole; name a limiter such as redis://127.0.0.1:6379",
            "limiter",
        )
    try:
        limiter = open_limiter(
            url,
            kit.events,
            share=settings.nodes * settings.workers,
            patience=settings.limiter_timeout,
            counters=counters,
        )
    except ValueError as error:
        raise StartRefused(str(error), "limiter") from error
    kit.metrics.ask("gateway_limiter_degraded", lambda: limiter.degraded)
    await kit.closing(limiter).start()
    return limiter


async def probe_backend(probe: BackendProbe, breaker: Callable[[], str]) -> Answer:
    """Asks the practice system, and checks it against the mapping; doubts are only warnings."""
    await probe()
    warnings = [str(warning) for warning in probe.warnings]
    return {"breaker": breaker(), **({"warnings": warnings} if warnings else {})}


async def probe_store(store: Store, ledger: Ledger | None = None) -> Answer:
    """Asks the store; returns how many outcomes of bookings wait for it."""
    await store.ping()
    return {"unwritten": ledger.waiting} if ledger is not None and ledger.waiting else {}


async def probe_keys(ring: KeyRing) -> Answer:
    """Raises NotReady where the keys are old; reads go on while the known ones are valid."""
    age = ring.age
    if age > UNKNOWN_FOR:
        stops = (Purpose.BOOKINGS,) if age <= KNOWN_FOR else None
        raise NotReady(f"the keys were last read {age:.0f} seconds ago", stops)
    return {"known": len(ring)}


async def probe_audit(journal: Journal) -> Answer:
    """Raises NotReady where entries cannot be written; reads go on while there is room to wait."""
    audit = journal.audit
    if audit.broken:
        waiting = "1 entry waits" if audit.waiting == 1 else f"{audit.waiting} entries wait"
        why = f"the audit cannot be written: {audit.writer.folder}: {audit.broken}; {waiting}"
        raise NotReady(why, None if audit.is_full else (Purpose.BOOKINGS,))
    return {"head": "not recorded in the store"} if journal.recorder.failing else {}


async def probe_limiter(place: str, limiter: Limiter) -> Answer:
    """Returns whether the limiter is degraded; it is always ready, as each process can count."""
    return {"url": place, **({"degraded": True} if limiter.degraded else {})}


async def probe_loop(lag: Lag, places: AdaptiveLimit) -> Answer:
    """Raises NotReady where the event loop stood still lately; tells if keys have fewer places."""
    late, ago = lag.most(LAG_COUNTS)
    if late >= LAG_TOO_MUCH:
        raise NotReady(f"it stood still for {late:.1f} seconds, {ago:.0f} seconds ago")
    fewer = {"placesPerKey": places.now} if places.now < places.most else {}
    return {"lag": round(late, 3), **fewer}


async def probe_policy(
    status: Callable[[], PolicyStatus], behind: Callable[[], Sequence[Answer]]
) -> Answer:
    """Returns the state of the policy; it is always ready, since a good policy runs."""
    late = behind()
    return {**status().members(), **({"behind": late} if late else {})}


def policy_behind(
    status: Callable[[], PolicyStatus], workers: Workers, now: Callable[[], datetime]
) -> Sequence[Answer]:
    """Returns the workers with another policy than the one in force; none while that is new."""
    current = status()
    # abs: a clock that is set back must not hide them
    if abs(now() - current.loaded_at) < TAKEN_WITHIN:
        return ()
    return [
        {"worker": report.worker, "pid": report.pid, "hash": report.policy[:12]}
        for report in sorted(workers.last(), key=lambda report: report.worker)
        if report.policy != current.policy.hash
    ]
