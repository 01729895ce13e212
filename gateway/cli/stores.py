"""The store that the configuration names, opened for a command."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gateway.cli.options import fail

if TYPE_CHECKING:  # to import them takes long: a command does, where it opens a store
    from gateway.cli.deeds import Deed
    from gateway.settings import Settings
    from gateway.store import Store

T = TypeVar("T")


def with_store(
    config: Path | None, work: Callable[["Store"], Awaitable[T]], *, where_none: str = ""
) -> T:
    """Run work on the configured store.

    Where there is no store yet, the command ends with `where_none`; StartRefused without one.
    """
    import asyncio

    async def run() -> T:
        async with _opened(config, where_none=where_none) as (_, store):
            return await work(store)

    return asyncio.run(run())


def with_deeds(
    config: Path | None,
    work: Callable[["Store", "Deed"], Awaitable[T]],
    *,
    may_begin: bool = False,
) -> T:
    """Run work that changes something in the configured store.

    Where there is no state yet, one is made if it `may_begin`.
    """
    import asyncio

    from gateway.cli.deeds import recording

    async def run() -> T:
        async with (
            _opened(config, may_begin=may_begin) as (settings, store),
            recording(settings, store) as deed,
        ):
            return await work(store, deed)

    return asyncio.run(run())


@asynccontextmanager
async def _opened(
    config: Path | None, *, may_begin: bool = False, where_none: str = ""
) -> AsyncIterator[tuple["Settings", "Store"]]:
    from gateway.settings import check_own_place, load_settings
    from gateway.state import opened, opened_if_begun

    check_own_place(config)
    settings = load_settings(config)
    opening = opened_if_begun(settings) if where_none else opened(settings, may_begin=may_begin)
    async with opening as store:
        if store is None:
            fail(where_none)
        yield settings, store
