"""The ledger: one outcome for a day, whatever happens in between; nothing twice."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from adapters.base import (
    BackendUnavailable,
    Draft,
    NotFound,
    OutcomeUnknown,
    Record,
    Rejected,
    SlotTaken,
)
from gateway.booking.base import Attempt, Booked, Refused
from gateway.booking.ledger import Ledger
from gateway.contract.errors import InvalidField, InvalidRequest, KeyReused, Unavailable
from gateway.store import Store, open_store
from gateway.store.tables import bookings

NOW = datetime(2026, 3, 4, 10, tzinfo=UTC)
DAY, MINUTE = timedelta(hours=24), timedelta(minutes=1)
ONE, OTHER = b"1" * 32, b"2" * 32
PAST = InvalidRequest(InvalidField("scheduledAt", "must be in the future"))


class Clinic:
    """A practice system whose answers a test decides, and which remembers what it made."""

    def __init__(self) -> None:
        self.answers: list[Exception] = []
        self.made: list[Record] = []
        self.lost: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.asked: list[str] = []
        self.called = asyncio.Event()

    async def create_appointment(self, draft: Draft) -> Record:
        self.asked.append("create")
        self.called.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.answers:
            raise self.answers.pop(0)
        self.made.append({"id": f"a{len(self.made)}", "reason": draft.reason})
        if self.lost is not None:
            error, self.lost = self.lost, None
            raise error
        return self.made[-1]

    async def find_appointment(self, draft: Draft, since: datetime) -> Record | None:
        self.asked.append("find")
        if self.answers:
            raise self.answers.pop(0)
        return self.made[-1] if self.made else None


class World:
    """A ledger over a real store, a clinic, and a clock."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.ledger = Ledger(store, wait=60)
        self.clinic = Clinic()
        self.now = NOW
        self.past = False

    async def book(self, key: str | None = "k", fingerprint: bytes = ONE, who: str = "p") -> Booked:
        attempt = Attempt(
            key_id=who,
            idempotency_key=key,
            fingerprint=fingerprint,
            draft=Draft(
                client_id="c", patient_id="p", vet_id="v", scheduled_at=NOW + DAY,
                appointment_type_id=None, reason="r", is_urgent=False, now=self.now,
            ),
            adapter=self.clinic,  # type: ignore[arg-type]
            check_future=self.check,
            now=lambda: self.now,
        )  # fmt: skip
        return await self.ledger.book(attempt)

    def check(self) -> None:
        if self.past:
            raise PAST


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    store = open_store(f"sqlite:///{tmp_path}/gateway.db")
    await store.migrate()
    yield World(store)
    await store.aclose()


async def test_the_same_request_gets_the_first_booking_again(world: World) -> None:
    first = await world.book()
    assert first == Booked({"id": "a0", "reason": "r"}, replayed=False)
    world.past = True  # the look-up comes before the look at the clock
    world.now += DAY - timedelta(seconds=1)
    assert await world.book() == Booked(first.record, replayed=True)
    assert len(world.clinic.made) == 1


async def test_after_a_day_the_key_is_free_again(world: World) -> None:
    await world.book()
    world.now += DAY
    assert not (await world.book()).replayed
    assert len(world.clinic.made) == 2


@pytest.mark.parametrize("error", [NotFound, SlotTaken])
async def test_the_practice_systems_404_and_409_stick(world: World, error: Any) -> None:
    world.clinic.answers = [error("no")]
    for replayed in (False, True, True):
        with pytest.raises(Refused) as refused:
            await world.book()
        assert (refused.value.error, refused.value.replayed) == (error.__name__, replayed)
    assert world.clinic.asked == ["create"]


@pytest.mark.parametrize("error", [BackendUnavailable, Rejected])
async def test_any_other_outcome_leaves_the_key_free(world: World, error: Any) -> None:
    world.clinic.answers = [error("down")]
    with pytest.raises(error):
        await world.book()
    assert not (await world.book(fingerprint=OTHER)).replayed
    assert world.clinic.asked == ["create", "create"]


async def test_a_time_that_is_past_is_refused_and_takes_no_key(world: World) -> None:
    world.past = True
    with pytest.raises(InvalidRequest):
        await world.book()
    world.past = False
    assert not (await world.book(fingerprint=OTHER)).replayed


async def test_the_same_key_with_another_request_is_refused(world: World) -> None:
    await world.book()
    with pytest.raises(KeyReused):
        await world.book(fingerprint=OTHER)
    assert not (await world.book(who="another partner")).replayed


async def test_without_a_key_every_call_is_its_own(world: World) -> None:
    assert not (await world.book(None)).replayed
    assert not (await world.book(None)).replayed
    world.clinic.answers = [SlotTaken("no")]
    with pytest.raises(Refused):
        await world.book(None)


@pytest.mark.parametrize("key", ["k", None])
async def test_a_lost_answer_is_looked_up_and_its_booking_given_back(
    world: World, key: str | None
) -> None:
    world.clinic.lost = OutcomeUnknown("lost")
    with pytest.raises(OutcomeUnknown):
        await world.book(key)
    found = Booked({"id": "a0", "reason": "r"}, replayed=True)
    assert await world.book(key) == found
    assert world.clinic.asked == ["create", "find"]
    if key is not None:  # from now on it is known: nobody is asked again
        assert await world.book(key) == found
        assert world.clinic.asked == ["create", "find"]


async def test_a_booking_that_certainly_was_not_made_is_made(world: World) -> None:
    world.clinic.answers = [OutcomeUnknown("lost")]
    with pytest.raises(OutcomeUnknown):
        await world.book()
    assert await world.book() == Booked({"id": "a0", "reason": "r"}, replayed=False)
    assert world.clinic.asked == ["create", "find", "create"]


async def test_while_it_cannot_be_looked_up_it_stays_unknown_and_nothing_is_sent(
    world: World,
) -> None:
    world.clinic.lost = OutcomeUnknown("lost")
    with pytest.raises(OutcomeUnknown):
        await world.book()
    world.clinic.answers = [BackendUnavailable("down")]
    with pytest.raises(OutcomeUnknown):
        await world.book()
    assert (await world.book()).replayed
    assert len(world.clinic.made) == 1


async def test_a_fault_in_an_adapter_leaves_the_outcome_unknown(world: World) -> None:
    world.clinic.lost = ZeroDivisionError()
    with pytest.raises(OutcomeUnknown) as raised:
        await world.book()
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert (await world.book()).replayed


async def test_what_a_dead_process_left_is_looked_up(world: World) -> None:
    world.clinic.gate = asyncio.Event()
    task = asyncio.create_task(world.book())
    await world.clinic.called.wait()
    world.clinic.made.append({"id": "a0", "reason": "r"})  # written, and then the process died
    heir = Ledger(world.store, wait=0.2)
    world.ledger, dead = heir, world.ledger
    assert await world.book() == Booked({"id": "a0", "reason": "r"}, replayed=True)
    world.clinic.gate.set()
    await task
    assert dead is not heir


async def test_calls_at_the_same_time_wait_and_get_one_outcome(world: World) -> None:
    world.clinic.gate = asyncio.Event()
    calls = [asyncio.create_task(world.book()) for _ in range(20)]
    await world.clinic.called.wait()
    world.clinic.gate.set()
    booked = await asyncio.gather(*calls)
    assert len(world.clinic.made) == 1
    assert {each.record["id"] for each in booked} == {"a0"}
    assert [each.replayed for each in booked].count(False) == 1


async def test_who_waits_too_long_for_the_first_is_told_to_come_back(world: World) -> None:
    world.ledger = Ledger(world.store, wait=0.2)
    world.clinic.gate = asyncio.Event()
    first = asyncio.create_task(world.book())
    await world.clinic.called.wait()
    with pytest.raises(Unavailable) as refused:
        await world.book()
    assert refused.value.retry_after == 1
    world.clinic.gate.set()
    assert not (await first).replayed


async def test_a_caller_who_goes_away_leaves_a_booking_that_is_finished(world: World) -> None:
    world.clinic.gate = asyncio.Event()
    call = asyncio.create_task(world.book())
    await world.clinic.called.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    world.clinic.gate.set()
    assert (await world.book()).replayed
    assert world.clinic.asked == ["create"]


async def kept(world: World) -> list[str]:
    """The states of the rows in the ledger, the oldest first."""
    async with world.store.begin() as connection:
        rows = await connection.execute(select(bookings.c.state).order_by(bookings.c.id))
        return list(rows.scalars())


async def test_what_is_settled_is_forgotten_after_a_day_and_what_is_unknown_after_a_week(
    world: World,
) -> None:
    await world.book("a")
    world.clinic.answers = [SlotTaken(), OutcomeUnknown("lost")]
    for key in ("b", "c"):
        with pytest.raises((Refused, OutcomeUnknown)):
            await world.book(key)
    assert await kept(world) == ["done", "refused", "unknown"]
    for later, expected in (
        (DAY - MINUTE, ["done", "refused", "unknown", "done"]),
        (DAY, ["done", "refused", "unknown", "done", "done"]),  # too soon after the last time
        (DAY + 10 * MINUTE, ["unknown", "done", "done", "done"]),
        (7 * DAY, ["done"]),
    ):
        world.now = NOW + later
        await world.book(f"at {later}")
        assert await kept(world) == expected, later


async def test_a_refusal_without_a_key_leaves_no_row(world: World) -> None:
    world.clinic.answers = [SlotTaken()]
    with pytest.raises(Refused):
        await world.book(None)
    assert await kept(world) == []


async def test_without_a_ledger_nothing_is_booked(world: World) -> None:
    async with world.store.begin() as connection:
        await connection.exec_driver_sql("DROP TABLE bookings")
    with pytest.raises(Unavailable):
        await world.book()
    assert world.clinic.asked == []
