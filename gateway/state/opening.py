"""The one way to a state: its parts are looked at together, before anything is read or made."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.identity import META, new_identity, write_identity
from gateway.sealing import is_own_secret, make_file
from gateway.settings import Settings, StartRefused
from gateway.state.check import check_parts
from gateway.state.folder import hand_over, make_folder, open_own_store
from gateway.state.parts import Part, Parts, find_parts
from gateway.store import Store
from gateway.store.base import HEAD


async def begin_state(settings: Settings, store: Store) -> None:
    """For whoever may begin a state: a new one is made, an old one gets its identity.

    StartRefused where its parts do not belong together, or one is gone; StoreError.
    """
    parts = await _checked(settings, store)
    make_folder(settings.state)
    await store.migrate()
    if parts.version != HEAD:
        parts = await _checked(settings, store)
    identity = await store.set_meta_once(META, parts.identity or new_identity())
    for each in parts.files:
        if each is not parts.secret or await is_own_secret(settings, store):
            _adopt(each, identity)
    if not parts.has_ids:
        make_file(settings, identity)


async def open_state(settings: Settings, store: Store) -> None:
    """For everybody else: nothing is made. Else as `begin_state`."""
    if not await _is_begun(settings, store):
        raise StartRefused(
            f"there is no store at {store.place} yet: `clinic-gateway serve` makes it, and so does"
            " `clinic-gateway keys create`; or name another configuration with --config"
        )


@asynccontextmanager
async def opened(settings: Settings, *, may_begin: bool = False) -> AsyncIterator[Store]:
    """The state's own store. StartRefused, StoreError."""
    store = open_own_store(settings)
    try:
        await (begin_state if may_begin else open_state)(settings, store)
        yield store
    finally:
        await store.aclose()
        if may_begin:
            hand_over(settings.state)


@asynccontextmanager
async def opened_if_begun(settings: Settings) -> AsyncIterator[Store | None]:
    """The same; None where no state has begun here. StartRefused, StoreError."""
    store = open_own_store(settings)
    try:
        yield store if await _is_begun(settings, store) else None
    finally:
        await store.aclose()


async def _is_begun(settings: Settings, store: Store) -> bool:
    parts = await _checked(settings, store)
    if parts.version is None:
        return False
    await store.migrate(make=False)
    if parts.version != HEAD:
        await _checked(settings, store)
    return True


async def _checked(settings: Settings, store: Store) -> Parts:
    parts = await find_parts(settings, store)
    check_parts(parts)
    return parts


def _adopt(part: Part, identity: str) -> None:
    """A part of before states had identities gets that of its state."""
    if not part.is_there or not part.made_here or part.identity:
        return
    try:
        write_identity(Path(part.place), identity)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no ASCII text"
        raise StartRefused(f"{part} cannot be written: {reason.lower()}") from error
