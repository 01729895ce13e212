"""All keys at a glance: kept in memory, brought up to date by what changed, searched there.

Five thousand keys are looked through in some milliseconds; reading them all anew takes a hundred
times as long.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from gateway.keys.base import KeyChange, KnownSecret
from gateway.keys.key import Key
from gateway.keys.store import KeyStore

EXPIRING = timedelta(days=30)
UNUSED = timedelta(days=90)


class Which(StrEnum):
    """Keys in some state; one may be in several of ACTIVE, EXPIRING and UNUSED."""

    ACTIVE = "active"
    EXPIRING = "expiring"
    UNUSED = "unused"
    EXPIRED = "expired"
    REVOKED = "revoked"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Listed:
    """A key with what may be told of its secrets, the newest last."""

    key: Key
    secrets: tuple[KnownSecret, ...]
    searched: str

    @property
    def hint(self) -> str:
        """How its newest secret begins; "" where it has none."""
        return self.secrets[-1].hint if self.secrets else ""


@dataclass(frozen=True, slots=True)
class Found:
    """Some keys, and how many there are in each state whatever was looked for.

    `at` is the time by which keys end.
    """

    at: datetime
    keys: Sequence[Listed]
    counts: Mapping[Which, int]
    odd: int


class KeyBook:
    """Follows one store's keys; every verb may raise StoreError."""

    def __init__(self, store: KeyStore) -> None:
        self._store = store
        self._revision = -1
        self._listed: dict[str, Listed] = {}
        self._odd: set[str] = set()
        self._reading = asyncio.Lock()

    async def find(self, wanted: str, which: Which, now: datetime) -> Found:
        """The keys in that state whose name, contact, id or hint holds every word of a text."""
        await self._follow()
        at = await self._store.key_time(now)
        unused = await self._store.unused_since(now - UNUSED)
        found, counts = [], Counter[Which]()
        words = wanted.casefold().split()
        for each in self._listed.values():
            states = states_of(each.key, each.key.id in unused, at)
            counts.update(states)
            if which in states and all(word in each.searched for word in words):
                found.append(each)
        return Found(at, found, {state: counts[state] for state in Which}, len(self._odd))

    async def named(self, name: str, now: datetime) -> Sequence[Key]:
        """The active keys of that name, however its letters are written."""
        await self._follow()
        at = await self._store.key_time(now)
        wanted = name.casefold()
        keys = (each.key for each in self._listed.values())
        return [key for key in keys if key.name.casefold() == wanted and key.active(at)]

    async def keys(self) -> Mapping[str, Key]:
        """Key id -> key, of all that make sense."""
        await self._follow()
        return {key_id: each.key for key_id, each in self._listed.items()}

    async def names(self) -> Mapping[str, str]:
        """Key id -> name, of all."""
        await self._follow()
        return {key_id: each.key.name for key_id, each in self._listed.items()}

    async def _follow(self) -> None:
        async with self._reading:
            revision, changed = await self._store.changes(self._revision)
            if revision < self._revision:  # the store was put back
                self._listed.clear()
                self._odd.clear()
                revision, changed = await self._store.changes(-1)
            self._take(changed)
            self._revision = revision

    def _take(self, changed: Iterable[KeyChange]) -> None:
        for each in changed:
            self._odd.discard(each.id)
            self._listed.pop(each.id, None)
            if each.key is None:
                self._odd.add(each.id)
            else:
                self._listed[each.id] = Listed(
                    each.key, each.secrets, _searched(each.key, each.secrets)
                )


def states_of(key: Key, is_unused: bool, now: datetime) -> tuple[Which, ...]:
    """Every state that the key is in."""
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


def _searched(key: Key, secrets: Iterable[KnownSecret]) -> str:
    parts = (key.name, key.contact or "", key.id, *(each.hint for each in secrets))
    return "\n".join(parts).casefold()
