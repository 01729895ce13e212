"""The form of a key: what was written becomes its settings, or what is wrong with each field.

It shows meanwhile what the key will see.
"""

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from typing import Any
from uuid import UUID, uuid4

import orjson
from aiohttp import web

from gateway.admin.views.keys import card, found_key, key_list, revoke, rotate, seen_by, shown_once
from gateway.admin.visit import Visit, get, post
from gateway.administrators.administrator import Right
from gateway.contract.access import LEVELS, AccessLevel, Permission
from gateway.contract.resources import GOVERNED
from gateway.inquiries.keys import changes_told, settings_told
from gateway.keys.base import ChangedKey, KeyExists
from gateway.keys.key import DEFAULT_LIMIT, MOST_NETWORKS, Key, new_key, read_network
from gateway.keys.store import KeyStore, row_of

LONGEST = 200
MOST = 1_000_000_000
_ASIDE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
# No more digits than MOST has are read.
_number = re.compile("[0-9]{1,10}").fullmatch


@dataclass(slots=True)
class KeyForm:
    """What stands in the fields, as it was written, and what is wrong with it.

    `was` tells the settings that the form was made of, as `mark_of` does.
    """

    name: str = ""
    contact: str = ""
    permissions: frozenset[str] = frozenset()
    level: str = AccessLevel.BASIC.value
    scopes: Mapping[str, str] = field(default_factory=dict)
    limit: str = str(DEFAULT_LIMIT)
    bookings: str = ""
    networks: str = ""
    expires: str = ""
    was: str = ""
    errors: dict[str, str] = field(default_factory=dict)


def written(visit: Visit) -> KeyForm:
    """Returns the form as it was sent, with nothing looked at yet."""
    chosen = {str(each) for each in visit.form.getall("permission", ())}
    scopes = {each.name: visit.text(f"scope.{each.name}") for each in GOVERNED}
    return KeyForm(
        name=visit.text("name"),
        contact=visit.text("contact"),
        permissions=frozenset(chosen & set(Permission)),
        level=visit.text("level"),
        scopes={name: level for name, level in scopes.items() if level in set(LEVELS)},
        limit=visit.text("limit"),
        bookings=visit.text("bookings"),
        networks=visit.text("networks"),
        expires=visit.text("expires"),
        was=visit.text("was"),
    )


def of_key(key: Key, visit: Visit) -> KeyForm:
    """Returns the form as the key is."""
    return KeyForm(
        name=key.name,
        contact=key.contact or "",
        permissions=frozenset(each.value for each in key.permissions),
        level=key.level.value,
        scopes={name: level.value for name, level in key.scopes.items()},
        limit=str(key.limit),
        bookings="" if key.bookings_per_day is None else str(key.bookings_per_day),
        networks="\n".join(key.networks),
        expires="" if key.expires_at is None else _last_day(key.expires_at, visit).isoformat(),
        was=mark_of(key),
    )


def mark_of(key: Key) -> str:
    """Returns another text as soon as any setting of the key is another; it tells none of them."""
    return hashlib.sha256(orjson.dumps(row_of(key))).hexdigest()


async def _settings(visit: Visit, form: KeyForm, before: Key | None = None) -> dict[str, Any]:
    """Returns the fields of a key, read from the form; none where it notes in it what is wrong."""
    limit = int(form.limit) if _number(form.limit) else 0
    bookings = int(form.bookings) if _number(form.bookings) else None
    wrong = {
        "name": not 1 <= len(form.name) <= LONGEST or not _is_line(form.name),
        "contact": len(form.contact) > LONGEST or not _is_line(form.contact),
        "permissions": not form.permissions,
        "level": form.level not in set(LEVELS),
        "limit": not 1 <= limit <= MOST,
        "bookings": bool(form.bookings) and (bookings is None or not 1 <= bookings <= MOST),
    }
    for name in (name for name, is_wrong in wrong.items() if is_wrong):
        text = "limit" if name == "bookings" else name
        form.errors[name] = visit.words(f"keys.wrong_{text}")
    networks, expires_at = _networks(form, visit), _expiry(form, visit, before)
    # two active keys of one name would be taken for each other
    if "name" not in form.errors and (before is None or before.name != form.name):
        same = await visit.keys.named(form.name, visit.now)
        if any(before is None or key.id != before.id for key in same):
            form.errors["name"] = visit.words("keys.same_name")
    if form.errors:
        return {}
    return {
        "name": form.name,
        "contact": form.contact or None,
        "permissions": frozenset(map(Permission, form.permissions)),
        "level": AccessLevel(form.level),
        "scopes": {name: AccessLevel(level) for name, level in form.scopes.items()},
        "limit": limit,
        "bookings_per_day": bookings,
        "networks": networks,
        "expires_at": expires_at,
    }


def as_chosen(form: KeyForm, now: datetime) -> Key:
    """Returns a key as far as it is chosen: enough to show what it sees."""
    level = AccessLevel(form.level) if form.level in set(LEVELS) else AccessLevel.BASIC
    key = new_key(name="-", permissions=map(Permission, form.permissions), level=level, now=now)
    return replace(key, scopes={name: AccessLevel(each) for name, each in form.scopes.items()})


def _networks(form: KeyForm, visit: Visit) -> tuple[str, ...]:
    """Returns those that are named, each once, with commas, blanks or lines between."""
    found: dict[str, None] = {}
    for text in form.networks.replace(",", " ").split():
        try:
            found[read_network(text)] = None
        except ValueError:
            form.errors["networks"] = visit.words("keys.wrong_network", network=text)
            break
    if len(found) > MOST_NETWORKS:
        form.errors["networks"] = visit.words("keys.wrong_networks", most=MOST_NETWORKS)
    return tuple(found)


def _expiry(form: KeyForm, visit: Visit, before: Key | None) -> datetime | None:
    """Returns the end of the day that is named, on the clinic's clock; a kept time stays."""
    if not form.expires:
        return None
    known = before.expires_at if before is not None else None
    try:
        day = date.fromisoformat(form.expires)
        if known is not None and _last_day(known, visit) == day:
            return known
        ends = datetime.combine(day + timedelta(days=1), time(), visit.context.zone)
    except (ValueError, OverflowError):
        ends = None
    if ends is None or ends <= visit.now:
        form.errors["expires"] = visit.words("keys.wrong_expires")
    return ends


def _last_day(ends: datetime, visit: Visit) -> date:
    return (ends.astimezone(visit.context.zone) - timedelta(microseconds=1)).date()


def _is_line(text: str) -> bool:
    return all(unicodedata.category(letter) not in _ASIDE for letter in text)


async def _form(visit: Visit) -> web.Response:
    """The form of a key that there is, or of a new one: its id is made here, once for a form."""
    if "id" not in visit.request.match_info:
        return _page(visit, KeyForm(), key_id=str(uuid4()))
    key, _ = await found_key(visit)
    return _page(visit, of_key(key, visit), key=key)


async def _make(visit: Visit) -> web.Response:
    """Makes a key, its secret shown this once; or the form, with what is wrong or will be seen."""
    form = written(visit)
    try:
        key_id = str(UUID(visit.text("id")))
    except ValueError:  # somebody changed it
        key_id = str(uuid4())
    chosen = {} if visit.text("show") else await _settings(visit, form)
    if not chosen:
        return _page(visit, form, key_id=key_id)
    key = replace(new_key(now=visit.now, **chosen), id=key_id)
    try:
        async with visit.deed("key made", key.id, **settings_told(key)):
            secret = await KeyStore(visit.store).add(key)
    except KeyExists:
        return visit.page("keys/already.html", 409, key_id=key_id, reason="already_made")
    return shown_once(visit, key, secret, "made")


async def _edit(visit: Visit) -> web.Response:
    """Changes the settings, unless somebody else has changed them since the form was made."""
    key, _ = await found_key(visit)
    form = written(visit)
    if visit.text("show"):
        return _page(visit, form, key=key)
    if form.was != mark_of(key):
        return visit.page("keys/already.html", 409, key_id=key.id, reason="already_changed")
    chosen = await _settings(visit, form, key)
    if not chosen:
        return _page(visit, form, key=key)
    news = changes_told(key, replace(key, **chosen))
    try:
        async with visit.deed("key changed", key.id, **news):
            await KeyStore(visit.store).update(key.id, key, **chosen)
    except ChangedKey:
        return visit.page("keys/already.html", 409, key_id=key.id, reason="already_changed")
    return visit.go(f"/keys/{key.id}", "keys.saved")


async def _sees(visit: Visit) -> web.Response:
    """What the key will see, by what is chosen so far: a part of the form's page."""
    chosen = as_chosen(written(visit), visit.now)
    return visit.page("keys/sees.html", **seen_by(visit, chosen), title="will_see")


def _page(visit: Visit, form: KeyForm, *, key_id: str = "", key: Key | None = None) -> web.Response:
    return visit.page(
        "keys/form.html",
        422 if form.errors else 200,
        form=form,
        errors=form.errors,
        edited=key,
        key_id=key_id,
        permissions=list(Permission),
        levels=LEVELS,
        resources=[each.name for each in GOVERNED],
        title="will_see",
        **seen_by(visit, as_chosen(form, visit.now)),
    )


PAGES = (
    get("/keys", key_list),
    get("/keys/new", _form, Right.KEYS),
    post("/keys/new", _make, Right.KEYS),
    post("/keys/sees", _sees, Right.KEYS),
    get("/keys/{id}", card),
    get("/keys/{id}/edit", _form, Right.KEYS),
    post("/keys/{id}/edit", _edit, Right.KEYS),
    post("/keys/{id}/rotate", rotate, Right.KEYS),
    post("/keys/{id}/revoke", revoke, Right.KEYS),
)
