"""Keys: listed, looked at, rotated and revoked; a secret is shown once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from aiohttp import web

from gateway.admin.policy_words import PolicyWords
from gateway.admin.visit import Visit
from gateway.audit.chains import audit_folder
from gateway.audit.entries import AuditLine
from gateway.audit.search import EntryFilter
from gateway.contract.access import Permission
from gateway.contract.operations import BASE_PATH, OPERATIONS
from gateway.inquiries.audit import find_entries
from gateway.inquiries.keys import UNUSED, Listed, Selection, Which, closed_to, sights, states_of
from gateway.keys.key import Key
from gateway.keys.store import KeyStore
from gateway.keys.told import ChangedKey, Secret
from gateway.usage.store import CallSums, by_day

AT_ONCE = 50
ORDERS = ("name", "newest", "used", "share")
# Days of use, and entries and deeds, that stand on a key's page.
DAYS, LAST = 30, 10
# For how long the secrets before a new one go on working, as it is offered.
OVERLAPS = {
    "24h": timedelta(hours=24),
    "1h": timedelta(hours=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "none": timedelta(),
}
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key in the table; `used` is how many calls of its limit are used, None where unknown."""

    listed: Listed
    last_used: datetime | None = None
    used: int | None = None

    @property
    def share(self) -> float:
        """Of its limit."""
        return min(1.0, (self.used or 0) / max(1, self.listed.key.limit))


async def key_list(visit: Visit) -> web.Response:
    """The table; where a page that is open asks, the table alone."""
    wanted, order = visit.asked("q")[:100], visit.asked("order")
    which = Which(visit.asked("which")) if visit.asked("which") in set(Which) else Which.ACTIVE
    order = order if order in ORDERS else ORDERS[0]
    found = await visit.keys.find(wanted, which, visit.now)
    listed = await _sorted(visit, found, order)
    pages = max(1, -(-len(listed) // AT_ONCE))
    asked = visit.asked("page")
    number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 7 else 1
    number = min(max(1, number), pages)
    shown = listed[(number - 1) * AT_ONCE : number * AT_ONCE]
    used, calls = await _last_used(visit, shown), await _calls(visit, shown)
    return visit.page(
        "keys/table.html" if visit.is_part else "keys/list.html",
        rows=[KeyRow(each, used.get(each.key.id), calls.get(each.key.id)) for each in shown],
        found=found,
        which=which,
        states=list(Which),
        order=order,
        orders=ORDERS,
        wanted=wanted,
        number=number,
        pages=pages,
        now=found.at,
    )


async def _sorted(visit: Visit, found: Selection, order: str) -> list[Listed]:
    keys = sorted(found.keys, key=lambda each: (each.key.name.casefold(), each.key.id))
    if order == "newest":
        keys.sort(key=lambda each: each.key.created_at, reverse=True)
    if order == "used":
        used = await _last_used(visit, keys)
        keys.sort(key=lambda each: used.get(each.key.id) or _LONG_AGO, reverse=True)
    if order == "share":
        calls = await _calls(visit, keys)
        keys.sort(key=lambda each: KeyRow(each, used=calls.get(each.key.id)).share, reverse=True)
    return keys


async def _calls(visit: Visit, keys: Sequence[Listed]) -> Mapping[str, int]:
    """Returns what each has used of its hour; nothing where what counts is down."""
    ids = [each.key.id for each in keys]
    found = await visit.context.used(ids)
    if found is None:
        return {}
    return {key_id: found[key_id].calls if key_id in found else 0 for key_id in ids}


async def _last_used(visit: Visit, keys: Sequence[Listed]) -> Mapping[str, datetime]:
    return await KeyStore(visit.store).last_used([each.key.id for each in keys])


async def found_key(visit: Visit) -> tuple[Key, tuple[Secret, ...]]:
    """Returns the key of the address, with what may be told of its secrets."""
    return await KeyStore(visit.store).show(visit.request.match_info["id"])


async def card(visit: Visit, errors: Mapping[str, str] | None = None) -> web.Response:
    """One key: what it may, what it sees, how it was used, what was done; `errors` of its forms."""
    key, secrets = await found_key(visit)
    now = await KeyStore(visit.store).key_time(visit.now)
    days, total = await _days(visit, key.id), CallSums()
    for sums in days.values():
        total.add(sums)
    used = await visit.context.used([key.id])
    since = now - UNUSED
    is_unused = key.created_at < since and (key.last_used_at is None or key.last_used_at < since)
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
        entries=await _last_entries(visit, key.id),
        deeds=await visit.administration.log.last(LAST, subject=key.id),
        **seen_by(visit, key),
        title="does_see",
        overlaps=OVERLAPS,
        now=now,
    )


def seen_by(visit: Visit, key: Key) -> dict[str, Any]:
    """Returns what keys/sees.html is made of, but for its title."""
    return {
        "sights": sights(visit.context.policy(), key, PolicyWords(visit.words).phrases),
        "closed": closed_to(key),
        "can_book": Permission.APPOINTMENT_CREATE in key.permissions,
        "key": key,
    }


async def _days(visit: Visit, key_id: str) -> Mapping[date, CallSums]:
    """Returns the sums of each of the last days, in UTC as they are kept."""
    now = visit.now
    first = now.date() - timedelta(days=DAYS - 1)
    days = {first + timedelta(days=number): CallSums() for number in range(DAYS)}
    since = datetime.combine(first, time(), now.tzinfo)
    for (moment, _), sums in (await by_day(visit.store, key_id, since)).items():
        if moment.date() in days:
            days[moment.date()].add(sums)
    return days


def _chart(visit: Visit, days: Mapping[date, CallSums]) -> str:
    sums = days.values()
    noon = [datetime.combine(day, time(12), visit.context.zone) for day in days]
    series = {
        "keys.answered": [each.answered for each in sums],
        "keys.refused": [each.calls - each.answered - each.failed for each in sums],
        "keys.failed": [each.failed for each in sums],
    }
    drawn = [{"label": visit.words(text), "values": values} for text, values in series.items()]
    return visit.chart(noon, drawn, unit="keys.calls", step="day")


async def _last_entries(visit: Visit, key_id: str) -> list[tuple[datetime, AuditLine]]:
    """Returns the last entries on this machine; none where the audit cannot be read."""
    folder, wanted = audit_folder(visit.context.settings), EntryFilter(keys=frozenset({key_id}))
    try:
        found = await find_entries(visit.store, folder, wanted, LAST)
    except OSError:
        return []
    entries = [(datetime.fromisoformat(entry.time), entry) for entry in found.entries]
    return sorted(entries, key=lambda each: each[0], reverse=True)


async def rotate(visit: Visit) -> web.Response:
    """Makes a new secret, shown this once; a form that was sent before makes no other one."""
    key, _ = await found_key(visit)
    overlap = OVERLAPS.get(visit.text("overlap"))
    if overlap is None:
        raise web.HTTPNotFound
    try:
        async with visit.deed("key rotated", key.id, name=key.name, overlap=visit.text("overlap")):
            made = await KeyStore(visit.store).rotate(
                key.id, overlap, visit.now, visit.text("hint")
            )
    except ChangedKey:
        return visit.page("keys/already.html", 409, key_id=key.id, reason="already_rotated")
    return shown_once(visit, made.key, made.secret, "rotated", made.secrets)


async def revoke(visit: Visit) -> web.Response:
    """Refuses the key from now on, where its name was typed."""
    key, _ = await found_key(visit)
    if visit.text("confirm") != key.name:
        return await card(visit, {"confirm": visit.words("keys.revoke_differs", name=key.name)})
    async with visit.deed("key revoked", key.id, name=key.name):
        await KeyStore(visit.store).revoke(key.id, visit.now)
    return visit.go(f"/keys/{key.id}", "keys.revoked")


def shown_once(
    visit: Visit, key: Key, secret: str, title: str, secrets: Sequence[Secret] = ()
) -> web.Response:
    """Answers the form that made the secret: no address leads here again, no browser keeps it."""
    before = [each.expires_at for each in secrets[:-1] if each.expires_at is not None]
    base = f"{visit.context.public_url}{BASE_PATH}"
    # a call that the key may make, and that needs nothing but the key
    paths = (
        each.path
        for each in OPERATIONS
        if each.permission in key.permissions
        and not each.creates
        and not any(param.required for param in each.params)
    )
    response = visit.page(
        "keys/secret.html",
        key=key,
        secret=secret,
        title=title,
        until=max(before, default=None),
        base=base,
        line=f"curl -H 'X-API-Key: {secret}' {base}{next(paths, '/openapi.json')}",
    )
    response.headers["Cache-Control"] = "no-store, max-age=0"
    response.headers["Pragma"] = "no-cache"
    return response
