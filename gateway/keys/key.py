"""A key: what the clinic decided about one partner. The secret is not part of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from gateway.contract.access import AccessLevel, Permission
from gateway.keys.networks import Networks

DEFAULT_LIMIT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One stored key; `scopes` override the level per resource name, times are in UTC.

    `networks` are all that it may be used from, as `read_network` writes them, and `within` tells
    whether an address is in one; where there are none it may be used from anywhere. Without
    `bookings_per_day` their number is not bounded.
    """

    id: str
    name: str
    permissions: frozenset[Permission]
    level: AccessLevel
    created_at: datetime
    contact: str | None = None
    scopes: Mapping[str, AccessLevel] = field(default_factory=dict)
    limit: int = DEFAULT_LIMIT
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    bookings_per_day: int | None = None
    networks: tuple[str, ...] = ()
    within: Networks | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        within = Networks(self.networks) if self.networks else None
        object.__setattr__(self, "within", within)

    def level_for(self, resource: str) -> AccessLevel:
        """The level that applies to a resource."""
        return self.scopes.get(resource, self.level)

    def active(self, now: datetime) -> bool:
        """Neither revoked nor expired; a key expires at its date, not after it."""
        if self.revoked_at is not None:
            return False
        return self.expires_at is None or now < self.expires_at


def new_key(  # noqa: PLR0913 - a key has that many settings
    *,
    name: str,
    permissions: Iterable[Permission],
    level: AccessLevel,
    now: datetime,
    contact: str | None = None,
    scopes: Mapping[str, AccessLevel] | None = None,
    limit: int | None = None,
    expires_at: datetime | None = None,
    bookings_per_day: int | None = None,
    networks: Iterable[str] = (),
) -> Key:
    """A key that is not stored yet, with an id of its own."""
    settings: dict[str, Any] = {} if limit is None else {"limit": limit}
    return Key(
        id=str(uuid4()),
        name=name,
        contact=contact,
        permissions=frozenset(permissions),
        level=level,
        scopes=dict(scopes or {}),
        expires_at=expires_at,
        created_at=now,
        bookings_per_day=bookings_per_day,
        networks=tuple(networks),
        **settings,
    )
