"""Keeps the keys in the store: makes, changes, rotates and revokes them."""

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from secrets import randbelow
from typing import Any, NamedTuple

import sqlalchemy as sa
from msgspec import MsgspecError, convert
from sqlalchemy.exc import IntegrityError

from gateway.contract.resources import GOVERNED
from gateway.keys.key import Key, read_network
from gateway.keys.secret import digest, hint, mint
from gateway.store import tables
from gateway.store.base import Store, StoreError
from gateway.store.engine import AsyncConnection
from gateway.store.tables import instant, keys, meta, read_instant, revisions, secrets


def _untyped(table: sa.Table) -> list[sa.ColumnElement[Any]]:
    """Returns the columns with their times as texts, so that a bad one spoils only its own row."""
    texts = (sa.type_coerce(column, sa.String).label(column.name) for column in table.c)
    pairs = zip(table.c, texts, strict=True)
    return [text if isinstance(own.type, tables.Instant) else own for own, text in pairs]


_COLUMNS, _SECRETS = _untyped(keys), _untyped(secrets)
# A revision moves on by a random step, so that a store that was put back from a backup and changed
# as often as before is not taken for what it was.
MOST_STEP = 1_000
_SCOPES = frozenset(resource.name for resource in GOVERNED)
# Ids in one query.
KEYS_AT_ONCE = 1_000
# The name in the store of the latest time that it has seen.
LATEST = "latest time"


@dataclass(frozen=True, slots=True)
class KnownSecret:
    """What is kept of a secret; without `expires_at` it is good for as long as its key."""

    hint: str
    digest: bytes
    expires_at: datetime | None = None


class KeyAndSecrets(NamedTuple):
    """A key, and what is kept of its secrets, the oldest first."""

    key: Key
    secrets: tuple[KnownSecret, ...]

    @property
    def hint(self) -> str:
        """How its newest secret begins; "" where it has none."""
        return self.secrets[-1].hint if self.secrets else ""


@dataclass(frozen=True, slots=True)
class Listing:
    """Every key in the order of making, with its secrets; `odd` are ids that make no sense."""

    keys: Sequence[KeyAndSecrets]
    odd: Sequence[str]


class OddKey(Exception):
    """Raised where what is kept of the key with that id makes no sense."""


class OddTime(StoreError):
    """Raised where the store keeps no time as its latest time."""


class UnknownKey(LookupError):
    """Raised where no key has that id."""


class KeyExists(Exception):
    """Raised where there is a key of that id already."""


class RevokedKey(Exception):
    """Raised where the key with that id was revoked."""


class ChangedKey(Exception):
    """Raised where the key with that id is not as it was when somebody looked at it."""


class KeyStore:
    """The keys of one store. Every method may raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.mark = store.mark  # while it is the same, most likely nothing has changed

    async def add(self, key: Key) -> str:
        """Stores a new key; returns its secret, told this once. Raises KeyExists."""
        secret = mint()

        async def added(connection: AsyncConnection) -> None:
            row = row_of(key) | {"id": key.id, "revision": await _next_revision(connection)}
            await connection.execute(sa.insert(keys).values(row))
            await _add_secret(connection, key.id, secret, key.created_at)

        try:
            await self._store.run(added)
        except IntegrityError as error:
            raise KeyExists(key.id) from error
        return secret

    async def list(self) -> Listing:
        async with self._store.begin() as connection:
            read = await _read(connection)
        sound = [held for held in read.values() if held is not None]
        sound.sort(key=lambda held: (held.key.created_at, held.key.id))
        return Listing(sound, [key_id for key_id, held in read.items() if held is None])

    async def show(self, key_id: str) -> KeyAndSecrets:
        """Returns the key and what is kept of its secrets. Raises UnknownKey and OddKey."""
        async with self._store.begin() as connection:
            return await _get(connection, key_id)

    async def update(self, key_id: str, expected: Key | None = None, **changes: Any) -> Key:
        """Changes fields of a key, and returns it. Raises UnknownKey, OddKey and RevokedKey.

        Raises ChangedKey where its settings are no longer those of `expected`.
        """

        def changed(before: Key) -> Key:
            if before.revoked_at is not None:
                raise RevokedKey(key_id)
            if expected is not None and row_of(before) != row_of(expected):
                raise ChangedKey(key_id)
            return replace(before, **changes)

        return await self._change(key_id, changed)

    async def rotate(
        self, key_id: str, overlap: timedelta, now: datetime, newest: str | None = None
    ) -> tuple[str, KeyAndSecrets]:
        """Returns a new secret, told this once, and the key; older ones are good for the overlap.

        Raises UnknownKey and OddKey; RevokedKey, since a new secret would open nothing; and
        ChangedKey where `newest` is not the hint of its newest secret.
        """
        secret = mint()

        async def rotated(connection: AsyncConnection) -> KeyAndSecrets:
            revision = await _next_revision(connection)
            held = await _get(connection, key_id)
            if held.key.revoked_at is not None:
                raise RevokedKey(key_id)
            if newest not in (None, held.hint):
                raise ChangedKey(key_id)
            own, until = secrets.c.key_id == key_id, now + overlap
            lasting = secrets.c.expires_at.is_(None) | (secrets.c.expires_at > until)
            ending = sa.update(secrets).where(own, lasting).values(expires_at=until)
            await connection.execute(ending)
            await connection.execute(sa.delete(secrets).where(own, secrets.c.expires_at <= now))
            await _add_secret(connection, key_id, secret, now)
            moved = sa.update(keys).where(keys.c.id == key_id).values(revision=revision)
            await connection.execute(moved)
            # read before the commit: a new secret that could not be told would be lost
            return await _get(connection, key_id)

        return secret, await self._store.run(rotated)

    async def revoke(self, key_id: str, now: datetime) -> Key:
        """Revokes the key for good; a second time changes nothing. Raises UnknownKey and OddKey."""
        return await self._change(
            key_id, lambda key: replace(key, revoked_at=key.revoked_at or now)
        )

    async def _change(self, key_id: str, change: Callable[[Key], Key]) -> Key:
        async def changed(connection: AsyncConnection) -> Key:
            revision = await _next_revision(connection)
            before, _ = await _get(connection, key_id)
            key = change(before)
            if key != before:
                row = row_of(key) | {"revision": revision}
                await connection.execute(sa.update(keys).where(keys.c.id == key_id).values(row))
            return key

        return await self._store.run(changed)

    async def latest_time(self) -> datetime | None:
        """Returns the latest time that this store has seen; None before any. Raises OddTime."""
        return self._time(await self._store.meta(LATEST))

    async def key_time(self, now: datetime) -> datetime:
        """Returns the time by which keys end: the latest seen, or a later `now`. Raises OddTime."""
        return max(now, await self.latest_time() or now)

    async def advance_time(self, now: datetime) -> datetime:
        """Notes a time that was seen; returns the latest of all. Raises OddTime."""
        text = instant(now)  # its order as a text is that of time
        seen = await self._store.set_meta(LATEST, text, over=meta.c.value < text)
        return self._time(seen) or now

    async def accept_time(self, now: datetime) -> None:
        """Sets the latest time, though later ones have been seen."""
        await self._store.set_meta(LATEST, instant(now))

    def _time(self, text: str | None) -> datetime | None:
        try:
            read = read_instant(text)
            return read and read.astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise OddTime(
                f"{self._store.place} keeps as `latest time` (in its table meta) what is no time:"
                " check that this machine's clock is right, then run"
                " `clinic-gateway state clock --accept`"
            ) from error

    async def changes(self, since: int) -> tuple[int, Mapping[str, KeyAndSecrets | None]]:
        """Returns the revision, and by id each key that changed since; None where it is odd."""
        async with self._store.glance() as connection:
            revision = await _revision(connection)
        if revision == since:
            return revision, {}
        async with self._store.begin() as connection:
            # a later change may be read with it, and is then read once more
            revision = await _revision(connection)
            return revision, await _read(connection, keys.c.revision > since)

    async def last_used(self, key_ids: Sequence[str]) -> Mapping[str, datetime]:
        """Returns when each of some keys was last used, where it was at all."""
        times: dict[str, datetime] = {}
        columns = keys.c.id, sa.type_coerce(keys.c.last_used_at, sa.String)
        for start in range(0, len(key_ids), KEYS_AT_ONCE):
            some = keys.c.id.in_(key_ids[start : start + KEYS_AT_ONCE])
            for key_id, moment in await self._store.rows(sa.select(*columns).where(some)):
                with contextlib.suppress(ValueError):
                    if (used := read_instant(moment)) is not None:
                        times[key_id] = used
        return times

    async def unused_since(self, moment: datetime) -> frozenset[str]:
        """Returns the ids of keys that are older than that, and were not used since then."""
        idle = keys.c.last_used_at.is_(None) | (keys.c.last_used_at < moment)
        query = sa.select(keys.c.id).where(keys.c.created_at < moment, idle)
        return frozenset(key_id for (key_id,) in await self._store.rows(query))

    async def save_last_used(self, used: Mapping[str, datetime]) -> None:
        """Writes times of last use, which is no change that others follow."""
        if not used:
            return
        # in one order, so that two processes do not wait for each other's rows
        rows = [{"key": key_id, "used": moment} for key_id, moment in sorted(used.items())]
        earlier = keys.c.last_used_at.is_(None) | (keys.c.last_used_at < sa.bindparam("used"))
        own = sa.update(keys).where(keys.c.id == sa.bindparam("key"), earlier)
        changed = own.values(last_used_at=sa.bindparam("used"))
        await self._store.run(lambda connection: connection.execute(changed, rows))


async def _revision(connection: AsyncConnection) -> int:
    value = await connection.execute(sa.select(revisions.c.value).where(revisions.c.name == "keys"))
    return int(value.scalar_one())


async def _next_revision(connection: AsyncConnection) -> int:
    """Moves the revision on and returns it; until the transaction ends no other changes a key."""
    moved = sa.update(revisions).where(revisions.c.name == "keys")
    await connection.execute(moved.values(value=revisions.c.value + 1 + randbelow(MOST_STEP)))
    return await _revision(connection)


async def _read(connection: AsyncConnection, *conditions: Any) -> dict[str, KeyAndSecrets | None]:
    rows = (await connection.execute(sa.select(*_COLUMNS).where(*conditions))).all()
    theirs = sa.select(*_SECRETS).join(keys, keys.c.id == secrets.c.key_id).where(*conditions)
    held: dict[str, list[Any]] = {}
    for secret in await connection.execute(theirs.order_by(secrets.c.created_at)):
        held.setdefault(secret.key_id, []).append(secret)
    return {row.id: _stored(row, held.get(row.id, ())) for row in rows}


async def _get(connection: AsyncConnection, key_id: str) -> KeyAndSecrets:
    rows = await _read(connection, keys.c.id == key_id)
    if key_id not in rows:
        raise UnknownKey(key_id)
    if (held := rows[key_id]) is None:
        raise OddKey(key_id)
    return held


async def _add_secret(connection: AsyncConnection, key_id: str, secret: str, now: datetime) -> None:
    row = {"digest": digest(secret), "key_id": key_id, "hint": hint(secret), "created_at": now}
    await connection.execute(sa.insert(secrets).values(row))


def row_of(key: Key) -> dict[str, Any]:
    same = ("name", "contact", "created_at", "expires_at", "revoked_at", "bookings_per_day")
    return {name: getattr(key, name) for name in same} | {
        "permissions": json.dumps(sorted(key.permissions)),
        "level": key.level.value,
        "scopes": json.dumps(dict(sorted(key.scopes.items()))),
        "hourly_limit": key.limit,
        "networks": json.dumps(key.networks),
    }


def _stored(row: Any, own: Sequence[Any]) -> KeyAndSecrets | None:
    """Returns the key of a row; None for what this version of the gateway cannot have written."""
    with contextlib.suppress(MsgspecError, ValueError, TypeError):
        known = [KnownSecret(held.hint, held.digest, read_instant(held.expires_at)) for held in own]
        values = tables.members(row) | {"limit": row.hourly_limit}
        for name in ("permissions", "scopes", "networks"):
            values[name] = json.loads(values[name] or "[]")
        key = convert(values, Key)
        is_ours = _SCOPES.issuperset(key.scopes)
        if is_ours and all(read_network(network) == network for network in key.networks):
            return KeyAndSecrets(key, tuple(known))
    return None
