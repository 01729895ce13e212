"""Processes that are killed on the way of a booking: its caller gets it, and nobody gets two."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGSTOP
from typing import Any

import pytest

from adapters.base import Adapter, Query
from gateway.booking.base import Booked, BookingRefused, BookingRequest
from gateway.booking.ledger import Ledger
from gateway.booking.reconcile import Reconciler
from gateway.booking.rows import LedgerRows
from gateway.booking.takeover import Owners
from gateway.booking.times import FreeTimes
from gateway.contract.errors import Unavailable
from gateway.store import Store, open_store
from tests.booking.clinic import WINDOW, Heard
from tests.booking.crashing import POINTS, attempt_of, booking, ids_of
from tests.command import Forked
from tests.races.practice import ZONE, Practice, practice

pytestmark = pytest.mark.long

LANDED = ("committed", "answered")


@dataclass
class Scene:
    """A practice, a store, and the process of the tests, which is one of a gateway's too."""

    folder: Path
    practice: Practice
    place: str
    store: Store
    adapter: Adapter
    owners: Owners
    ids: dict[str, str]

    @contextmanager
    def booked_until(self, point: str, key: str | None) -> Iterator[Forked]:
        """A process that books, once it has come to that point."""
        orders = {
            "folder": str(self.folder), "name": "theirs", "practice": self.practice.url,
            "store": self.place, "key": key, "point": point, "ids": self.ids,
        }  # fmt: skip
        with Forked(booking, orders) as process:
            try:
                assert process.stdout.readline() == f"{point}\n", process.stderr.read()
                yield process
            finally:
                process.kill()

    def ledger(self, **more: Any) -> Ledger:
        return Ledger(self.store, self.owners, Heard(), lambda: datetime.now(UTC), **more)

    @asynccontextmanager
    async def reconciled(self, **more: Any) -> AsyncIterator[Reconciler]:
        reconciler = Reconciler(self.store, self.adapter, self.owners, Heard(), **more)
        try:
            yield reconciler
        finally:
            await reconciler.aclose()

    async def attempt(self, key: str | None, who: str = "p") -> BookingRequest:
        return await attempt_of(self.adapter, key=key, who=who, ids=self.ids)

    async def states(self) -> dict[str, int]:
        return {state: n for state, n in (await LedgerRows(self.store).states())[0].items() if n}

    async def appointments(self) -> int:
        [[count]] = await self.practice.run(
            "SELECT COUNT(*) FROM appointment WHERE note = 'crash' AND state <> 'GONE'"
        )
        return int(count)

    async def is_offered(self) -> bool:
        wanted = (await self.attempt("any")).draft
        values = {
            "vetId": self.ids["vets"],
            "date": wanted.scheduled_at.astimezone(ZONE).date(),
            "appointmentTypeId": self.ids["appointmentTypes"],
        }
        query = Query(resource="slots", now=datetime.now(UTC), values=values)
        page = await FreeTimes(self.adapter, self.store, WINDOW).read_many(query)
        starts = [datetime.fromisoformat(each["startTime"]) for each in page.records]
        return wanted.scheduled_at in starts


@pytest.fixture
async def scene(store_place: str, tmp_path: Path) -> AsyncIterator[Scene]:
    with practice("sqlite", tmp_path) as made:
        store, adapter = open_store(store_place), made.open(tmp_path)
        owners = Owners(store, tmp_path)
        await owners.start()
        ids = await ids_of(adapter)
        yield Scene(tmp_path, made, store_place, store, adapter, owners, ids)
        await owners.aclose()
        await adapter.aclose()
        await store.aclose()


@pytest.mark.parametrize("point", POINTS)
async def test_after_a_kill_the_retry_gets_its_booking_and_nobody_gets_two(
    scene: Scene, point: str
) -> None:
    with scene.booked_until(point, "k") as process:
        process.kill()
        process.wait(10)
        async with scene.reconciled() as reconciler:
            await reconciler.begin()
        # the look-up waited for whatever was at work: what it does not find was not made
        assert await scene.states() == ({"done": 1} if point in LANDED else {})
        assert await scene.is_offered() == (point not in LANDED)
        booked = await scene.ledger().book(await scene.attempt("k"))
        assert booked.replayed == (point in LANDED)
        assert await scene.ledger().book(await scene.attempt("k")) == Booked(booked.record, True)
        with pytest.raises(BookingRefused):
            await scene.ledger().book(await scene.attempt("third", "another partner"))
    assert await scene.appointments() == 1


@pytest.mark.parametrize("point", POINTS)
async def test_after_a_kill_without_a_retry_no_time_stays_blocked(scene: Scene, point: str) -> None:
    with scene.booked_until(point, None) as process:
        process.kill()
        process.wait(10)
        async with scene.reconciled(lands=0) as reconciler:
            await reconciler.begin()
        landed = point in LANDED
        assert await scene.states() == ({"done": 1} if landed else {})
        assert await scene.is_offered() == (not landed)
        assert await scene.appointments() == landed
        if point == "committed":  # nobody was told: a retry without a key is given it, once
            assert (await scene.ledger().book(await scene.attempt(None))).replayed
        if landed:
            with pytest.raises(BookingRefused):
                await scene.ledger().book(await scene.attempt(None))


async def test_who_waits_for_a_process_that_is_killed_takes_over_at_once(scene: Scene) -> None:
    with scene.booked_until("committed", "k") as process:
        call = asyncio.create_task(scene.ledger().book(await scene.attempt("k")))
        await asyncio.sleep(0.2)
        assert not call.done()
        process.kill()
        begun = time.monotonic()
        assert (await call).replayed
        assert time.monotonic() - begun < 2
    assert await scene.appointments() == 1


async def test_a_process_that_is_only_stopped_keeps_what_is_its_own(scene: Scene) -> None:
    with scene.booked_until("sent", "k") as process:
        process.send_signal(SIGSTOP)
        async with scene.reconciled(lands=0) as reconciler:
            await reconciler.begin()
            assert await scene.states() == {"sent": 1}
        with pytest.raises(Unavailable) as refused:
            await scene.ledger(wait=0.3).book(await scene.attempt("k"))
        assert refused.value.retry_after == 1
