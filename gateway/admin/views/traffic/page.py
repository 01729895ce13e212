"""The page of traffic and health, and the part of it that is asked for again and again."""

from typing import Any

from aiohttp import web

from gateway.admin.sampler import SAMPLER, Sampler
from gateway.admin.views.traffic.figures import figures, in_words
from gateway.admin.views.traffic.health import breaker, parts_told
from gateway.admin.visit import Visit
from gateway.inquiries.traffic import Latency, gauge


async def page(visit: Visit) -> web.Response:
    """All of it; with `still` it stays as it is until it is asked for again."""
    return visit.page(
        "traffic/page.html", is_still=visit.asked("still") == "1", **await _shown(visit)
    )


async def live(visit: Visit) -> web.Response:
    """What changes."""
    return visit.page("traffic/live.html", **await _shown(visit))


async def _shown(visit: Visit) -> dict[str, Any]:
    sampler = visit.request.app[SAMPLER]
    await sampler.look()
    report = sampler.readiness.value
    parts = {} if report is None else report["parts"]
    return {
        **figures(visit, sampler),
        **_bookings(sampler),
        "parts": parts_told(parts),
        "is_up": parts.get("backend", {}).get("ready", False),
        "breaker": breaker(sampler),
        "keys": sampler.keys.value,
        "keys_failed": sampler.keys.has_failed,
        "span": lambda seconds: in_words(visit.words, Latency(seconds)),
    }


def _bookings(sampler: Sampler) -> dict[str, Any]:
    figures, bookings = sampler.figures.value, sampler.bookings.value
    snapshot = {} if figures is None else figures.snapshot
    keys = sampler.keys.value
    return {
        "bookings": bookings,
        "bookings_failed": sampler.bookings.has_failed,
        "names": {} if keys is None else keys.names,
        "vets": sampler.vets.value or {},
        "ledger": {} if bookings is None else bookings.states,
        "unwritten": int(gauge(snapshot, "gateway_ledger_unwritten")),
        "overwritten": int(gauge(snapshot, "gateway_bookings_overwritten")),
    }
