"""Lists and shows keys; makes, changes, rotates and revokes them; shows each secret once."""

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID, uuid4

import orjson
from aiohttp import web

from gateway.admin.views.audit import last_entries
from gateway.admin.visit import Visit, get, number_of, post
from gateway.administrators.administrator import Right
from gateway.audit.search import EntryFilter
from gateway.contract.access import LEVELS, AccessLevel, Permission
from gateway.contract.operations import BASE_PATH
from gateway.contract.resources import GOVERNED, RESOURCES
from gateway.inquiries import keys as inquiries
from gateway.inquiries.keys import Which
from gateway.keys.key import DEFAULT_LIMIT, MOST_NETWORKS, Key, read_network
from gateway.keys.store import ChangedKey, KeyAndSecrets, KeyExists, KnownSecret, row_of
from gateway.usage import CallSums, by_day

AT_ONCE = 50
ORDERS = ("name", "newest", "used", "share")
# Days of use, and entries and deeds, on a key's page.
DAYS, LAST = 30, 10
# The times for which the earlier secrets may go on working.
OVERLAPS = {
    "24h": timedelta(hours=24),
    "1h": timedelta(hours=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "none": timedelta(),
}
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
# The most characters of a name, and the largest number.
LONGEST, MOST = 200, 1_000_000_000
_ASIDE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
# As many digits as MOST has.
_digits = re.compile("[0-9]{1,10}").fullmatch
# The fields with one text; `was` is the `_mark_of` the key that the form was made of.
_TEXTS = ("name", "contact", "level", "limit", "bookings", "networks", "expires", "was")


@get("/keys")
async def _list(visit: Visit) -> web.Response:
    """The table of keys; for an open page, the table alone."""
    text, which, order = visit.query("q")[:100], visit.query("which"), visit.query("order")
    state = Which(which) if which in set(Which) else Which.ACTIVE
    order = order if order in ORDERS else ORDERS[0]
    selected = await visit.panel.book.find(text, state, visit.now)
    listed = list(selected.keys)
    if order == "newest":
        listed.sort(key=lambda held: held.key.created_at, reverse=True)
    elif order == "used":
        used = await visit.panel.keys.last_used([held.key.id for held in listed])
        listed.sort(key=lambda held: used.get(held.key.id) or _LONG_AGO, reverse=True)
    elif order == "share":
        shares = await _shares(visit, listed)
        listed.sort(key=lambda held: shares.get(held.key.id, (0.0, 0))[0], reverse=True)
    pages = max(1, -(-len(listed) // AT_ONCE))
    number = min(max(1, number_of(visit.query("page")) or 1), pages)
    shown = listed[(number - 1) * AT_ONCE : number * AT_ONCE]
    return visit.page(
        "keys/table.html" if visit.is_part else "keys/list.html",
        shown=shown,
        last_used=await visit.panel.keys.last_used([held.key.id for held in shown]),
        shares=await _shares(visit, shown),
        found=selected,
        which=state,
        states=list(Which),
        order=order,
        orders=ORDERS,
        wanted=text,
        number=number,
        pages=pages,
        now=selected.at,
    )


async def _shares(visit: Visit, keys: Sequence[KeyAndSecrets]) -> Mapping[str, tuple[float, int]]:
    """Returns the share of its hour that each key has used, and its calls; {} without them."""
    used = await visit.panel.used([held.key.id for held in keys])
    if used is None:
        return {}
    calls = {key_id: hour.calls for key_id, hour in used.items()}
    pairs = ((held.key, calls.get(held.key.id, 0)) for held in keys)
    return {key.id: (min(1.0, count / max(1, key.limit)), count) for key, count in pairs}


async def _found_key(visit: Visit) -> KeyAndSecrets:
    """Returns the key in the address, with what may be shown of its secrets."""
    return await visit.panel.keys.show(visit.request.match_info["id"])


@get("/keys/{id}")
async def _card(visit: Visit, errors: Mapping[str, str] | None = None) -> web.Response:
    """A key: its permissions, what it sees, its use and its deeds; `errors` of its forms."""
    held = await _found_key(visit)
    key, now = held.key, await visit.panel.keys.key_time(visit.now)
    # the sums of each of the last days, in UTC
    begin = datetime.combine(visit.now.date() - timedelta(days=DAYS - 1), time(), UTC)
    days = {begin.date() + timedelta(days=number): CallSums() for number in range(DAYS)}
    total = CallSums()
    for (moment, _), sums in (await by_day(visit.store, key.id, begin)).items():
        if moment.date() in days:
            days[moment.date()].add(sums)
            total.add(sums)
    series = {
        "keys.answered": [sums.answered for sums in days.values()],
        "keys.refused": [sums.calls - sums.answered - sums.failed for sums in days.values()],
        "keys.failed": [sums.failed for sums in days.values()],
    }
    drawn = [{"label": visit.words(text), "values": values} for text, values in series.items()]
    noon = [datetime.combine(day, time(12), visit.panel.zone) for day in days]
    used = await visit.panel.used([key.id])
    since = now - inquiries.UNUSED
    is_unused = key.created_at < since and (key.last_used_at is None or key.last_used_at < since)
    return visit.page(
        "keys/card.html",
        errors=errors,
        hint=held.hint,
        states=inquiries.states_of(key, is_unused, now),
        used=None if used is None else used[key.id].calls if key.id in used else 0,
        total=total,
        days=days,
        chart=visit.chart(noon, drawn, unit="keys.calls", step="day"),
        entries=(await last_entries(visit, EntryFilter(keys=frozenset({key.id})), LAST))["rows"],
        deeds=await visit.panel.deeds.log.last(LAST, subject=key.id),
        **_seen_by(visit, key, "does_see"),
        overlaps=OVERLAPS,
        now=now,
    )


def _seen_by(visit: Visit, key: Key, title: str) -> dict[str, Any]:
    """Returns the values for keys/sees.html."""
    policy, lacking = visit.panel.standing().policy, inquiries.lacking
    offered = visit.panel.offered
    answered = [it.returns for it in offered]
    return {
        "title": title,
        "sights": inquiries.sights(policy, key, visit.words.phrases, offered),
        "closed": [kind.name for kind in RESOURCES if kind in answered and lacking(kind, key)],
        "can_book": any(it.creates and it.permission in key.permissions for it in offered),
        "key": key,
    }


@post("/keys/{id}/rotate", Right.KEYS)
async def _rotate(visit: Visit) -> web.Response:
    """Makes a new secret and shows it once; a form that is sent twice makes only one."""
    key, _ = await _found_key(visit)
    overlap, newest = visit.text("overlap"), visit.text("hint")
    if overlap not in OVERLAPS:
        raise web.HTTPNotFound
    try:
        async with visit.deed("key rotated", key.id, name=key.name, overlap=overlap):
            rotated = await visit.panel.keys.rotate(key.id, OVERLAPS[overlap], visit.now, newest)
    except ChangedKey:
        return visit.page("keys/already.html", 409, key_id=key.id, reason="already_rotated")
    secret, (key, secrets) = rotated
    return _shown_once(visit, key, secret, "rotated", secrets)


@post("/keys/{id}/revoke", Right.KEYS)
async def _revoke(visit: Visit) -> web.Response:
    """Revokes the key where its name was typed."""
    key, _ = await _found_key(visit)
    if visit.text("confirm") != key.name:
        return await _card(visit, {"confirm": visit.words("keys.revoke_differs", name=key.name)})
    async with visit.deed("key revoked", key.id, name=key.name):
        await visit.panel.keys.revoke(key.id, visit.now)
    return visit.go(f"/keys/{key.id}", "keys.revoked")


def _shown_once(
    visit: Visit, key: Key, secret: str, title: str, secrets: Sequence[KnownSecret] = ()
) -> web.Response:
    """Shows a new secret, as the answer to its form: no browser keeps it or can come back."""
    before = [known.expires_at for known in secrets[:-1] if known.expires_at is not None]
    base = f"{visit.panel.public_url}{BASE_PATH}"
    # a call that the key may make without any parameter
    paths = (
        operation.path
        for operation in visit.panel.offered
        if operation.permission in key.permissions
        and not operation.creates
        and not any(param.required for param in operation.params)
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


@dataclass(frozen=True, slots=True)
class KeyForm:
    """What was written into the form, where known; `errors` say what is wrong with a field."""

    texts: Mapping[str, str]
    permissions: frozenset[Permission] = frozenset()
    scopes: Mapping[str, AccessLevel] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def chosen(self) -> dict[str, Any]:
        """Returns the settings that say what the key sees; BASIC where no level is chosen."""
        text = self.texts["level"]
        level = AccessLevel(text) if text in set(LEVELS) else AccessLevel.BASIC
        return {"permissions": self.permissions, "level": level, "scopes": self.scopes}

    def seen(self, visit: Visit) -> dict[str, Any]:
        """Returns the values for keys/sees.html, for the key that the form would make."""
        return _seen_by(visit, Key(name="-", created_at=visit.now, **self.chosen()), "will_see")


def _written(visit: Visit) -> KeyForm:
    chosen = set(visit.form.getall("permission", ()))
    scopes = {resource.name: visit.text(f"scope.{resource.name}") for resource in GOVERNED}
    return KeyForm(
        {name: visit.text(name) for name in _TEXTS},
        frozenset(permission for permission in Permission if permission in chosen),
        {name: AccessLevel(level) for name, level in scopes.items() if level in set(LEVELS)},
    )


def _mark_of(key: Key) -> str:
    """Returns a digest of the settings of a key, which changes with any of them."""
    return hashlib.sha256(orjson.dumps(row_of(key))).hexdigest()


async def _settings(visit: Visit, form: KeyForm, before: Key | None = None) -> dict[str, Any]:
    """Returns the settings of a key from the form; none where it notes errors in the form."""
    texts, errors, words = form.texts, form.errors, visit.words
    name, limit, bookings = texts["name"], texts["limit"], texts["bookings"]
    checks = {
        "name": (bool(name) and _is_line(name), "keys.wrong_name"),
        "contact": (_is_line(texts["contact"]), "keys.wrong_contact"),
        "permissions": (bool(form.permissions), "keys.wrong_permissions"),
        "level": (texts["level"] in set(LEVELS), "keys.wrong_level"),
        "limit": (_is_number(limit), "keys.wrong_limit"),
        "bookings": (not bookings or _is_number(bookings), "keys.wrong_limit"),
    }
    errors.update({name: words(text) for name, (is_right, text) in checks.items() if not is_right})
    networks, expires_at = _networks(form, visit), _expiry(form, visit, before)
    # two active keys of one name would be confused
    if "name" not in errors and (before is None or before.name != name):
        same = await visit.panel.book.named(name, visit.now)
        if any(before is None or key.id != before.id for key in same):
            errors["name"] = words("keys.same_name")
    if errors:
        return {}
    return form.chosen() | {
        "name": name,
        "contact": texts["contact"] or None,
        "limit": int(limit),
        "bookings_per_day": int(bookings) if bookings else None,
        "networks": networks,
        "expires_at": expires_at,
    }


def _is_line(text: str) -> bool:
    is_text = all(unicodedata.category(letter) not in _ASIDE for letter in text)
    return is_text and len(text) <= LONGEST


def _is_number(text: str) -> bool:
    return _digits(text) is not None and 1 <= int(text) <= MOST


def _networks(form: KeyForm, visit: Visit) -> tuple[str, ...]:
    """Reads the networks, which commas, blanks or lines part, each once."""
    networks: dict[str, None] = {}
    for text in form.texts["networks"].replace(",", " ").split():
        try:
            networks[read_network(text)] = None
        except ValueError:
            form.errors["networks"] = visit.words("keys.wrong_network", network=text)
            break
    if len(networks) > MOST_NETWORKS:
        form.errors["networks"] = visit.words("keys.wrong_networks", most=MOST_NETWORKS)
    return tuple(networks)


def _expiry(form: KeyForm, visit: Visit, before: Key | None) -> datetime | None:
    """Returns the end of the day in the form, in the clinic's zone; a kept day keeps its time."""
    text, known = form.texts["expires"], before.expires_at if before is not None else None
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
        if known is not None and _last_day(known, visit) == day:
            return known
        ends = datetime.combine(day + timedelta(days=1), time(), visit.panel.zone)
    except (ValueError, OverflowError):
        ends = None
    if ends is None or ends <= visit.now:
        form.errors["expires"] = visit.words("keys.wrong_expires")
    return ends


def _last_day(ends: datetime, visit: Visit) -> date:
    return (ends.astimezone(visit.panel.zone) - timedelta(microseconds=1)).date()


@get("/keys/new", Right.KEYS)
@get("/keys/{id}/edit", Right.KEYS)
async def _form(visit: Visit) -> web.Response:
    """The form of a key, or of a new one, whose id is made here, once for each form."""
    if "id" not in visit.request.match_info:
        texts = dict.fromkeys(_TEXTS, "") | {"level": LEVELS[0], "limit": str(DEFAULT_LIMIT)}
        return _page(visit, KeyForm(texts), key_id=str(uuid4()))
    key, _ = await _found_key(visit)
    texts = {
        "name": key.name,
        "contact": key.contact or "",
        "level": key.level.value,
        "limit": str(key.limit),
        "bookings": "" if key.bookings_per_day is None else str(key.bookings_per_day),
        "networks": "\n".join(key.networks),
        "expires": "" if key.expires_at is None else _last_day(key.expires_at, visit).isoformat(),
        "was": _mark_of(key),
    }
    return _page(visit, KeyForm(texts, key.permissions, key.scopes), key=key)


@post("/keys/new", Right.KEYS)
async def _make(visit: Visit) -> web.Response:
    """Makes a key and shows its secret once; or shows the form again, with its errors."""
    form = _written(visit)
    try:
        key_id = str(UUID(visit.text("id")))
    except ValueError:  # the form was tampered with
        key_id = str(uuid4())
    settings = {} if visit.text("show") else await _settings(visit, form)
    if not settings:
        return _page(visit, form, key_id=key_id)
    key = Key(id=key_id, created_at=visit.now, **settings)
    try:
        async with visit.deed("key made", key.id, **inquiries.settings_told(key)):
            secret = await visit.panel.keys.add(key)
    except KeyExists:
        return visit.page("keys/already.html", 409, key_id=key_id, reason="already_made")
    return _shown_once(visit, key, secret, "made")


@post("/keys/{id}/edit", Right.KEYS)
async def _edit(visit: Visit) -> web.Response:
    """Changes the settings, unless somebody else has changed them since the form was made."""
    key, _ = await _found_key(visit)
    form, settings = _written(visit), dict[str, Any]()
    if not visit.text("show"):
        if form.texts["was"] != _mark_of(key):
            return visit.page("keys/already.html", 409, key_id=key.id, reason="already_changed")
        settings = await _settings(visit, form, key)
    if not settings:
        return _page(visit, form, key=key)
    changed = inquiries.changes_told(key, replace(key, **settings))
    try:
        async with visit.deed("key changed", key.id, **changed):
            await visit.panel.keys.update(key.id, key, **settings)
    except ChangedKey:
        return visit.page("keys/already.html", 409, key_id=key.id, reason="already_changed")
    return visit.go(f"/keys/{key.id}", "keys.saved")


@post("/keys/sees", Right.KEYS)
async def _sees(visit: Visit) -> web.Response:
    return visit.page("keys/sees.html", **_written(visit).seen(visit))


def _page(visit: Visit, form: KeyForm, *, key_id: str = "", key: Key | None = None) -> web.Response:
    return visit.page(
        "keys/form.html",
        errors=form.errors,
        form=form,
        edited=key,
        key_id=key_id,
        **form.seen(visit),
    )
