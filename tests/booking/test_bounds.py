"""Room for the ledger's transactions: while one hangs, others are refused and none piles up."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.contract.errors import Unavailable
from gateway.store import Store, StoreError, base, open_store
from gateway.store.base import AT_ONCE, PATIENCE, REST, BoundedStore
from tests.booking.clinic import World
from tests.waiting import until


class Hanging(Store):
    """The world's own store, which answers nobody while it hangs."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.engine, store.place)
        self.goes_on = asyncio.Event()
        self.inside = 0

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        self.inside += 1
        try:
            await self.goes_on.wait()
            async with super().begin() as connection:
                yield connection
        finally:
            self.inside -= 1


async def test_while_the_ledger_hangs_nothing_piles_up_and_refusals_are_quick(
    world: World, monkeypatch: pytest.MonkeyPatch, patience: Callable[[float], None]
) -> None:
    patience(0.5)
    monkeypatch.setattr(base, "REST", 30.0)
    store = Hanging(world.store)
    ledger = world.opened(store)
    before = len(asyncio.all_tasks())
    calls = [world.book(f"k{n}", through=ledger) for n in range(50)]
    first = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(each, Unavailable) for each in first)
    begun = time.monotonic()
    for number in range(50):
        with pytest.raises(Unavailable):
            await world.book(f"l{number}", through=ledger)
    assert time.monotonic() - begun < 10  # were each to wait, it would be 25
    await until(lambda: store.inside == AT_ONCE)
    await until(lambda: len(asyncio.all_tasks()) - before <= AT_ONCE)
    patience(30.0)
    store.goes_on.set()
    await until(lambda: store.inside == 0)
    assert not (await world.book(through=ledger)).replayed


async def test_one_is_let_in_now_and_then_to_see(tmp_path: Path) -> None:
    now = 0.0
    of = BoundedStore(open_store(tmp_path / "g.db"), clock=lambda: now)
    async with of.taken():
        now = PATIENCE - 0.01
        async with of.taken():
            pass
        for now in (PATIENCE, PATIENCE + REST - 0.01):  # noqa: B007 - the clock
            with pytest.raises(StoreError):
                await of.taken().__aenter__()
        for now in (PATIENCE + REST, PATIENCE + 2 * REST):  # noqa: B007 - the clock
            async with of.taken():
                pass
            with pytest.raises(StoreError):
                await of.taken().__aenter__()
    async with of.taken():
        pass
