"""Who lives: by a lock on this machine, by a counter on any other, and never by a clock's word."""

import asyncio
import os
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import update

from gateway.booking import takeover as module
from gateway.booking.takeover import BEAT, GAP, LOOK, SILENCE, Owners
from gateway.store import Store, StoreError
from gateway.store.tables import presence
from tests.booking.clinic import Forgetful, slain
from tests.waiting import until


class Clock:
    """A monotonic clock that a test moves on."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Far:
    """Two processes of two machines, of which one looks at the other."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.clock = store, Clock()
        self.other = Owners(store, folder / "other")
        self.owners = Owners(store, folder / "own", clock=self.clock)

    async def beat(self) -> None:
        async with self.store.begin() as connection:
            await connection.execute(update(presence).values(counter=presence.c.counter + 1))

    async def is_dead_after(self, seconds: float, every: float = LOOK, *, beats: bool) -> bool:
        """What is said at the end of so many seconds in which it is looked at now and then."""
        until, beat_at = self.clock.now + seconds, self.clock.now + BEAT
        dead = await self.owners.is_dead(self.other.me)
        while self.clock.now < until:
            self.clock.now += every
            if beats and self.clock.now >= beat_at:
                beat_at += BEAT
                await self.beat()
            dead = await self.owners.is_dead(self.other.me)
        return dead


@pytest.fixture
async def far(store: Store, tmp_path: Path) -> AsyncIterator[Far]:
    made = Far(store, tmp_path)
    await made.other.start()
    yield made
    await made.other.aclose()


async def test_on_one_machine_an_end_is_known_at_once(store: Store, tmp_path: Path) -> None:
    one, other = Owners(store, tmp_path), Owners(store, tmp_path)
    await one.start()
    await other.start()
    assert not await one.is_dead(other.me)
    assert not await one.is_dead(one.me)
    assert await one.others() == [other.me]
    await slain(other)
    assert await one.is_dead(other.me)
    await one.forget(other.me)
    assert await one.others() == []
    assert [each.name for each in (tmp_path / "run").iterdir()] == [f"{one.me}.lock"]
    await one.aclose()
    assert list((tmp_path / "run").iterdir()) == []


async def test_an_id_from_the_store_leads_to_no_file_but_a_lock(
    store: Store, tmp_path: Path
) -> None:
    owners = Owners(store, tmp_path)
    await owners.start()
    others = tmp_path / "others.lock"
    others.write_text("somebody else's")
    for owner in ("../others", str(others.with_suffix("")), "a/../../others"):
        assert not await owners.is_dead(owner)
        await owners.forget(owner)
    assert others.read_text() == "somebody else's"
    await owners.aclose()


async def test_a_pipe_or_a_link_in_the_place_of_a_lock_holds_nobody_up(
    far: Far, tmp_path: Path
) -> None:
    run = tmp_path / "own" / "run"
    run.mkdir(parents=True)
    lock = run / f"{far.other.me}.lock"
    os.mkfifo(lock)
    looking = threading.Thread(target=module._is_held, args=(lock,), daemon=True)
    looking.start()
    await asyncio.to_thread(looking.join, 5.0)
    assert not looking.is_alive()
    assert module._is_held(lock) is None
    lock.unlink()
    lock.symlink_to(tmp_path / "other" / "run" / f"{far.other.me}.lock")
    assert module._is_held(lock) is None


async def test_of_another_machine_who_does_not_move_for_long_is_dead(far: Far) -> None:
    assert not await far.is_dead_after(SILENCE - LOOK, beats=False)
    assert await far.is_dead_after(LOOK, beats=False)


async def test_of_another_machine_who_moves_lives(far: Far) -> None:
    assert not await far.is_dead_after(10 * SILENCE, beats=True)


async def test_looks_that_lie_far_apart_tell_nothing(far: Far) -> None:
    assert not await far.is_dead_after(10 * SILENCE, every=GAP + 1, beats=False)


async def test_while_the_store_cannot_be_read_nobody_dies(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not await far.is_dead_after(SILENCE - LOOK, beats=False)

    def fail() -> None:
        raise StoreError("it is down")

    with monkeypatch.context() as patched:
        patched.setattr(far.store, "glance", fail)
        far.clock.now += LOOK
        with pytest.raises(StoreError):
            await far.owners.is_dead(far.other.me)
    assert not await far.is_dead_after(SILENCE - LOOK, beats=False)
    assert await far.is_dead_after(LOOK, beats=False)


async def test_a_copy_of_the_state_folder_says_nothing_of_who_lives(
    far: Far, tmp_path: Path
) -> None:
    shutil.copytree(tmp_path / "other", tmp_path / "own")
    assert not await far.owners.is_dead(far.other.me)


async def test_where_nothing_can_be_locked_the_counter_tells(
    far: Far, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr(module.fcntl, "flock", refuse)
    third = Owners(far.store, tmp_path / "own")
    await third.start()
    assert not await far.owners.is_dead(third.me)
    await third.aclose()


async def test_it_goes_on_saying_that_it_lives_through_what_fails(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BEAT", 0.01)
    monkeypatch.setattr(module, "BEAT_AGAIN", 0.01)
    full = Forgetful(store)
    owners = Owners(full, tmp_path)
    await owners.start()
    full.full = True
    await asyncio.sleep(0.05)
    full.full = False
    before = await _counter(store, owners.me)

    async def moves() -> bool:
        return await _counter(store, owners.me) > before

    await until(moves)
    # what was taken from the table, by a restored backup say, comes back by itself
    async with store.begin() as connection:
        await connection.execute(presence.delete())
    before = -1
    await until(moves)
    await owners.aclose()


async def _counter(store: Store, owner: str) -> int:
    async with store.begin() as connection:
        found = await connection.execute(
            presence.select().with_only_columns(presence.c.counter).where(presence.c.id == owner)
        )
        counter = found.scalar_one_or_none()
    return -1 if counter is None else int(counter)
