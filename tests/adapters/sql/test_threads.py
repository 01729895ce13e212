"""Work for threads: handed over one piece at a time, once a thread is free for it."""

import asyncio
import threading
from typing import Any

import pytest

from adapters.asking import ASKING, Asking
from adapters.base import BackendUnavailable
from adapters.sql.engines.threads import ThreadLane


def runner(work: Any, deadline: float) -> Any:
    return work(deadline)


async def test_who_left_what_runs_leaves_no_thread_free_before_its_end() -> None:
    threads, go, ran = ThreadLane("some", 1, 0.2, runner), threading.Event(), []
    stuck = asyncio.create_task(threads.run(lambda _: go.wait(10)))
    await asyncio.sleep(0.05)
    stuck.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stuck
    with pytest.raises(BackendUnavailable, match="busy with other calls"):
        await threads.run(ran.append)
    go.set()
    async with asyncio.timeout(5):
        while threads._room.in_use:  # noqa: ASYNC110 - the thread tells nobody
            await asyncio.sleep(0.005)
    await threads.run(ran.append)
    await threads.aclose()
    assert len(ran) == 1


async def test_who_leaves_before_its_turn_has_come_leaves_nothing_behind() -> None:
    threads, ran = ThreadLane("some", 1, 5.0, runner), []
    for steps in range(4):
        task = asyncio.create_task(threads.run(ran.append))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await threads.run(ran.append)
    await threads.aclose()
    assert (threads._room.in_use, threads._room.waiting) == (0, 0)


async def test_work_that_outlives_the_loop_harms_nobody() -> None:
    threads, go = ThreadLane("some", 1, 5.0, runner), threading.Event()

    async def leave() -> None:
        task = asyncio.create_task(threads.run(lambda _: go.wait(10)))
        await asyncio.sleep(0.05)
        task.cancel()

    await asyncio.to_thread(asyncio.run, leave())
    go.set()
    await threads.aclose()


async def test_partners_have_their_turns_at_the_threads() -> None:
    threads, order = ThreadLane("some", 1, 5.0, runner), []

    async def ask(partner: str) -> None:
        asking = Asking()
        asking.partner = partner
        ASKING.set(asking)
        await threads.run(lambda _: order.append(partner))

    await asyncio.gather(*(ask(each) for each in "aaaab"))
    await threads.aclose()
    assert order.index("b") <= 2


async def test_where_no_thread_can_be_had_nothing_is_asked_and_no_place_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads, ran = ThreadLane("some", 2, 5.0, runner), []

    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", none_left)
        for _ in range(3):
            with pytest.raises(BackendUnavailable, match="no thread can be had"):
                await threads.run(ran.append)
    for _ in range(3):
        await threads.run(ran.append)
    await threads.aclose()
    assert len(ran) == 3, "what was given up is not done later"
    assert threads._room.in_use == 0
