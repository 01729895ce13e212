"""Reconciliation: what nobody knows is looked up until it is found, or can't come any more."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from adapters.base import BackendUnavailable, OutcomeUnknown
from gateway.booking import reconcile
from gateway.booking.base import LEFT, Booked
from gateway.booking.reconcile import Reconciler
from gateway.booking.rows import LedgerRows
from gateway.booking.takeover import boot
from gateway.store.tables import bookings
from tests.booking.clinic import DAY, OTHER, World, another, kept, slain
from tests.conftest import Start
from tests.waiting import until


@asynccontextmanager
async def reconciled(world: World, **more: Any) -> AsyncIterator[Reconciler]:
    adapter: Any = world.clinic
    made = Reconciler(world.store, adapter, world.owners, world.heard, **more)
    try:
        yield made
    finally:
        await made.aclose()


async def lost(world: World, key: str | None = "k", *, made: bool = True) -> None:
    """A booking whose outcome is not known, and which was made or not."""
    if made:
        world.clinic.lost = OutcomeUnknown("lost")
    else:
        world.clinic.answers = [OutcomeUnknown("lost")]
    with pytest.raises(OutcomeUnknown):
        await world.book(key)


async def test_what_is_found_is_told_to_the_retry_however_late(world: World) -> None:
    await lost(world)
    async with reconciled(world) as reconciler:
        await reconciler.begin()
    assert world.heard.said == ["booking_made: a0"]
    world.past = True
    for _ in range(2):
        assert await world.book() == Booked({"id": "a0", "reason": "r"}, replayed=True)
    assert world.clinic.asked == ["create", "find"]


async def test_without_a_key_what_is_found_is_told_to_one_retry(world: World) -> None:
    await lost(world, None)
    async with reconciled(world) as reconciler:
        await reconciler.begin()
    both = await asyncio.gather(world.book(None), world.book(None))
    assert sorted(each.replayed for each in both) == [False, True]
    assert sorted(each.record["id"] for each in both) == ["a0", "a1"]


async def test_what_is_not_there_stays_unknown_until_it_can_come_no_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "FIRST_PAUSE", 1.0)
    monkeypatch.setattr(reconcile, "LONGEST_PAUSE", 1.0)
    world.clinic.excludes = False
    await lost(world, made=False)
    now = 0.0
    async with reconciled(world, lands=15, clock=lambda: now) as reconciler:
        for now in (0.0, 5.0, 14.9):  # noqa: B007 - the clock
            await reconciler.begin()
            assert await kept(world) == ["unknown"]
        now = 16.0
        await reconciler.begin()
    assert await kept(world) == []
    assert world.heard.events == ["booking_not_made"]
    assert not (await world.book(fingerprint=OTHER)).replayed


async def test_where_look_ups_wait_for_bookings_nothing_found_is_certain_at_once(
    world: World,
) -> None:
    await lost(world, made=False)
    async with reconciled(world, lands=15, clock=lambda: 0.0) as reconciler:
        await reconciler.begin()
    assert await kept(world) == []
    assert world.heard.events == ["booking_not_made"]


async def test_the_last_look_is_at_the_moment_from_which_it_is_certain(world: World) -> None:
    world.clinic.excludes = False
    await lost(world, made=False)
    now = 0.0
    async with reconciled(world, lands=25, clock=lambda: now) as reconciler:
        for now in (*range(25), 24.9):  # noqa: B007 - the clock
            await reconciler.begin()
        assert await kept(world) == ["unknown"]
        now = 25.0
        await reconciler.begin()
    assert await kept(world) == []


async def test_a_process_that_is_started_again_counts_on(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.clinic.excludes = False
    await lost(world, made=False)
    more = {"lands": 15, "file": tmp_path / "run" / "unknown.json"}
    for now in range(5, 20):
        async with reconciled(world, **more, clock=lambda: now) as reconciler:  # noqa: B023
            await reconciler.begin()
        assert await kept(world) == ["unknown"]
    with monkeypatch.context() as context:
        context.setattr(reconcile, "boot", lambda: "another")
        async with reconciled(world, **more, clock=lambda: 40) as reconciler:
            await reconciler.begin()
    assert await kept(world) == ["unknown"], "another boot's clock says nothing"
    for now, states in ((41, ["unknown"]), (56, [])):
        async with reconciled(world, **more, clock=lambda: now) as reconciler:  # noqa: B023
            await reconciler.begin()
        assert await kept(world) == states
    assert world.heard.events == ["booking_not_made"]


async def test_a_gateway_keeps_this_in_its_own_folder(
    start_gateway: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []

    def made(*given: Any, file: Path, **more: Any) -> Reconciler:
        files.append(file)
        return Reconciler(*given, file=file, **more)

    monkeypatch.setattr("gateway.assembly.kit.Reconciler", made)
    running = await start_gateway()
    assert files == [running.gateway.settings.state / "run" / "unknown.json"]


@pytest.mark.parametrize("left", [b"", b'{"boot":', b'{"boot":"x","since":{"SENDING":0}}',
                                  b'{"boot":"BOOT","since":{"SENDING":101}}'])  # fmt: skip
async def test_what_an_earlier_process_cannot_have_seen_counts_for_nothing(
    world: World, tmp_path: Path, left: bytes
) -> None:
    world.clinic.excludes = False
    await lost(world, made=False)
    [row] = await LedgerRows(world.store).between()
    file = tmp_path / "unknown.json"
    file.write_bytes(
        left.replace(b"BOOT", boot().encode()).replace(b"SENDING", row.sending.encode())
    )
    async with reconciled(world, lands=15, file=file, clock=lambda: 100) as reconciler:
        await reconciler.begin()
    assert await kept(world) == ["unknown"]
    assert json.loads(file.read_bytes())["since"] == {row.sending: 100}


async def test_what_could_not_be_kept_leaves_nothing_old(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError

    world.clinic.excludes = False
    await lost(world, made=False)
    file = tmp_path / "unknown.json"
    async with reconciled(world, lands=15, file=file, clock=lambda: 0) as reconciler:
        await reconciler.begin()
        assert file.exists()
        monkeypatch.setattr(reconcile, "replace_text", fail)
        [row] = await LedgerRows(world.store).between()
        await LedgerRows(world.store).write(row, None)
        await reconciler.begin()
    assert not file.exists()


async def test_a_row_that_is_written_anew_is_counted_anew(world: World) -> None:
    await lost(world, made=False)
    rows = LedgerRows(world.store)
    [row] = await rows.between()
    assert await rows.write(row, None)
    assert await rows.restore(row, LEFT)
    [again] = await rows.between()
    assert again.reference == row.reference
    assert again.claim not in {row.claim, None}
    assert again.sending != row.sending


async def test_who_looks_for_it_again_and_again_does_not_make_it_younger(world: World) -> None:
    world.clinic.excludes, world.clinic.settle = False, 30.0
    await lost(world, made=False)
    others = [world.opened(owners=await another(world), lands=15) for _ in range(3)]
    async with reconciled(world, lands=15, clock=world.steady) as reconciler:
        for number in range(100):
            with pytest.raises(OutcomeUnknown):
                await world.book(through=others[number % 3])
            await reconciler.begin()
            if not await kept(world):
                break
            world.now += timedelta(seconds=5)
            others[number % 3] = world.opened(owners=await another(world), lands=15)
    assert 45 <= world.steady() <= 80
    assert world.heard.events == ["booking_not_made"]


async def test_it_is_looked_up_less_and_less_often(world: World) -> None:
    world.clinic.excludes = False
    await lost(world, made=False)
    now, looks = 0.0, []
    async with reconciled(world, lands=1_000_000, clock=lambda: now) as reconciler:
        for now in range(120):
            before = len(world.clinic.asked)
            await reconciler.begin()
            if len(world.clinic.asked) > before:
                looks.append(now)
    pauses = [later - earlier for earlier, later in pairwise(looks)]
    assert pauses[0] <= 2
    assert pauses == sorted(pauses)
    assert pauses[-1] == 30


async def test_what_cannot_be_looked_up_stays_unknown_for_ever(world: World) -> None:
    await lost(world)
    now = 0.0
    async with reconciled(world, lands=0, clock=lambda: now) as reconciler:
        for now in (0.0, 100.0, 200.0):  # noqa: B007 - the clock
            world.clinic.answers = [BackendUnavailable("down")]
            await reconciler.begin()
            assert await kept(world) == ["unknown"]
        now = 300.0
        await reconciler.begin()
    assert await kept(world) == ["done a0"]


async def test_a_retry_that_sent_it_anew_is_not_released_by_an_older_look(world: World) -> None:
    await lost(world, made=False)
    gate, asked, find = asyncio.Event(), asyncio.Event(), world.clinic.find_appointments

    async def slowly(*given: Any) -> Any:
        found = list(await find(*given))
        asked.set()
        await gate.wait()
        return found

    world.clinic.find_appointments = slowly  # type: ignore[method-assign]
    async with reconciled(world, lands=0) as reconciler:
        begun = asyncio.create_task(reconciler.begin())
        await asked.wait()
        world.clinic.find_appointments = find  # type: ignore[method-assign]
        await lost(world)  # sent once more, and lost once more; this time it is there
        gate.set()
        await begun
    assert (await world.book()).record["id"] == "a0"
    assert len(world.clinic.made) == 1


async def test_rows_of_the_dead_are_seen_within_a_second(world: World) -> None:
    world.clinic.excludes = False
    dead = await another(world)
    world.clinic.gate = asyncio.Event()
    call = asyncio.create_task(world.book(through=world.opened(owners=dead)))
    await world.clinic.called.wait()
    async with reconciled(world) as reconciler:
        reconciler.start()
        await asyncio.sleep(0.1)
        assert await kept(world) == ["sent"]
        await slain(dead)

        async def is_buried() -> bool:
            return await kept(world) == ["unknown"] and await world.owners.others() == []

        await until(is_buried)
    world.clinic.gate.set()
    await call


async def test_a_start_waits_five_seconds_at_the_most(world: World) -> None:
    await lost(world)
    never = asyncio.Event()
    world.clinic.find_appointments = lambda *_: never.wait()  # type: ignore[method-assign,assignment,return-value]
    async with reconciled(world) as reconciler:
        begun = asyncio.get_running_loop().time()
        await reconciler.begin(patience=0.2)
        assert asyncio.get_running_loop().time() - begun < 4


@pytest.mark.parametrize("draft", [b"{", b"[]", b"{}", b'{"scheduled_at": 1, "now": 2}'])
async def test_a_draft_that_cannot_be_read_is_told_once_and_keeps_nothing_from_going_on(
    world: World, draft: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "FIRST_PAUSE", 0)
    await lost(world)
    async with world.store.begin() as connection:
        await connection.execute(update(bookings).values(draft=draft))
    async with reconciled(world, lands=0) as reconciler:
        for _ in range(3):
            await reconciler.begin()
        assert await kept(world) == ["unknown"]
        assert world.heard.events == ["booking_illegible"]
        assert (await world.book()).replayed  # who asked for it still knows what it was
        world.clinic.made.append({"id": "a1", "reason": "r"})
        world.clinic.answers = [OutcomeUnknown("lost")]
        with pytest.raises(OutcomeUnknown):
            await world.book("other")
        await reconciler.begin()
    assert await kept(world) == ["done a0", "done a1"]


async def test_a_clock_that_jumps_by_an_hour_loses_no_booking(world: World) -> None:
    for key, jump in (("a", 1), ("b", -1)):
        await lost(world, key)
        world.jump(timedelta(hours=jump))
        assert (await world.book(key)).replayed
        world.jump(timedelta(hours=-jump))
        assert (await world.book(key)).replayed
    world.now += DAY - timedelta(hours=1)
    assert (await world.book("a")).replayed
    assert len(world.clinic.made) == 2
