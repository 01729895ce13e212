"""The store that the configuration names, opened for its administrators."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from gateway.cli.deeds import Deed, recording
from gateway.cli.options import fail
from gateway.settings import Settings, check_own_place, load_settings
from gateway.state import opened
from gateway.store import Store

T = TypeVar("T")


def with_store(config: Path | None, work: Callable[[Store], Awaitable[T]]) -> T:
    """Run work on the configured store."""

    async def run() -> T:
        async with _opened(config) as (_, store):
            return await work(store)

    return asyncio.run(run())


def with_deeds(config: Path | None, work: Callable[[Store, Deed], Awaitable[T]]) -> T:
    """Run work that changes something."""

    async def run() -> T:
        async with _opened(config) as (settings, store), recording(settings, store) as deed:
            return await work(store, deed)

    return asyncio.run(run())


@asynccontextmanager
async def _opened(config: Path | None) -> AsyncIterator[tuple[Settings, Store]]:
    check_own_place(config)
    settings = load_settings(config)
    async with opened(settings) as store:
        yield settings, store


def unknown(name: str) -> None:
    """The end of the command: nobody has that name."""
    fail(f"nobody has the name {name}; `clinic-gateway admin list` shows all")
