"""The secret that seals public ids, and the store's table of the ids that stand for a key.

The secret is made once and kept in a file that only its owner reads; cursors are made with it too.
The store has its fingerprint, so that a start with another one is refused before a partner sees
unknown ids.
"""

import asyncio
import math
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path

from sqlalchemy import select, true

from adapters.base import BackendUnavailable
from gateway import identity
from gateway.settings import Settings, StartRefused, read_secret_file
from gateway.settings.kinds import read_sealing_secret, secret_text
from gateway.store import Store, StoreError
from gateway.store.base import BoundedStore
from gateway.store.engine import AsyncConnection
from gateway.store.tables import adding, meta, public_ids

FILE = "sealing.secret"
META = "sealing secret fingerprint"
# Of which resource ids are kept, as `announce` tells: yes or no.
ANNOUNCED = "public ids are kept: "
# Seconds for which no ids are believed to be kept once the store said so, the same where the store
# cannot be asked anew, and after an announcement until nobody believes it any longer.
BELIEVED, UNASKED, TOLD = 1.0, 60.0, 1.2


async def sealing_secret(settings: Settings, store: Store) -> bytes:
    """Returns the 32 bytes; raises StartRefused where they are gone, unsafe or not the old ones."""
    known = await store.meta(META)
    if known is None:
        make_file(settings, await store.meta(identity.META))
    secret = read_secret(settings)
    if known is None:
        known = await store.set_meta_once(META, fingerprint_of(secret))
    if not has_fingerprint(secret, known):
        raise StartRefused(
            "the sealing secret is not the one that this state folder was begun with: every public"
            " id would change; give the former one in backend.secret or backend.secret_file"
        )
    return secret


async def is_own_secret(settings: Settings, store: Store) -> bool:
    """Returns whether it exists, and the store knows no other. Raises as `read_secret` does."""
    path, known = secret_file(settings), await store.meta(META)
    if path is None or not path.exists():
        return False
    return known is None or has_fingerprint(read_secret(settings), known)


def secret_file(settings: Settings) -> Path | None:
    """Returns the file that holds it; None where the settings themselves do."""
    backend = settings.backend
    return None if backend.secret is not None else backend.secret_file or settings.state / FILE


def fingerprint_of(secret: bytes) -> str:
    """Returns what tells the secret from others, and reveals nothing of it."""
    return blake2b(b"fingerprint", key=secret, digest_size=16).hexdigest()


def has_fingerprint(secret: bytes, known: str) -> bool:
    """Returns whether that is the secret's fingerprint; any other text is not."""
    return compare_digest(fingerprint_of(secret).encode(), known.encode(errors="replace"))


def read_secret(settings: Settings) -> bytes:
    """Returns the 32 bytes; raises StartRefused where they are unreadable, or open to others."""
    backend, path = settings.backend, secret_file(settings)
    if path is None:
        return read_sealing_secret(secret_text(backend.secret))
    if backend.secret_file is None and not path.exists():
        raise StartRefused(
            f"the sealing secret {path} is gone: with a new one every public id would change;"
            " put the file back from a backup"
        )
    try:
        return read_sealing_secret(read_secret_file(path, "the sealing secret"))
    except ValueError as error:
        raise StartRefused(f"the sealing secret {path} {error}") from error


def make_file(settings: Settings, state: str | None) -> None:
    """Writes a new secret for the state of that identity, if none exists. Raises StartRefused."""
    path = settings.state / FILE
    if secret_file(settings) != path or path.exists():
        return
    try:
        # where two processes begin at once, the first one's file stays
        with suppress(FileExistsError):
            identity.write_new(path, f"{identity.state_line(state)}{secrets.token_hex(32)}\n")
    except OSError as error:
        reason = identity.reason_of(error)
        raise StartRefused(f"the sealing secret {path} cannot be written: {reason}") from error


class StoredIds:
    """An IdTable in the gateway's own store; raises BackendUnavailable where the store fails.

    `is_alone` says that no other process shows ids of this store.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float] = time.monotonic,
        *,
        is_alone: bool = False,
    ) -> None:
        self._is_alone = is_alone
        self._store, self._bounded, self._clock = store, BoundedStore(store), clock
        self._asking = asyncio.Lock()
        # when they were announced as far as this process knows, and when none were yet
        self._announced: dict[str, float] = {}
        self._none_at: dict[str, float] = {}

    async def announce(self, resource: str) -> None:
        """Says so each time, as a store may be put back.

        After the first time it waits until all other processes know, if there are any.
        """
        with _unavailable("kept"):
            await self._store.set_meta(ANNOUNCED + resource, "yes", over=true())
        since = self._announced.setdefault(resource, self._clock())
        if not self._is_alone:
            await asyncio.sleep(max(0.0, since + TOLD - self._clock()))

    async def may_hold(self, resource: str) -> bool:
        """Asks the store once for all who wait, and while it says no, once in BELIEVED seconds.

        While the store fails, what it said last is believed for UNASKED seconds.
        """
        if resource in self._announced:
            return True
        if self._age(resource) <= BELIEVED:
            return False
        async with self._asking:
            if resource not in self._announced and self._age(resource) > BELIEVED:
                await self._ask(resource)
            return resource in self._announced

    def _age(self, resource: str) -> float:
        """Returns for how many seconds it is known that none were announced."""
        return self._clock() - self._none_at.get(resource, -math.inf)

    async def _ask(self, resource: str) -> None:
        began = self._clock()
        try:
            with _unavailable("looked up"):
                is_announced = await self._is_announced(resource)
        except BackendUnavailable:
            if self._age(resource) > UNASKED:
                raise
            return
        if is_announced:
            self._announced.setdefault(resource, self._clock())
        else:
            self._none_at[resource] = began

    async def _is_announced(self, resource: str) -> bool:
        """Returns whether it was; where nobody has said yet, whether any are kept."""
        name = ANNOUNCED + resource
        said = await self._bounded.rows(select(meta.c.value).where(meta.c.name == name))
        if said:
            return bool(said[0].value == "yes")
        kept = select(public_ids.c.public_id).where(public_ids.c.resource == resource).limit(1)
        is_kept = bool(await self._bounded.rows(kept))
        with suppress(StoreError):  # one that can only be read is asked again
            is_kept = await self._store.set_meta_once(name, "yes" if is_kept else "no") == "yes"
        return is_kept

    async def remember(self, resource: str, keys: Mapping[str, str]) -> None:
        """Keeps those that are not known yet."""
        known = await self.find(resource, list(keys))
        await self._keep(resource, {name: key for name, key in keys.items() if name not in known})

    async def respell(self, resource: str, keys: Mapping[str, str]) -> None:
        """Keeps all of them, in the place of what was kept."""
        known = await self.find(resource, list(keys))
        await self._keep(resource, dict(keys.items() - known.items()), is_certain=True)

    async def _keep(
        self, resource: str, keys: Mapping[str, str], *, is_certain: bool = False
    ) -> None:
        """Writes the rows, sorted so that two processes do not wait for each other's."""
        rows = [
            {"public_id": name, "resource": resource, "key": keys[name]} for name in sorted(keys)
        ]

        async def added(connection: AsyncConnection) -> None:
            # another process may have been quicker with one of them
            new, mine = adding(connection, public_ids), public_ids.c.resource == resource
            changed = {"set_": {"key": new.excluded.key}, "where": mine}
            statement = new.on_conflict_do_nothing()
            if is_certain:
                statement = new.on_conflict_do_update(index_elements=["public_id"], **changed)
            await connection.execute(statement, rows)

        if rows:
            with _unavailable("kept"):
                await self._store.run(added)

    async def find(self, resource: str, public_ids_: Sequence[str]) -> Mapping[str, str]:
        """Returns public id -> key, of those that are known."""
        query = (
            select(public_ids.c.public_id, public_ids.c.key)
            .where(public_ids.c.public_id.in_(public_ids_))
            .where(public_ids.c.resource == resource)
        )
        with _unavailable("looked up"):
            return {row.public_id: row.key for row in await self._store.rows(query)}


@contextmanager
def _unavailable(what: str) -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise BackendUnavailable(f"public ids cannot be {what}: {error}") from error
