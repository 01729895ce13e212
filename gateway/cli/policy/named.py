"""The store in which a command finds the policies that ran."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.settings import Settings
from gateway.state import open_own_store, store_place
from gateway.store import Store


@asynccontextmanager
async def own_store(settings: Settings) -> AsyncIterator[Store | None]:
    """The gateway's own store, where there is one already; a question makes none."""
    place = store_place(settings)
    if isinstance(place, Path) and not place.exists():
        yield None
        return
    store = open_own_store(settings)
    try:
        await store.migrate()
        yield store
    finally:
        await store.aclose()
