"""Administrators in the store: what holds when several things are done to them at once."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from gateway.admin.visit import number_of
from gateway.administrators.administrator import AdministratorStore, LastAdmin, Role
from gateway.administrators.log import Deed, DeedLog
from gateway.administrators.passwords import FREE, AttemptLimiter
from gateway.store import Store

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
ROUNDS = 4


@pytest.mark.parametrize("removes", [True, False])
async def test_two_admins_who_depose_each_other_at_once_do_not_both_succeed(
    store: Store, removes: bool
) -> None:
    administrators = AdministratorStore(store)

    async def deposed(admin_id: str) -> None:
        if removes:
            await administrators.remove(admin_id)
        else:
            await administrators.set_role(admin_id, Role.AUDITOR)

    left = await administrators.add("Claire", Role.ADMIN, "x", NOW, one_time=False)
    for number in range(ROUNDS):
        other = await administrators.add(f"D {number}", Role.ADMIN, "x", NOW, one_time=False)
        ends = await asyncio.gather(deposed(left.id), deposed(other.id), return_exceptions=True)
        assert [type(each) for each in ends if each is not None] == [LastAdmin]
        [left] = [each for each in await administrators.list() if each.role is Role.ADMIN]


async def test_a_clock_that_was_ahead_locks_nobody_out_once_it_is_right(store: Store) -> None:
    failures, ahead = AttemptLimiter(store), NOW + timedelta(days=300)
    for _ in range(FREE):
        assert await failures.try_now("name claire", ahead) == timedelta()
    assert await failures.try_now("name claire", ahead) == timedelta(seconds=1)
    assert await failures.try_now("name claire", NOW) == timedelta()


async def test_attempts_made_at_once_in_two_processes_are_counted_one_by_one(store: Store) -> None:
    doors = [AttemptLimiter(store), AttemptLimiter(store)]
    waits = await asyncio.gather(
        *(doors[number % 2].try_now("name claire", NOW) for number in range(9))
    )
    assert waits.count(timedelta()) == FREE
    assert set(waits) == {timedelta(), timedelta(seconds=1)}
    assert await doors[0].try_now("name claire", NOW + timedelta(seconds=1)) == timedelta()
    assert await doors[1].try_now("name claire", NOW + timedelta(seconds=1)) == timedelta(seconds=2)


async def test_the_pages_of_what_was_done_begin_at_no_number_that_a_store_cannot_hold(
    store: Store,
) -> None:
    log = DeedLog(store)
    await log.add(Deed(at=NOW, who="Claire", deed="signed in", details={}))
    for text in ("9" * 9, "9" * 10, "9" * 15, "9" * 5_000):
        assert len(await log.last(1, before=number_of(text))) == 1, text
    assert number_of("-1") is number_of("\u0663") is number_of("x") is None
