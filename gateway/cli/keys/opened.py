"""The store that the configuration names, opened for its keys."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gateway.cli.keys.told import odd
from gateway.cli.options import fail

if TYPE_CHECKING:  # to import them takes long: a command does, where it opens a store
    from gateway.cli.deeds import Deed
    from gateway.keys.store import KeyStore

T = TypeVar("T")


def place(config: Path | None) -> Any:
    """Where that store is, as it may be shown."""
    from gateway.cli.configuration import store_shown
    from gateway.settings import load_settings

    return store_shown(load_settings(config))


def with_store(config: Path | None, work: Callable[["KeyStore"], Awaitable[T]]) -> T:
    """Run work that reads the configured store's keys; what is refused is said in a sentence."""
    import asyncio

    from gateway.keys.store import KeyStore

    async def run() -> T:
        async with _opened(config) as (_, store):
            return await work(KeyStore(store))

    with _refusals():
        return asyncio.run(run())


def with_deeds(
    config: Path | None,
    work: Callable[["KeyStore", "Deed"], Awaitable[T]],
    *,
    may_begin: bool = False,
) -> T:
    """Run work that changes the configured store's keys; else as `with_store`.

    Where there is no state yet, one is made if it `may_begin`.
    """
    import asyncio

    from gateway.cli.deeds import recording
    from gateway.keys.store import KeyStore

    async def run() -> T:
        async with (
            _opened(config, may_begin=may_begin) as (settings, store),
            recording(settings, store) as deed,
        ):
            return await work(KeyStore(store), deed)

    with _refusals():
        return asyncio.run(run())


def with_key(
    config: Path | None, wanted: str, work: Callable[["KeyStore", str], Awaitable[T]]
) -> T:
    """As `with_store`, with the id of the key that is named by that or by a name it alone has."""

    async def found(store: "KeyStore") -> T:
        return await work(store, await _id_of(store, wanted))

    return with_store(config, found)


def id_of(config: Path | None, wanted: str) -> str:
    """The id of the key that is named so; else the end of the command, with nothing done."""
    return with_store(config, lambda store: _id_of(store, wanted))


@asynccontextmanager
async def _opened(
    config: Path | None, *, may_begin: bool = False
) -> AsyncIterator[tuple[Any, Any]]:
    from gateway.settings import check_own_place, load_settings
    from gateway.state import opened

    check_own_place(config)
    settings = load_settings(config)
    async with opened(settings, may_begin=may_begin) as store:
        yield settings, store


@contextmanager
def _refusals() -> Iterator[None]:
    from gateway.keys.told import OddKey, RevokedKey, UnknownKey

    try:
        yield
    except UnknownKey as error:
        fail(f"no key has the id {error}; `clinic-gateway keys list` shows them")
    except OddKey as error:
        fail(odd(str(error)))
    except RevokedKey:
        fail("this key was revoked, for good; `clinic-gateway keys create` makes a new one")


async def _id_of(store: "KeyStore", wanted: str) -> str:
    listing = await store.list()
    keys = [key for key, _ in listing.keys]
    if wanted in listing.odd or any(key.id == wanted for key in keys):
        return wanted
    # imported only now: who names an id need not wait for it
    from gateway.cli.one_key import one_named

    return one_named(keys, wanted).id
