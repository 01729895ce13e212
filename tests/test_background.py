"""What goes on in the background ends when it is told to."""

import asyncio

import pytest

from gateway import background
from gateway.background import Attempts, Periodic, ended
from tests.heard import Heard


async def _outlives_one_cancellation() -> None:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:  # as a driver does, whose error takes its place
        await asyncio.sleep(60)


async def test_a_task_that_outlives_a_cancellation_is_cancelled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "AGAIN", 0.01)
    tasks = [asyncio.create_task(_outlives_one_cancellation()) for _ in range(2)]
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await ended(None, *tasks)
    assert all(task.cancelled() for task in tasks)


async def test_what_a_task_raised_before_its_end_is_raised() -> None:
    async def fails() -> None:
        raise LookupError("gone")

    task = asyncio.create_task(fails())
    await asyncio.sleep(0)
    with pytest.raises(LookupError, match="gone"):
        await ended(task)


class Work:
    """Something that is done again and again, and fails as long as it `is_broken`."""

    def __init__(self) -> None:
        self.times, self.is_broken = 0, False
        self.done = asyncio.Event()

    async def __call__(self) -> None:
        self.times += 1
        self.done.set()
        if self.is_broken:
            raise LookupError("gone")

    async def again(self) -> None:
        """Until it was done once more."""
        self.done.clear()
        async with asyncio.timeout(5):
            await self.done.wait()


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def heard() -> Heard:
    return Heard()


async def test_a_failure_is_told_once_and_so_is_its_end(work: Work, heard: Heard) -> None:
    turns = Periodic(0.001, work, heard, name="x", failed="keys_unreadable", back="keys_readable")
    turns.start()
    await work.again()
    work.is_broken = True
    for _ in range(4):
        await work.again()
    assert (turns.failing, heard.said) == (True, ["keys_unreadable: gone"])
    work.is_broken = False
    for _ in range(4):
        await work.again()
    await turns.aclose()
    assert (turns.failing, heard.events) == (False, ["keys_unreadable", "keys_readable"])


async def test_nothing_is_done_before_the_first_pause_but_what_is_to_be_first(work: Work) -> None:
    idle, first = Work(), Work()
    waiting, begun = Periodic(60, idle, name="x"), Periodic(60, work, name="x", first=first)
    for turns in (waiting, begun):
        turns.start()
    async with asyncio.timeout(5):
        await first.done.wait()
    for turns in (waiting, begun):
        await turns.aclose()
    assert (idle.times, first.times, work.times) == (0, 1, 0)


async def test_who_is_in_a_hurry_waits_for_no_pause(work: Work) -> None:
    turns = Periodic(60, work, name="x")
    turns.start()
    for times in (1, 2):
        turns.soon()
        await work.again()
        assert work.times == times
    await turns.aclose()


async def test_the_pause_may_depend_on_how_it_went(work: Work) -> None:
    work.is_broken = True
    turns = Periodic(lambda: 60 if turns.failing else 0.001, work, name="x")
    turns.start()
    await work.again()
    await asyncio.sleep(0.02)
    assert work.times == 1
    await turns.aclose()


async def test_what_is_being_done_at_the_end_is_cut_off_or_waited_for() -> None:
    inside, go, ends = asyncio.Event(), asyncio.Event(), []

    async def long() -> None:
        inside.set()
        try:
            await go.wait()
        finally:
            ends.append("done" if go.is_set() else "cut off")

    for waits in (False, True):
        inside.clear()
        turns = Periodic(0.001, long, name="x")
        turns.start()
        await inside.wait()
        if waits:
            asyncio.get_running_loop().call_later(0.01, go.set)
            await turns.finish()
        else:
            await turns.aclose()
    assert ends == ["cut off", "done"]


async def test_one_that_was_never_begun_can_be_ended(work: Work) -> None:
    await Periodic(1, work, name="x").aclose()
    await Periodic(1, work, name="x").finish()


async def test_a_failure_of_another_kind_is_not_held_back(heard: Heard) -> None:
    attempts = Attempts(heard, "keys_unreadable", kind=LookupError)
    with pytest.raises(ValueError, match="other"), attempts:
        raise ValueError("other")
    assert (attempts.failing, heard.said) == (False, [])
    with attempts:
        raise LookupError("own")
    assert (attempts.failing, heard.events) == (True, ["keys_unreadable"])
    with pytest.raises(asyncio.CancelledError), Attempts(heard, "keys_unreadable"):
        raise asyncio.CancelledError
