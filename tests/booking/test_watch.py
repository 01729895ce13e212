"""The watch over coming bookings: what it asks, and what the clinic is told once."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert

from adapters.base import WATCHED_AT_ONCE, BackendTimeout, Watched
from gateway.booking.reconcile import Watch
from gateway.store import Store, open_store
from gateway.store.tables import bookings
from tests.heard import Heard

NOW = datetime(2026, 3, 4, 10, tzinfo=UTC)


class Desk:
    """An adapter that sees what a test decides."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.seen: Watched | BackendTimeout = Watched()

    async def find_overwritten(self, appointments: Sequence[str]) -> Watched:
        self.asked.append(len(appointments))
        if isinstance(self.seen, BackendTimeout):
            raise self.seen
        return self.seen


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/gateway.db")
    await opened.migrate()
    yield opened
    await opened.aclose()


async def _keep(store: Store, count: int) -> None:
    async with store.begin() as connection:
        rows = [
            {
                "key_id": "k",
                "fingerprint": b"1" * 32,
                "state": "done",
                "created_at": NOW,
                "appointment_id": f"a{number}",
                "ends_at": NOW + timedelta(minutes=number + 1),
            }
            for number in range(count)
        ]
        await connection.execute(insert(bookings), rows)


async def test_what_cannot_be_read_is_told_once_and_not_taken_for_removed(store: Store) -> None:
    await _keep(store, 2)
    desk, heard = Desk(), Heard()
    watch = Watch(
        store,
        desk,  # type: ignore[arg-type]  # it is asked nothing else
        heard,
        lambda: NOW,
    )
    for seen, tells, known in [
        (Watched(overwritten=frozenset(["a0"])), ["booking_overwritten: a0"], 1),
        (
            Watched(unreadable=frozenset(["a1", "a0"])),
            ["booking_unreadable: a0", "booking_unreadable: a1"],
            1,
        ),
        (Watched(unreadable=frozenset(["a0", "a1"])), [], 1),
        (BackendTimeout("slow"), ["bookings_unwatched: slow"], 1),
        (Watched(unreadable=frozenset(["a0", "a1"])), [], 1),
        (Watched(overwritten=frozenset(["a0"])), [], 1),
        (Watched(), [], 0),
        (Watched(unreadable=frozenset(["a1"])), ["booking_unreadable: a1"], 0),
    ]:
        heard.said.clear()
        desk.seen = seen
        await watch.look()
        assert (heard.said, watch.overwritten) == (tells, known)


async def test_many_bookings_are_asked_about_together(store: Store) -> None:
    await _keep(store, 2 * WATCHED_AT_ONCE + 1)
    desk = Desk()
    watch = Watch(store, desk, Heard(), lambda: NOW)  # type: ignore[arg-type]
    await watch.look()
    assert desk.asked == [WATCHED_AT_ONCE, WATCHED_AT_ONCE, 1]
