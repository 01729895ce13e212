"""The keys in the store that the configuration names, for commands."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gateway.cli.keys.told import odd
from gateway.cli.options import fail
from gateway.cli.stores import with_deeds, with_store

if TYPE_CHECKING:  # to import them takes long: a command does, where it opens a store
    from gateway.cli.deeds import Deed
    from gateway.keys.store import KeyStore

T = TypeVar("T")


def place(config: Path | None) -> Any:
    """Where that store is, as it may be shown."""
    from gateway.cli.configuration import store_shown
    from gateway.settings import load_settings

    return store_shown(load_settings(config))


def with_keys(config: Path | None, work: Callable[["KeyStore"], Awaitable[T]]) -> T:
    """Run work that reads the configured store's keys; what is refused is said in a sentence."""
    from gateway.keys.store import KeyStore

    with _refusals():
        return with_store(config, lambda store: work(KeyStore(store)))


def change_keys(
    config: Path | None,
    work: Callable[["KeyStore", "Deed"], Awaitable[T]],
    *,
    may_begin: bool = False,
) -> T:
    """Run work that changes the keys, as `with_deeds`; else as `with_keys`."""
    from gateway.keys.store import KeyStore

    with _refusals():
        return with_deeds(
            config, lambda store, deed: work(KeyStore(store), deed), may_begin=may_begin
        )


def with_key(
    config: Path | None, wanted: str, work: Callable[["KeyStore", str], Awaitable[T]]
) -> T:
    """As `with_keys`, with the id of the key that is named by that or by a name it alone has."""

    async def found(store: "KeyStore") -> T:
        return await work(store, await _id_of(store, wanted))

    return with_keys(config, found)


def id_of(config: Path | None, wanted: str) -> str:
    """The id of the key that is named so; else the end of the command, with nothing done."""
    return with_keys(config, lambda store: _id_of(store, wanted))


@contextmanager
def _refusals() -> Iterator[None]:
    from gateway.keys.base import OddKey, RevokedKey, UnknownKey

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
