"""What goes on in the background ends when it is told to."""

import asyncio

import pytest

from gateway import background
from gateway.background import ended


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
