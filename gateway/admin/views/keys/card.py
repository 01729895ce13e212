"""The page of one key: what it may, what it sees, how it was used, and what was done to it."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any

import orjson
from aiohttp import web

from gateway.admin.views.keys.found import found_key
from gateway.admin.views.keys.seen import seen_by
from gateway.admin.visit import Visit
from gateway.audit.chains import audit_folder
from gateway.audit.entries import AuditLine
from gateway.audit.search import EntryFilter
from gateway.inquiries.entries import find_entries
from gateway.inquiries.key_book import UNUSED, states_of
from gateway.keys.store import KeyStore
from gateway.usage.store import CallSums, by_day

DAYS = 30
LAST = 10
# For how long the secrets before a new one go on working, as it is offered.
OVERLAPS = {
    "24h": timedelta(hours=24),
    "1h": timedelta(hours=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "none": timedelta(),
}


async def card(visit: Visit, errors: Mapping[str, str] | None = None) -> web.Response:
    """All of it; `errors` are those of its own forms."""
    key, secrets = await found_key(visit)
    parts = visit.parts
    now = await KeyStore(parts.store).key_time(parts.now())
    days = await _days(visit, key.id)
    total = CallSums()
    for each in days.values():
        total.add(each)
    used = await parts.used([key.id])
    last_used = key.last_used_at
    is_unused = key.created_at < now - UNUSED and (last_used is None or last_used < now - UNUSED)
    return visit.page(
        "keys/card.html",
        422 if errors else 200,
        errors=errors or {},
        hint=secrets[-1].hint if secrets else "",
        secrets=secrets,
        states=states_of(key, is_unused, now),
        used=None if used is None else used[key.id].calls if key.id in used else 0,
        total=total,
        days=days,
        chart=_chart(visit, days),
        entries=await _last(visit, key.id),
        deeds=await visit.administration.log.last(LAST, subject=key.id),
        **seen_by(visit, key),
        title="does_see",
        overlaps=OVERLAPS,
        now=now,
    )


async def _days(visit: Visit, key_id: str) -> Mapping[date, CallSums]:
    """The sums of each of the last days, in UTC as they are kept; an empty day has empty ones."""
    today = visit.parts.now().date()
    first = today - timedelta(days=DAYS - 1)
    days = {first + timedelta(days=number): CallSums() for number in range(DAYS)}
    since = datetime.combine(first, time(), visit.parts.now().tzinfo)
    for (day, _), sums in (await by_day(visit.parts.store, key_id, since)).items():
        if day.date() in days:
            days[day.date()].add(sums)
    return days


def _chart(visit: Visit, days: Mapping[date, CallSums]) -> str:
    """What the script draws; the same numbers stand in a table beside it."""
    said = visit.words
    series = [
        {"label": said("keys.answered"), "values": [each.answered for each in days.values()]},
        {
            "label": said("keys.refused"),
            "values": [each.calls - each.answered - each.failed for each in days.values()],
        },
        {"label": said("keys.failed"), "values": [each.failed for each in days.values()]},
    ]
    noon = [datetime.combine(day, time(12), visit.parts.zone) for day in days]
    drawn: dict[str, Any] = {
        "times": [int(moment.timestamp()) for moment in noon],
        "series": series,
        "unit": said("keys.calls"),
        "kind": "bars",
        "zone": visit.parts.zone.key,
        "step": "day",
        "language": said.language,
    }
    return orjson.dumps(drawn).decode()


async def _last(visit: Visit, key_id: str) -> list[tuple[datetime, AuditLine]]:
    """When, and its last entries on this machine; none where the audit cannot be read."""
    folder, wanted = audit_folder(visit.parts.settings), EntryFilter(keys=frozenset({key_id}))
    try:
        found = await find_entries(visit.parts.store, folder, wanted, LAST)
    except OSError:
        return []
    entries = [(datetime.fromisoformat(each.time), each) for each in found.entries]
    return sorted(entries, key=lambda each: each[0], reverse=True)
