"""A key as the rows of its tables: written, and read where that makes sense."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.contract.access import AccessLevel, Permission
from gateway.contract.resources import GOVERNED
from gateway.keys.key import Key
from gateway.keys.networks import read_network
from gateway.keys.told import Change, Secret
from gateway.store.tables import read_instant

_SCOPES = frozenset(each.name for each in GOVERNED)


def row_of(key: Key) -> dict[str, Any]:
    return {
        "name": key.name,
        "contact": key.contact,
        "permissions": json.dumps(sorted(key.permissions)),
        "level": key.level.value,
        "scopes": json.dumps(dict(sorted(key.scopes.items()))),
        "hourly_limit": key.limit,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "bookings_per_day": key.bookings_per_day,
        "networks": json.dumps(key.networks),
    }


@dataclass(frozen=True, slots=True)
class Kept:
    """A key and its secrets, as they were read."""

    key: Key
    told: tuple[Secret, ...]
    digests: tuple[tuple[bytes, datetime | None], ...]


def by_key(rows: Iterable[Any]) -> dict[str, list[Any]]:
    held: dict[str, list[Any]] = {}
    for row in rows:
        held.setdefault(row.key_id, []).append(row)
    return held


def change_of(row: Any, own: Sequence[Any]) -> Change:
    kept = readable(row, own)
    if kept is None:
        return Change(row.id, None, ())
    return Change(row.id, kept.key, kept.digests, kept.told)


def readable(row: Any, own: Sequence[Any]) -> Kept | None:
    """A key of its rows; None for what this version of the gateway can't have written."""
    try:
        ends = [read_instant(secret.expires_at) for secret in own]
        return Kept(
            _key(row),
            tuple(Secret(secret.hint, end) for secret, end in zip(own, ends, strict=True)),
            tuple((secret.digest, end) for secret, end in zip(own, ends, strict=True)),
        )
    except (ValueError, TypeError, AttributeError):
        return None


def _key(row: Any) -> Key:
    scopes = {name: AccessLevel(level) for name, level in json.loads(row.scopes).items()}
    networks = json.loads(row.networks or "[]")
    if not (
        isinstance(row.name, str)
        and isinstance(row.contact, str | None)
        and isinstance(row.hourly_limit, int)
        and row.hourly_limit >= 0
        and (row.bookings_per_day is None or row.bookings_per_day >= 0)
        and _SCOPES.issuperset(scopes)
        and all(read_network(each) == each for each in networks)
    ):
        raise ValueError("a key of another kind")
    return Key(
        id=row.id,
        name=row.name,
        contact=row.contact,
        permissions=frozenset(map(Permission, json.loads(row.permissions))),
        level=AccessLevel(row.level),
        scopes=scopes,
        limit=row.hourly_limit,
        created_at=_given(read_instant(row.created_at)),
        expires_at=read_instant(row.expires_at),
        last_used_at=read_instant(row.last_used_at),
        revoked_at=read_instant(row.revoked_at),
        bookings_per_day=row.bookings_per_day,
        networks=tuple(networks),
    )


def _given(moment: datetime | None) -> datetime:
    if moment is None:
        raise ValueError("a key without the time of its making")
    return moment
