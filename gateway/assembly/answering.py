"""All that stands between a partner's connection and the practice system, in one process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from gateway.assembly.bookings import open_ledger
from gateway.assembly.kit import Kit
from gateway.assembly.noting import opened_journal, opened_traces, watched_lag
from gateway.assembly.practice import Practice
from gateway.assembly.sides import public_options
from gateway.audit.buffer import Buffer
from gateway.booking.takeover import Owners
from gateway.keys.ring import KeyRing
from gateway.keys.store import KeyStore
from gateway.limits import Counters, Limiter, open_limiter, place_of
from gateway.observe.callers import LoadTroubles
from gateway.observe.process import watch_process
from gateway.observe.troubles import KeyTroubles, LimiterTroubles, UsageTroubles
from gateway.pipeline.cursor import CursorCipher
from gateway.pipeline.pipeline import Pipeline
from gateway.pipeline.shedder import LoadShedder
from gateway.pipeline.steps import hidden_fields, owner_of
from gateway.policy.policy import Policy
from gateway.probes import of_audit, of_keys, of_ledger, of_limiter, of_loop
from gateway.settings import StartRefused
from gateway.store import Store
from gateway.usage import Usage
from gateway.web.addresses import Proxies
from gateway.web.documents import Documents
from gateway.web.front import Front
from gateway.web.observers import Observers
from gateway.web.replies import Replies
from gateway.web.server import PublicServer
from gateway.web.system import Probe
from gateway.web.tls import STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What calls are answered with: a policy that may change, at that port of this machine.

    `ledger` is a store that bookings have for themselves: those that wait for it must not hold up
    anybody else. `counters` are shared with other processes, where there are any.
    """

    policy: Callable[[], Policy]
    port: int
    store: Store
    ledger: Store
    owners: Owners
    counters: Counters | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """What answers partners, and how each of its parts fares."""

    front: Front
    server: PublicServer
    ring: KeyRing
    usage: Usage
    limiter: Limiter
    audit: Buffer
    parts: Mapping[str, Probe]


async def open_answering(kit: Kit, practice: Practice, wanted: Wanted) -> Answering:
    """Opens all of it, in order."""
    settings, policy, adapter = kit.settings, wanted.policy, practice.adapter
    ring = await _ring(kit, wanted.store)
    usage = _usage(kit, wanted.store)
    ledger = open_ledger(kit, wanted.ledger, wanted.owners)
    journal = await opened_journal(kit, wanted.store)
    limiter = await _limiter(kit, wanted.counters)
    shedder = _shedder(kit)
    lag = watched_lag(kit)
    lag.on_lag(shedder.on_lag)
    pipeline = Pipeline(
        keys=ring,
        limiter=limiter,
        policy=policy,
        adapter=adapter,
        ledger=ledger,
        window=practice.window,
        cursors=CursorCipher(practice.secret),
        now=kit.now,
        shedder=shedder,
        audit=journal.audit,
    )
    whose = partial(owner_of, keys=ring)
    observers = Observers(journal, kit.metrics, usage, kit.events, kit.now, whose)
    proxies = Proxies(settings.proxies, settings.proxy_hops)
    public_url = settings.public_url_at(wanted.port)
    replies = Replies(public_url, {} if settings.tls_certificate is None else STRICT)
    documents = Documents(
        public_url=public_url,
        keys=ring,
        policy=policy,
        adapter=adapter,
        window=practice.window,
        now=kit.now,
    )
    front = Front(
        pipeline=pipeline,
        documents=documents,
        replies=replies,
        observers=observers,
        traces=opened_traces(kit),
        body_timeout=settings.body_timeout,
        proxies=proxies,
        now=kit.now,
    )
    parts = {
        "store": of_ledger(wanted.store, ledger),
        "keys": of_keys(ring),
        "audit": of_audit(journal),
        "limiter": of_limiter(place_of(settings.limiter.get_secret_value()), limiter),
        "loop": of_loop(lag, shedder.places),
    }
    kit.metrics.ask("gateway_calls_in_flight", lambda: front.running)
    kit.metrics.ask("gateway_places_per_key", lambda: shedder.places.now)
    kit.metrics.shown_records.hidden = partial(hidden_fields, policy)
    watch_process(kit.metrics)
    server = PublicServer(front, replies, observers, public_options(kit, proxies))
    return Answering(
        front=front,
        server=server,
        ring=ring,
        usage=usage,
        limiter=limiter,
        audit=journal.audit,
        parts=parts,
    )


def _shedder(kit: Kit) -> LoadShedder:
    settings = kit.settings
    troubles = LoadTroubles(kit.metrics, kit.events, settings.in_flight_per_key)
    return LoadShedder(
        settings.in_flight,
        settings.in_flight_per_key,
        settings.in_flight_bytes,
        on_refusal=troubles.turned_away,
        on_change=troubles.places,
    )


async def _ring(kit: Kit, store: Store) -> KeyRing:
    ring = KeyRing(KeyStore(store), KeyTroubles(kit.events), now=kit.now)
    kit.metrics.ask("gateway_keys_loaded", lambda: len(ring))
    kit.metrics.ask("gateway_keys_age_seconds", lambda: ring.age)
    await kit.closing(ring).start()
    return ring


def _usage(kit: Kit, store: Store) -> Usage:
    usage = Usage(store, UsageTroubles(kit.metrics, kit.events), kit.now)
    kit.closing(usage).start()
    return usage


async def _limiter(kit: Kit, counters: Counters | None) -> Limiter:
    settings, url = kit.settings, kit.settings.limiter.get_secret_value()
    if settings.nodes > 1 and url == "memory:":
        raise StartRefused(
            "more than one of nodes cannot count in memory:, as each would admit every limit"
            " whole; name a limiter such as redis://127.0.0.1:6379",
            "limiter",
        )
    watcher = LimiterTroubles(kit.metrics, kit.events)
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
    kit.metrics.ask("gateway_limiter_degraded", lambda: limiter.degraded)
    await kit.closing(limiter).start()
    return limiter
