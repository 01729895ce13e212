"""Traffic and health: what comes, how quickly it is answered, and how each part fares."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from aiohttp import web

from gateway.admin.sampler import SAMPLER, Sampler
from gateway.admin.visit import Visit, get
from gateway.admin.words import Words
from gateway.inquiries.traffic import (
    KINDS,
    MINUTE,
    Buckets,
    Latency,
    Totals,
    latency,
    slowest_first,
    total,
)

MINUTES, LAST_MINUTES = 60, 300.0
SHARES = (0.5, 0.95, 0.99)
# What the practice system was asked, and did not do; all other outcomes are answers.
_IN_VAIN = {
    "BackendTimeout": "traffic.too_late",
    "BackendUnavailable": "traffic.not_reached",
    "BackendNonsense": "traffic.nonsense",
    "OutcomeUnknown": "traffic.outcome_lost",
    "not asked": "traffic.not_asked",
}
ORDER = ("backend", "store", "keys", "audit", "limiter", "policy", "loop", "workers")
# The breaker's states as the figure tells them, with a mark for each.
_BREAKERS = (("closed", "whole"), ("half_open", "masked"), ("open", "bad"))
_NOTHING = Totals(0.0, {}, {}, {}, {})
Part = Mapping[str, Any]
Minute = tuple[datetime, Mapping[str, int] | None]


@dataclass(frozen=True, slots=True)
class Latencies:
    """How long calls of one kind took: `spans` are those of SHARES, in words."""

    name: str
    calls: int
    spans: Sequence[str]


async def _page(visit: Visit, *, template: str) -> web.Response:
    """All, or what changes of it; with `still` it stays as it is until it is asked for again."""
    sampler = visit.request.app[SAMPLER]
    await sampler.look()
    report, keys, bookings = sampler.readiness.value, sampler.keys.value, sampler.bookings.value
    parts = {} if report is None else report["parts"]
    state, mark = _BREAKERS[sampler.gauge("backend_breaker")]
    return visit.page(
        template,
        is_still=visit.asked("still") == "1",
        **_figures(visit, sampler),
        bookings=bookings,
        bookings_failed=sampler.bookings.has_failed,
        names={} if keys is None else keys.names,
        vets=sampler.vets.value or {},
        ledger={} if bookings is None else bookings.states,
        unwritten=sampler.gauge("ledger_unwritten"),
        overwritten=sampler.gauge("bookings_overwritten"),
        parts=part_states(parts),
        is_up=parts.get("backend", {}).get("ready", False),
        breaker={"state": state, "mark": mark, "since": sampler.breaker_since},
        keys=keys,
        keys_failed=sampler.keys.has_failed,
        span=lambda seconds: _in_words(visit.words, Latency(seconds)),
    )


def _figures(visit: Visit, sampler: Sampler) -> dict[str, Any]:
    """Returns all that the figures tell: a chart, and tables of times."""
    words, samples, told = visit.words, sampler.samples, sampler.figures.value
    recent, minute = samples.last(LAST_MINUTES) or _NOTHING, samples.last(MINUTE) or _NOTHING
    this = visit.now.replace(second=0, microsecond=0)
    starts = [this - timedelta(minutes=back) for back in reversed(range(MINUTES))]
    counted = samples.minutes([sampler.steady(start) for start in starts])
    minutes = list(zip(starts, counted, strict=True))
    kinds = [kind for kind in KINDS if any(each[kind] for each in counted if each)]
    ended, operations, backend = recent.kinds, recent.operations, recent.backend
    failures = {text: round(recent.outcomes.get(name, 0)) for name, text in _IN_VAIN.items()}
    return {
        "as_of": None if told is None else told.at,
        "figures_failed": sampler.figures.has_failed,
        "began_at": sampler.began_at,
        "minutes": [each for each in reversed(minutes) if each[1] is not None],
        "kinds": kinds,
        "chart": _chart(visit, minutes, kinds or [KINDS[0]]),
        "last_minute": round(sum(minute.kinds.values())),
        "last_calls": round(sum(ended.values())),
        "last_failed": round(ended.get("failed", 0)),
        "last_refused": round(sum(ended.get(kind, 0) for kind in KINDS[1:-1])),
        "all_times": _latencies(words, "", total(operations.values())),
        "operations": [
            _latencies(words, name, operations[name])
            for name in slowest_first(operations, SHARES[1])
        ],
        "asked": [
            _latencies(words, " ".join(labels), backend[labels])
            for labels in slowest_first(backend, SHARES[1])
        ],
        "in_vain": {text: times for text, times in failures.items() if times},
        "in_flight": sampler.gauge("calls_in_flight"),
        "connections": sampler.gauge("connections"),
        "pool": sampler.gauge("backend_pool_in_use"),
        "waiting": sampler.gauge("backend_pool_waiting"),
    }


def _chart(visit: Visit, minutes: Sequence[Minute], kinds: Sequence[str]) -> str:
    series = [
        {
            "label": visit.words(f"traffic.kind_{kind}"),
            "values": [None if counted is None else counted[kind] for _, counted in minutes],
            "look": KINDS.index(kind),
        }
        for kind in kinds
    ]
    starts = [start for start, _ in minutes]
    return visit.chart(starts, series, unit="traffic.per_minute", step="minute")


def _latencies(words: Words, name: str, buckets: Buckets) -> Latencies:
    found = (latency(buckets, share) for share in SHARES)
    spans = [_in_words(words, each) for each in found if each is not None]
    return Latencies(name, sum(buckets), spans)


def _in_words(words: Words, found: Latency) -> str:
    """Returns a time as people read it: 2.5 ms, 1.2 s, below 1 ms."""
    unit, amount = "seconds", found.seconds
    if amount < 0.9995:
        unit, amount = "milliseconds", amount * 1000
    amount = round(amount, 1) if amount < 9.95 else round(amount)
    text = words(f"traffic.{unit}", time=words.number(amount, 0 if amount % 1 == 0 else 1))
    if found.side == 0:
        return text
    return words("traffic.below" if found.side < 0 else "traffic.above", time=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartState:
    """One part: `said` and `do` name texts, `reason` is what readiness says itself.

    `place` is where it is, where that can be told apart.
    """

    name: str
    mark: str
    state: str
    said: str
    do: str | None = None
    reason: str = ""
    place: str = ""


def part_states(parts: Mapping[str, Part]) -> list[PartState]:
    """Returns each part, those of the workers too, in one order."""
    found: dict[str, list[tuple[str, Part]]] = {}
    for name, who, part in _each(parts):
        found.setdefault(name, []).append((who, part))
    return [
        replace(_state(name, found[name]), place=str(found[name][-1][1].get("url", "")))
        for name in ORDER
        if name in found
    ]


def _each(parts: Mapping[str, Part]) -> Iterator[tuple[str, str, Part]]:
    """Yields name, whose it is, and the part."""
    for name, part in parts.items():
        yield name, "", part
    for worker in parts.get("workers", {}).get("each", ()):
        who = f"worker {worker['worker']}"
        for name, part in worker["parts"].items():
            yield name, who, part
        if not worker["ready"] and all(part["ready"] for part in worker["parts"].values()):
            yield "workers", who, {"ready": False, "reason": worker.get("reason", "")}


def _state(name: str, parts: Sequence[tuple[str, Part]]) -> PartState:
    """Returns that of one part in each process: the first that is down, or has a flaw, counts."""
    for who, part in parts:
        if not part["ready"]:
            reason = f"{who}: {part.get('reason', '')}" if who else part.get("reason", "")
            said, do = f"traffic.down_{name}", f"traffic.do_{name}"
            return PartState(name=name, mark="bad", state="down", said=said, do=do, reason=reason)
    for _, part in parts:
        if note := _note(name, part):
            said, do = f"traffic.note_{note}", f"traffic.do_{note}"
            return PartState(name=name, mark="masked", state="note", said=said, do=do)
    return PartState(name=name, mark="whole", state="fine", said=f"traffic.fine_{name}")


def _note(name: str, part: Part) -> str:
    """Returns what is the matter with a part that is ready; "" where nothing is."""
    states = {"stale": "stale", "held back": "held_back"}
    notes = {
        "backend": part.get("breaker", "closed") != "closed" and "left_alone",
        "store": part.get("unwritten") and "unwritten",
        "audit": part.get("head") and "unrecorded",
        "limiter": part.get("degraded") and "degraded",
        "policy": (part.get("waitsFor") == "cases" and "cases_wait")
        or states.get(part.get("state", ""))
        or (part.get("behind") and "behind")
        or (part.get("cases") and "cases"),
        "loop": part.get("placesPerKey") and "late",
    }
    return notes.get(name) or ""


PAGES = (
    get("/traffic", partial(_page, template="traffic/page.html")),
    get("/traffic/live", partial(_page, template="traffic/live.html"), polled=True),
)
