"""What each part of a running gateway says when it is asked whether it can do its work."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from gateway.audit.journal import Journal
from gateway.backend import BackendProbe
from gateway.booking.ledger import Ledger
from gateway.keys.ring import KNOWN_FOR, UNKNOWN_FOR, KeyRing
from gateway.limits import Limiter
from gateway.observe.process import Lag
from gateway.pipeline.shedder import AdaptiveLimit
from gateway.policy.running.keeper import PolicyStatus
from gateway.processes.reports import Reports, Workers
from gateway.purposes import NotReady, Purpose
from gateway.store import Store
from gateway.web.system import Probe

# Seconds for which the event loop may stand still, and how long that counts.
LAG_TOO_MUCH = 1.0
LAG_COUNTS = 5.0
# How long workers have to take a policy, and to say so.
TAKEN_WITHIN = timedelta(seconds=3)
# The workers that serve by another policy than the one in force.
Behind = Callable[[], Sequence[Mapping[str, Any]]]


def of_backend(probe: BackendProbe, breaker: Callable[[], str]) -> Probe:
    """The practice system answers, and has all that the mapping names.

    What only a sample of its records says is no more than warnings.
    """

    async def told() -> Mapping[str, Any]:
        await probe()
        warnings = [str(each) for each in probe.warnings]
        return {"breaker": breaker(), **({"warnings": warnings} if warnings else {})}

    return told


def of_store(store: Store) -> Probe:
    """The store answers."""

    async def told() -> Mapping[str, Any]:
        await store.ping()
        return {}

    return told


def of_ledger(store: Store, ledger: Ledger) -> Probe:
    """The store answers; how many outcomes of bookings wait for it."""

    async def told() -> Mapping[str, Any]:
        await store.ping()
        return {"unwritten": ledger.waiting} if ledger.waiting else {}

    return told


def of_workers(workers: Workers, reports: Reports) -> Probe:
    """At least one worker can do its work."""

    async def told() -> Mapping[str, Any]:
        return workers.readiness(await reports.ask())

    return told


def of_keys(ring: KeyRing) -> Probe:
    """The keys were read lately; reads go on for as long as the keys that are known still count."""

    async def told() -> Mapping[str, Any]:
        age = ring.age
        if age > UNKNOWN_FOR:
            stops = (Purpose.BOOKINGS,) if age <= KNOWN_FOR else None
            raise NotReady(f"the keys were last read {age:.0f} seconds ago", stops)
        return {"known": len(ring)}

    return told


def of_policy(standing: Callable[[], PolicyStatus], behind: Behind) -> Probe:
    """Always ready, whatever is the matter with the file: a good policy runs."""

    async def told() -> Mapping[str, Any]:
        late = behind()
        return {**standing().members(), **({"behind": late} if late else {})}

    return told


def policy_behind(
    standing: Callable[[], PolicyStatus], reports: Reports, now: Callable[[], datetime]
) -> Sequence[Mapping[str, Any]]:
    """The workers that serve by another policy than the one in force, and by which.

    None where that has just come into force: they take it within a moment.
    """
    wanted = standing()
    # a clock that is set back must not hide them for as long
    if abs(now() - wanted.loaded_at) < TAKEN_WITHIN:
        return ()
    return [
        {"worker": each.worker, "pid": each.pid, "hash": each.policy[:12]}
        for each in sorted(reports.last(), key=lambda report: report.worker)
        if each.policy != wanted.policy.hash
    ]


def of_audit(journal: Journal) -> Probe:
    """Entries come to rest on disk; whether the store knows how far.

    Where they do not, reads go on for as long as their entries find room to wait.
    """

    async def told() -> Mapping[str, Any]:
        audit = journal.audit
        if audit.broken:
            waiting = "1 entry waits" if audit.waiting == 1 else f"{audit.waiting} entries wait"
            why = f"{audit.place}: {audit.broken}; {waiting}"
            stops = None if audit.is_full else (Purpose.BOOKINGS,)
            raise NotReady(f"the audit cannot be written: {why}", stops)
        return {"head": "not recorded in the store"} if journal.recorder.failing else {}

    return told


def of_loop(lag: Lag, places: AdaptiveLimit) -> Probe:
    """The event loop has not stood still lately: while it does, no call is answered.

    Where it has too much to do, and so keys have fewer places, that is said.
    """

    async def told() -> Mapping[str, Any]:
        late, ago = lag.most(LAG_COUNTS)
        if late >= LAG_TOO_MUCH:
            raise NotReady(f"it stood still for {late:.1f} seconds, {ago:.0f} seconds ago")
        fewer = {"placesPerKey": places.now} if places.now < places.most else {}
        return {"lag": round(late, 3), **fewer}

    return told


def of_limiter(place: str, limiter: Limiter) -> Probe:
    """Always ready: where it is down, each process counts its share, and that is said."""

    async def told() -> Mapping[str, Any]:
        return {"url": place, **({"degraded": True} if limiter.degraded else {})}

    return told
