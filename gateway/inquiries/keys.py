"""Finds keys by their state, and tells what each did in the last hour and what it sees."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from heapq import nlargest
from typing import Any

from gateway.contract.access import AccessLevel, Permission
from gateway.contract.fields import Resource, write_instant
from gateway.contract.operations import OPERATIONS, Operation
from gateway.contract.resources import RESOURCES
from gateway.keys.key import Key
from gateway.keys.store import KeyAndSecrets, KeyStore
from gateway.limits.base import Used
from gateway.policy.masks import Mask
from gateway.policy.policy import HIDDEN, WHOLE, Policy
from gateway.policy.telling.wording import Phrases, conditions
from gateway.store import Store
from gateway.usage import CallSums, recent

EXPIRING = timedelta(days=30)
UNUSED = timedelta(days=90)
HOUR = timedelta(hours=1)
# The share of its hourly limit from which on a key is listed, and the most keys that are.
NEAR = 0.8
MOST = 10


class Which(StrEnum):
    """Keys in some state; one may be in several of ACTIVE, EXPIRING and UNUSED."""

    ACTIVE = "active"
    EXPIRING = "expiring"
    UNUSED = "unused"
    EXPIRED = "expired"
    REVOKED = "revoked"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Selection:
    """Some keys `at` a time, how many of all are in each state, and how many make no sense."""

    at: datetime
    keys: Sequence[KeyAndSecrets]
    counts: Mapping[Which, int]
    odd: int


class KeyBook:
    """Follows one store's keys in memory, as reading all takes long. Methods raise StoreError."""

    def __init__(self, store: KeyStore) -> None:
        self._store = store
        self._revision = -1
        self._held: dict[str, KeyAndSecrets | None] = {}
        self._reading = asyncio.Lock()

    async def find(self, text: str, which: Which, now: datetime) -> Selection:
        """Returns the keys in a state whose name, contact, id or hint holds every word, by name."""
        await self._follow()
        at = await self._store.key_time(now)
        unused = await self._store.unused_since(now - UNUSED)
        hits, counts, words = [], Counter[Which](), text.casefold().split()
        sound = [held for held in self._held.values() if held is not None]
        for held in sound:
            key, hints = held.key, (secret.hint for secret in held.secrets)
            states = states_of(key, key.id in unused, at)
            counts.update(states)
            if which in states:
                texts = "\n".join((key.name, key.contact or "", key.id, *hints)).casefold()
                if all(word in texts for word in words):
                    hits.append(held)
        hits.sort(key=lambda held: (held.key.name.casefold(), held.key.id))
        odd = len(self._held) - len(sound)
        return Selection(at, hits, {state: counts[state] for state in Which}, odd)

    async def named(self, name: str, now: datetime) -> Sequence[Key]:
        """Returns the active keys of that name in upper or lower case."""
        keys, at = await self.keys(), await self._store.key_time(now)
        name = name.casefold()
        return [key for key in keys.values() if key.name.casefold() == name and key.active(at)]

    async def keys(self) -> Mapping[str, Key]:
        """Returns key id -> key, without keys that make no sense."""
        await self._follow()
        return {key_id: held.key for key_id, held in self._held.items() if held is not None}

    async def names(self) -> Mapping[str, str]:
        return {key_id: key.name for key_id, key in (await self.keys()).items()}

    async def _follow(self) -> None:
        async with self._reading:
            revision, changed = await self._store.changes(self._revision)
            if revision < self._revision:  # the store was put back
                self._held.clear()
                revision, changed = await self._store.changes(-1)
            self._held.update(changed)
            self._revision = revision


def states_of(key: Key, is_unused: bool, now: datetime) -> tuple[Which, ...]:
    if key.revoked_at is not None:
        return Which.REVOKED, Which.ALL
    if not key.active(now):
        return Which.EXPIRED, Which.ALL
    states = [Which.ACTIVE, Which.ALL]
    if key.expires_at is not None and key.expires_at - now <= EXPIRING:
        states.append(Which.EXPIRING)
    if is_unused:
        states.append(Which.UNUSED)
    return tuple(states)


@dataclass(frozen=True, slots=True)
class KeyHours:
    """The keys with most calls, by their ids, and those near their limit, the fullest first.

    `near` is None where the limiter cannot be asked. `many` is how many keys called, and how many
    are near. `keys` are all keys.
    """

    top: Sequence[tuple[str, CallSums]]
    near: Sequence[tuple[Key, Used]] | None
    many: tuple[int, int]
    keys: Mapping[str, Key]


async def key_hours(
    store: Store,
    book: KeyBook,
    used: Callable[[Sequence[str]], Awaitable[Mapping[str, Used] | None]],
    now: datetime,
) -> KeyHours:
    """Counts the calls up to a minute ago, and what is used up to now. Raises StoreError."""
    sums, keys = await recent(store, now - HOUR), await book.keys()
    counted = await used([key_id for key_id in sums if key_id in keys])
    near = [
        (keys[key_id], hour)
        for key_id, hour in (counted or {}).items()
        if hour.calls and hour.calls >= NEAR * keys[key_id].limit
    ]
    near.sort(key=lambda pair: (-pair[1].calls / max(1, pair[0].limit), pair[0].name))
    top = nlargest(MOST, sums.items(), key=lambda pair: (pair[1].calls, pair[0]))
    return KeyHours(top, None if counted is None else near[:MOST], (len(sums), len(near)), keys)


def settings_told(key: Key) -> dict[str, Any]:
    """Returns a key's settings as the audit has them, without its secret and its contact."""
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
    """Returns the settings that differ, as they are afterwards."""
    old = settings_told(before)
    return {name: value for name, value in settings_told(after).items() if value != old[name]}


def imagined(level: AccessLevel, scopes: Mapping[str, AccessLevel], now: datetime) -> Key:
    """Returns a nameless key with all permissions and these levels."""
    permissions = frozenset(Permission)
    return Key(name="", permissions=permissions, level=level, scopes=scopes, created_at=now)


def lacking(resource: Resource, key: Key) -> list[Permission]:
    """Returns the permissions that would show the key the resource, if it has none of them."""
    needed = {operation.permission for operation in OPERATIONS if operation.returns is resource}
    return sorted(needed) if needed.isdisjoint(key.permissions) else []


@dataclass(frozen=True, slots=True)
class Sighted:
    """A resource that a key may read. `level` is None where no policy governs it.

    `condition` says which records exist for the key, "" where all do.
    """

    resource: Resource
    level: AccessLevel | None
    whole: Sequence[str]
    masked: Sequence[tuple[str, Mask]] = ()
    hidden: Sequence[str] = ()
    condition: str = ""


def sights(
    policy: Policy, key: Key, phrases: Phrases, offered: Iterable[Operation]
) -> list[Sighted]:
    """Returns every resource that an offered operation of the key's permissions answers with."""
    sighted = []
    shown = [it.returns for it in offered if it.permission in key.permissions]
    for resource in RESOURCES:
        if resource not in shown:
            continue
        if not resource.governed:
            sighted.append(Sighted(resource, None, resource.paths))
            continue
        level, rules = key.level_for(resource.name), policy.rules[resource.name]
        seen = {path: rules.sight(path, level) for path in resource.paths}
        masked = [(path, sight) for path, sight in seen.items() if isinstance(sight, Mask)]
        whole, hidden = (
            [path for path, sight in seen.items() if sight is kind] for kind in (WHOLE, HIDDEN)
        )
        condition = conditions(resource, rules.rows_of(level), phrases)
        sighted.append(Sighted(resource, level, whole, masked, hidden, condition))
    return sighted
