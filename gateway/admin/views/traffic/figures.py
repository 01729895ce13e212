"""What comes and how quickly it is answered, ready to be shown: a chart, and tables of times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from gateway.admin.sampler import Sampler
from gateway.admin.visit import Visit
from gateway.admin.words import Words
from gateway.inquiries.traffic import (
    KINDS,
    Buckets,
    Latency,
    gauge,
    latency,
    slowest_first,
    total,
)
from gateway.observe.metrics import Labels

MINUTES = 60
LAST_MINUTE, LAST_MINUTES = 60.0, 300.0
SHARES = (0.5, 0.95, 0.99)
# What the practice system was asked, and did not do; all other outcomes are answers.
_IN_VAIN = {
    "BackendTimeout": "traffic.too_late",
    "BackendUnavailable": "traffic.not_reached",
    "BackendNonsense": "traffic.nonsense",
    "OutcomeUnknown": "traffic.outcome_lost",
    "not asked": "traffic.not_asked",
}


@dataclass(frozen=True, slots=True)
class Times:
    """How long calls of one kind took: `spans` are those of SHARES, in words."""

    name: str
    calls: int
    spans: Sequence[str]


def figures(visit: Visit, sampler: Sampler) -> dict[str, Any]:
    """All that the figures tell."""
    told = sampler.figures.value
    recent, minute = sampler.samples.last(LAST_MINUTES), sampler.samples.last(LAST_MINUTE)
    minutes = _minutes(visit, sampler)
    kinds = [kind for kind in KINDS if any(each[kind] for _, each in minutes if each)]
    shown = {} if told is None else told.snapshot
    operations = {} if recent is None else recent.operations
    backend = {} if recent is None else recent.backend
    ended = {} if recent is None else recent.kinds
    return {
        "as_of": None if told is None else told.at,
        "figures_failed": sampler.figures.has_failed,
        "began_at": sampler.began_at,
        "minutes": [each for each in reversed(minutes) if each[1] is not None],
        "kinds": kinds,
        "chart": _chart(visit, minutes, kinds or [KINDS[0]]),
        "last_minute": 0 if minute is None else round(sum(minute.kinds.values())),
        "last_calls": round(sum(ended.values())),
        "last_failed": round(ended.get("failed", 0)),
        "last_refused": round(sum(ended.get(kind, 0) for kind in KINDS[1:-1])),
        "all_times": _times(visit.words, "", total(operations.values())),
        "operations": [
            _times(visit.words, name, operations[name])
            for name in slowest_first(operations, SHARES[1])
        ],
        "asked": _asked(visit.words, backend),
        "in_vain": {} if recent is None else _in_vain(recent.outcomes),
        **{
            name: int(gauge(shown, f"gateway_{figure}"))
            for name, figure in (
                ("in_flight", "calls_in_flight"),
                ("connections", "connections"),
                ("pool", "backend_pool_in_use"),
                ("waiting", "backend_pool_waiting"),
            )
        },
    }


def in_words(words: Words, found: Latency) -> str:
    """A time as people read it: 2.5 ms, 1.2 s, below 1 ms."""
    text = _span(words, found.seconds)
    if found.side == 0:
        return text
    return words("traffic.below" if found.side < 0 else "traffic.above", time=text)


def _span(words: Words, seconds: float) -> str:
    unit, amount = ("seconds", seconds) if seconds >= 0.9995 else ("milliseconds", seconds * 1000)
    amount = round(amount, 1) if amount < 9.95 else round(amount)
    return words(f"traffic.{unit}", time=words.number(amount, 0 if amount % 1 == 0 else 1))


def _times(words: Words, name: str, buckets: Buckets) -> Times:
    found = (latency(buckets, share) for share in SHARES)
    return Times(name, sum(buckets), [in_words(words, each) for each in found if each is not None])


def _asked(words: Words, backend: Mapping[Labels, Buckets]) -> list[Times]:
    """What was asked of the practice system, the slowest first."""
    return [
        _times(words, " ".join(each), backend[each]) for each in slowest_first(backend, SHARES[1])
    ]


def _in_vain(outcomes: Mapping[str, float]) -> dict[str, int]:
    """Text -> how often, of what the practice system did not do."""
    found = {text: round(outcomes.get(outcome, 0)) for outcome, text in _IN_VAIN.items()}
    return {text: times for text, times in found.items() if times}


def _minutes(visit: Visit, sampler: Sampler) -> list[tuple[datetime, Mapping[str, int] | None]]:
    """The minutes of the last hour, this one too, each with how its calls ended."""
    this = visit.parts.now().replace(second=0, microsecond=0)
    starts = [this - timedelta(minutes=back) for back in reversed(range(MINUTES))]
    counted = sampler.samples.minutes([sampler.steady(start) for start in starts])
    return list(zip(starts, counted, strict=True))


def _chart(
    visit: Visit, minutes: Sequence[tuple[datetime, Mapping[str, int] | None]], kinds: Sequence[str]
) -> str:
    """What the script draws; the same numbers stand in a table beside it."""
    drawn = {
        "times": [int(start.timestamp()) for start, _ in minutes],
        "series": [
            {
                "label": visit.words(f"traffic.kind_{kind}"),
                "values": [None if each is None else each[kind] for _, each in minutes],
                "look": KINDS.index(kind),
            }
            for kind in kinds
        ],
        "unit": visit.words("traffic.per_minute"),
        "kind": "bars",
        "zone": visit.parts.zone.key,
        "step": "minute",
        "language": visit.words.language,
    }
    return orjson.dumps(drawn).decode()
