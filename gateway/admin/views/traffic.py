"""Shows the traffic, how quickly calls are answered, and the state of each part."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, NamedTuple

from aiohttp import web

from gateway.admin.context import Sampler
from gateway.admin.visit import Visit, get
from gateway.admin.words import Words
from gateway.inquiries import traffic

MINUTES, LAST_MINUTES = 60, 300.0
SHARES = (0.5, 0.95, 0.99)
# The outcomes of calls that the practice system did not answer.
_IN_VAIN = {
    "BackendTimeout": "traffic.too_late",
    "BackendUnavailable": "traffic.not_reached",
    "BackendNonsense": "traffic.nonsense",
    "OutcomeUnknown": "traffic.outcome_lost",
    "not asked": "traffic.not_asked",
}
ORDER = ("backend", "store", "keys", "audit", "limiter", "policy", "loop", "workers")
# The breaker's states in the order of the figure, each with its mark.
_BREAKERS = (("closed", "whole"), ("half_open", "masked"), ("open", "bad"))
_NOTHING = traffic.Totals(0.0, {}, {}, {}, {})
Part = Mapping[str, Any]


@get("/traffic")
@get("/traffic/live", polled=True)
async def _page(visit: Visit) -> web.Response:
    """The page, or the part of it that changes; with `still` the page does not poll."""
    sampler = visit.panel.sampler
    await sampler.look()
    report = sampler.readiness.value
    parts = {} if report is None else report["parts"]
    return visit.page(
        "traffic/live.html" if visit.request.path == "/traffic/live" else "traffic/page.html",
        is_still=visit.query("still") == "1",
        **_figures(visit, sampler),
        sampler=sampler,
        parts=part_states(parts),
        is_up=parts.get("backend", {}).get("ready", False),
        breaker=_BREAKERS[sampler.gauge("backend_breaker")],
        span=lambda seconds: _in_words(visit.words, traffic.Latency(seconds)),
    )


def _figures(visit: Visit, sampler: Sampler) -> dict[str, Any]:
    words, samples = visit.words, sampler.samples
    recent = samples.last(LAST_MINUTES) or _NOTHING
    newest = samples.last(traffic.MINUTE) or _NOTHING
    this = visit.now.replace(second=0, microsecond=0)
    starts = [this - timedelta(minutes=back) for back in reversed(range(MINUTES))]
    counted = [samples.minute(sampler.steady(start)) for start in starts]
    kinds = [kind for kind in traffic.KINDS if any(minute[kind] for minute in counted if minute)]
    series = [
        {
            "label": words(f"traffic.kind_{kind}"),
            "values": [None if minute is None else minute[kind] for minute in counted],
            "look": traffic.KINDS.index(kind),
        }
        for kind in kinds or [traffic.KINDS[0]]
    ]
    ended, operations, backend = recent.kinds, recent.operations, recent.backend
    failures = {text: round(recent.outcomes.get(name, 0)) for name, text in _IN_VAIN.items()}
    pairs = zip(reversed(starts), reversed(counted), strict=True)
    return {
        "minutes": [(start, minute) for start, minute in pairs if minute is not None],
        "kinds": kinds,
        "chart": visit.chart(starts, series, unit="traffic.per_minute", step="minute"),
        "last_minute": round(sum(newest.kinds.values())),
        "last_calls": round(sum(ended.values())),
        "last_failed": round(ended.get("failed", 0)),
        "last_refused": round(sum(ended.get(kind, 0) for kind in traffic.KINDS[1:-1])),
        "all_times": _times(words, "", traffic.total(operations.values())),
        "operations": [
            _times(words, name, operations[name])
            for name in traffic.slowest_first(operations, SHARES[1])
        ],
        "asked": [
            _times(words, " ".join(labels), backend[labels])
            for labels in traffic.slowest_first(backend, SHARES[1])
        ],
        "in_vain": {text: times for text, times in failures.items() if times},
    }


def _times(words: Words, name: str, buckets: traffic.Buckets) -> dict[str, Any]:
    """Returns a row of how long calls took, at each of SHARES, in words."""
    latencies = (traffic.latency(buckets, share) for share in SHARES)
    spans = [_in_words(words, time) for time in latencies if time is not None]
    return {"name": name, "calls": sum(buckets), "spans": spans}


def _in_words(words: Words, latency: traffic.Latency) -> str:
    """Returns a time as people read it: 2.5 ms, 1.2 s, below 1 ms."""
    unit, amount = "seconds", latency.seconds
    if amount < 0.9995:
        unit, amount = "milliseconds", amount * 1000
    amount = round(amount, 1) if amount < 9.95 else round(amount)
    text = words(f"traffic.{unit}", time=words.number(amount, 0 if amount % 1 == 0 else 1))
    if latency.side == 0:
        return text
    return words("traffic.below" if latency.side < 0 else "traffic.above", time=text)


class PartState(NamedTuple):
    """The state of a part: `about` names its texts, `place` is its URL, `reason` why it is down."""

    name: str
    state: Literal["down", "note", "fine"]
    about: str
    place: str
    reason: str = ""


def part_states(parts: Mapping[str, Part]) -> list[PartState]:
    """Returns the state of each part, over all workers, in ORDER."""
    by_name: dict[str, list[tuple[str, Part]]] = {}
    for name, part in parts.items():
        by_name.setdefault(name, []).append(("", part))
    for worker in parts.get("workers", {}).get("each", ()):
        who = f"worker {worker['worker']}: "
        for name, part in worker["parts"].items():
            by_name.setdefault(name, []).append((who, part))
        if not worker["ready"] and all(part["ready"] for part in worker["parts"].values()):
            silent = {"ready": False, "reason": worker.get("reason", "")}
            by_name.setdefault("workers", []).append((who, silent))
    return [_state(name, by_name[name]) for name in ORDER if name in by_name]


def _state(name: str, parts: Sequence[tuple[str, Part]]) -> PartState:
    """Returns the state of one part in all processes: the first that is down or flawed counts."""
    place = str(parts[-1][1].get("url", ""))
    for who, part in parts:
        if not part["ready"]:
            return PartState(name, "down", name, place, who + part.get("reason", ""))
    states = {"stale": "stale", "held back": "held_back"}
    for _, part in parts:
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
        if note := notes.get(name):
            return PartState(name, "note", note, place)
    return PartState(name, "fine", name, place)
