"""The form of a key: what was written becomes its settings, or what is wrong with each field."""

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from typing import Any

import orjson

from gateway.admin.visit import Visit
from gateway.contract.access import LEVELS, AccessLevel, Permission
from gateway.contract.resources import GOVERNED
from gateway.keys.key import DEFAULT_LIMIT, MOST_NETWORKS, Key, new_key, read_network
from gateway.keys.store import row_of

LONGEST = 200
MOST = 1_000_000_000
# No more digits than MOST has are read.
_number = re.compile("[0-9]{1,10}").fullmatch
_ASIDE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


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


def blank() -> KeyForm:
    """For a new key."""
    return KeyForm()


def of_key(key: Key, visit: Visit) -> KeyForm:
    """As the key is."""
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


def written(visit: Visit) -> KeyForm:
    """As it was sent, with nothing looked at yet."""
    known = {each.value for each in Permission}
    chosen = {str(each) for each in visit.form.getall("permission", ())}
    scopes = {each.name: visit.text(f"scope.{each.name}") for each in GOVERNED}
    return KeyForm(
        name=visit.text("name"),
        contact=visit.text("contact"),
        permissions=frozenset(chosen & known),
        level=visit.text("level"),
        scopes={name: level for name, level in scopes.items() if level in set(LEVELS)},
        limit=visit.text("limit"),
        bookings=visit.text("bookings"),
        networks=visit.text("networks"),
        expires=visit.text("expires"),
        was=visit.text("was"),
    )


def mark_of(key: Key) -> str:
    """Another one as soon as any setting of the key is another; it tells nothing of them."""
    return hashlib.sha256(orjson.dumps(row_of(key))).hexdigest()


def settings(form: KeyForm, visit: Visit, before: Key | None = None) -> dict[str, Any]:
    """The fields of a key; what is wrong stands in the form's errors then."""
    said = visit.words
    if not 1 <= len(form.name) <= LONGEST or not _is_line(form.name):
        form.errors["name"] = said("keys.wrong_name")
    if len(form.contact) > LONGEST or not _is_line(form.contact):
        form.errors["contact"] = said("keys.wrong_contact")
    if not form.permissions:
        form.errors["permissions"] = said("keys.wrong_permissions")
    if form.level not in set(LEVELS):
        form.errors["level"] = said("keys.wrong_level")
    limit = int(form.limit) if _number(form.limit) else 0
    if not 1 <= limit <= MOST:
        form.errors["limit"] = said("keys.wrong_limit")
    bookings = int(form.bookings) if _number(form.bookings) else None
    if form.bookings and (bookings is None or not 1 <= bookings <= MOST):
        form.errors["bookings"] = said("keys.wrong_limit")
    networks = _networks(form, visit)
    expires_at = _expiry(form, visit, before)
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
    """A key with the permissions and levels that are chosen so far: enough to show what it sees."""
    level = AccessLevel(form.level) if form.level in set(LEVELS) else AccessLevel.BASIC
    key = new_key(name="-", permissions=map(Permission, form.permissions), level=level, now=now)
    return replace(key, scopes={name: AccessLevel(each) for name, each in form.scopes.items()})


def _networks(form: KeyForm, visit: Visit) -> tuple[str, ...]:
    """Those that are named, each once, with commas, blanks or lines between."""
    found: dict[str, None] = {}
    try:
        for each in form.networks.replace(",", " ").split():
            found[read_network(each)] = None
    except ValueError:
        form.errors["networks"] = visit.words("keys.wrong_network", network=each)
    if len(found) > MOST_NETWORKS:
        form.errors["networks"] = visit.words("keys.wrong_networks", most=MOST_NETWORKS)
    return tuple(found)


def _expiry(form: KeyForm, visit: Visit, before: Key | None) -> datetime | None:
    """The end of the day that is named, on the clinic's clock; a time that is kept stays."""
    if not form.expires:
        return None
    try:
        day = date.fromisoformat(form.expires)
        known = before.expires_at if before is not None else None
        if known is not None and _last_day(known, visit) == day:
            return known
        ends = datetime.combine(day + timedelta(days=1), time(), visit.parts.zone)
    except (ValueError, OverflowError):
        ends = None
    if ends is None or ends <= visit.parts.now():
        form.errors["expires"] = visit.words("keys.wrong_expires")
    return ends


def _last_day(ends: datetime, visit: Visit) -> date:
    return (ends.astimezone(visit.parts.zone) - timedelta(microseconds=1)).date()


def _is_line(text: str) -> bool:
    return all(unicodedata.category(letter) not in _ASIDE for letter in text)
