"""The store that the configuration names, opened for its keys."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from gateway.cli.keys.told import odd
from gateway.cli.options import fail

T = TypeVar("T")


def place(config: Path | None) -> Any:
    """Where that store is, as it may be shown."""
    from gateway.cli.configuration import store_shown
    from gateway.settings import load_settings

    return store_shown(load_settings(config))


def with_store(
    config: Path | None, work: Callable[[Any], Awaitable[T]], *, may_begin: bool = False
) -> T:
    """Run work on the configured store's keys; what is refused is said in a sentence."""
    import asyncio

    from gateway.keys.store import KeyStore
    from gateway.keys.told import OddKey, RevokedKey, UnknownKey
    from gateway.settings import check_own_place, load_settings
    from gateway.state import opened

    async def run() -> T:
        check_own_place(config)
        async with opened(load_settings(config), may_begin=may_begin) as store:
            return await work(KeyStore(store))

    try:
        return asyncio.run(run())
    except UnknownKey as error:
        fail(_unknown(str(error)))
    except OddKey as error:
        fail(odd(str(error)))
    except RevokedKey:
        fail("this key was revoked, for good; `clinic-gateway keys create` makes a new one")


def with_key(config: Path | None, wanted: str, work: Callable[[Any, str], Awaitable[T]]) -> T:
    """The same with the id of one key, which is named by that or by a name that it alone has."""

    async def found(store: Any) -> T:
        return await work(store, await _id_of(store, wanted))

    return with_store(config, found)


async def _id_of(store: Any, wanted: str) -> str:
    listing = await store.list()
    keys = [key for key, _ in listing.keys]
    if wanted in listing.odd or any(key.id == wanted for key in keys):
        return wanted
    # imported only now: who names an id need not wait for it
    from gateway.cli.one_key import one_named

    return one_named(keys, wanted).id


def _unknown(key_id: str) -> str:
    return f"no key has the id {key_id}; `clinic-gateway keys list` shows them"
