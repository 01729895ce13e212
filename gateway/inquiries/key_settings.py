"""A key's settings as the audit has them: what the panel and the commands write into a deed."""

from collections.abc import Mapping
from typing import Any

from gateway.contract.fields import write_instant
from gateway.keys.key import Key


def settings_told(key: Key) -> dict[str, Any]:
    """All of them, but its secret and whom to call about it."""
    return {
        "name": key.name,
        "permissions": sorted(key.permissions),
        "level": key.level.value,
        "scopes": {name: level.value for name, level in sorted(key.scopes.items())},
        "limit": key.limit,
        "bookingsPerDay": key.bookings_per_day,
        "networks": list(key.networks),
        "expiresAt": key.expires_at and write_instant(key.expires_at),
    }


def changes_told(before: Key, after: Key) -> Mapping[str, Any]:
    """Those that differ, as they are afterwards."""
    old = settings_told(before)
    return {name: each for name, each in settings_told(after).items() if each != old[name]}
