"""Work for threads: handed over one piece at a time, once a thread is free for it."""

import asyncio
import sqlite3
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import OperationalError

from adapters.base import BackendNonsense, BackendTimeout, BackendUnavailable
from adapters.call_notes import CALL_NOTES, CallNotes
from adapters.sql.engines import threads
from adapters.sql.engines.sqlite import SqliteLane


@pytest.fixture
def address(tmp_path: Path) -> URL:
    sqlite3.connect(tmp_path / "clinic.db").close()
    return make_url(f"sqlite:///{tmp_path}/clinic.db")


def none_left(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


async def test_who_left_what_runs_leaves_no_thread_free_before_its_end(
    address: URL,
) -> None:
    lane, go, ran = SqliteLane(address, 1, 0.2), threading.Event(), []
    stuck = asyncio.create_task(lane.run(lambda _: go.wait(10)))
    await asyncio.sleep(0.05)
    stuck.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stuck
    with pytest.raises(BackendUnavailable, match="busy with other calls"):
        await lane.run(ran.append)
    go.set()
    async with asyncio.timeout(5):
        while lane._room.in_use:  # noqa: ASYNC110 - the thread tells nobody
            await asyncio.sleep(0.005)
    await lane.run(ran.append)
    await lane.aclose()
    assert len(ran) == 1


async def test_who_leaves_before_its_turn_has_come_leaves_nothing_behind(
    address: URL,
) -> None:
    lane, ran = SqliteLane(address, 1, 5.0), []
    for steps in range(4):
        task = asyncio.create_task(lane.run(ran.append))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await lane.run(ran.append)
    await lane.aclose()
    assert (lane._room.in_use, lane._room.waiting) == (0, 0)


async def test_what_waits_for_a_thread_is_not_done_once_its_caller_left(address: URL) -> None:
    lane, go, ran = SqliteLane(address, 4, 5.0), threading.Event(), list[object]()
    with pytest.MonkeyPatch.context() as slow:
        slow.setattr(threads, "SHORT", 60.0)
        first = asyncio.create_task(lane.run(lambda _: go.wait(10)))
        await asyncio.sleep(0)
        left = asyncio.create_task(lane.run(ran.append))
        await asyncio.sleep(0)
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        go.set()
        await first
    await lane.aclose()
    await asyncio.sleep(0)
    assert not ran
    assert lane._room.in_use == 0


async def test_work_that_outlives_the_loop_harms_nobody(address: URL) -> None:
    lane, go = SqliteLane(address, 1, 5.0), threading.Event()

    async def leave() -> None:
        task = asyncio.create_task(lane.run(lambda _: go.wait(10)))
        await asyncio.sleep(0.05)
        task.cancel()

    await asyncio.to_thread(asyncio.run, leave())
    go.set()
    await lane.aclose()


async def test_partners_have_their_turns_at_the_threads(address: URL) -> None:
    lane, order = SqliteLane(address, 1, 5.0), []

    async def ask(partner: str) -> None:
        asking = CallNotes()
        asking.partner = partner
        CALL_NOTES.set(asking)
        await lane.run(lambda _: order.append(partner))

    await asyncio.gather(*(ask(each) for each in "aaaab"))
    await lane.aclose()
    assert order.index("b") <= 2


async def test_short_pieces_run_one_after_the_other_and_wait_for_no_long_one(address: URL) -> None:
    lane, go, inside = SqliteLane(address, 8, 5.0), threading.Event(), list[int]()

    def piece(_: Connection) -> int:
        inside.append(1)
        peak = len(inside)
        time.sleep(0.0002)
        inside.pop()
        return peak

    peaks = [await asyncio.gather(*(lane.run(piece) for _ in range(4))) for _ in range(20)]
    assert statistics.median(max(each) for each in peaks) == 1
    stuck = asyncio.create_task(lane.run(lambda _: go.wait(10)))
    await asyncio.sleep(0.05)
    await asyncio.gather(*(lane.run(piece) for _ in range(6)))
    assert not stuck.done()
    go.set()
    await stuck
    await lane.aclose()


async def test_the_event_loop_hears_of_many_short_pieces_at_once(
    address: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "SHORT", 60.0)
    monkeypatch.setattr(threads, "SHIFT", 60.0)
    lane, go, ends = SqliteLane(address, 64, 5.0), threading.Event(), list[object]()
    monkeypatch.setattr(lane, "_tell", lambda tell=lane._tell: (ends.append(1), tell()))
    first = asyncio.create_task(lane.run(lambda _: go.wait(10)))
    await asyncio.sleep(0)
    others = asyncio.gather(*(lane.run(lambda _: None) for _ in range(50)))
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(first, others)
    await lane.aclose()
    assert len(ends) - len(lane._threads) == 1, "one for each thread's end, and one for all calls"


async def test_what_ended_is_told_though_its_thread_goes_on_with_what_takes_long(
    address: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "SHIFT", 60.0)
    lane, both, go = SqliteLane(address, 2, 5.0), threading.Event(), threading.Event()
    first = asyncio.create_task(lane.run(lambda _: both.wait(10)))
    await asyncio.sleep(0)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", none_left)
        second = asyncio.create_task(lane.run(lambda _: go.wait(10)))
        await asyncio.sleep(0)
        both.set()
        async with asyncio.timeout(5):
            assert await first
        assert not second.done()
    go.set()
    assert await second
    await lane.aclose()


async def test_what_waits_at_the_end_is_done_before_it(address: URL) -> None:
    lane, go, ran = SqliteLane(address, 8, 5.0), threading.Event(), list[object]()
    first = asyncio.create_task(lane.run(lambda _: go.wait(10)))
    await asyncio.sleep(0)

    def longer_than_a_shift(connection: Connection) -> None:
        time.sleep(2 * threads.SHIFT)
        ran.append(connection)

    others = [asyncio.create_task(lane.run(longer_than_a_shift)) for _ in range(5)]
    await asyncio.sleep(0)
    closing = asyncio.create_task(lane.aclose())
    await asyncio.sleep(0.05)
    go.set()
    async with asyncio.timeout(5):
        await asyncio.gather(first, closing, *others)
    assert len(ran) == 5


async def test_where_no_thread_can_be_had_nothing_is_asked_and_no_place_is_lost(
    address: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane, ran = SqliteLane(address, 2, 5.0), []
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", none_left)
        for _ in range(3):
            with pytest.raises(BackendUnavailable, match="no thread can be had"):
                await lane.run(ran.append)
    for _ in range(3):
        await lane.run(ran.append)
    await lane.aclose()
    assert len(ran) == 3, "what was given up is not done later"
    assert lane._room.in_use == 0


async def test_what_comes_after_the_end_is_not_asked(address: URL) -> None:
    lane, ran = SqliteLane(address, 2, 5.0), []
    await lane.run(ran.append)
    await lane.aclose()
    with pytest.raises(BackendUnavailable, match="no thread can be had"):
        await lane.run(ran.append)
    assert len(ran) == 1
    assert lane._room.in_use == 0


def failing(name: str, runs: list[Connection], times: int) -> Callable[[Connection], str]:
    """Work that fails so often with SQLite's error of that name; whose connections it had."""

    def work(connection: Connection) -> str:
        runs.append(connection)
        if len(runs) <= times:
            error = sqlite3.OperationalError("no")
            error.sqlite_errorname = name
            raise OperationalError("SELECT 1", None, error)
        return "done"

    return work


async def test_a_connection_that_was_dead_already_costs_a_read_another_try_on_a_fresh_one(
    address: URL,
) -> None:
    lane, runs = SqliteLane(address, 1, 5.0), []
    with pytest.raises(BackendUnavailable):  # fresh: it is the database that is down
        await lane.run(failing("SQLITE_IOERR", runs, 1))
    await lane.run(lambda _: None)
    runs.clear()
    assert await lane.run(failing("SQLITE_IOERR", runs, 1)) == "done"
    await lane.aclose()
    assert len({id(each) for each in runs}) == 2


async def test_a_booking_that_has_begun_on_a_dead_connection_is_not_run_again(
    address: URL,
) -> None:
    lane, runs = SqliteLane(address, 1, 5.0, booking=True), []
    await lane.run(lambda _: None)
    with pytest.raises(BackendUnavailable):
        await lane.run(failing("SQLITE_IOERR", runs, 1))
    await lane.aclose()
    assert len(runs) == 1


async def test_what_collides_is_tried_three_times_and_its_connection_is_kept(
    address: URL,
) -> None:
    lane, runs = SqliteLane(address, 1, 5.0, booking=True), []
    assert await lane.run(failing("SQLITE_CONSTRAINT_UNIQUE", runs, 2)) == "done"
    runs.clear()
    with pytest.raises(BackendNonsense, match="has such a row already"):
        await lane.run(failing("SQLITE_CONSTRAINT_UNIQUE", runs, 3))
    await lane.aclose()
    assert len(runs) == 3
    assert len({id(each) for each in runs}) == 1


class Remote(SqliteLane):
    """SQLite as if it were on a server: a piece that is late is left alone."""

    in_process = False


async def all_back(lane: Remote) -> None:
    async with asyncio.timeout(10):
        while lane.left_alone:  # noqa: ASYNC110 - the threads tell nobody
            await asyncio.sleep(0.005)


async def test_a_booking_that_was_left_alone_is_never_committed(address: URL) -> None:
    with sqlite3.connect(address.database or "") as file:
        file.execute("CREATE TABLE booked (number INTEGER)")
    file.close()
    lane, go = Remote(address, 1, 0.1, booking=True), threading.Event()

    def books(connection: Connection) -> None:
        connection.exec_driver_sql("INSERT INTO booked VALUES (1)")
        go.wait(20)

    with pytest.raises(BackendUnavailable):
        await lane.run(books)
    assert lane.left_alone == 1
    go.set()
    await all_back(lane)
    lane.patience = 5.0
    count = "SELECT count(*) FROM booked"
    assert await lane.run(lambda it: it.exec_driver_sql(count).scalar()) == 0
    await lane.aclose()


async def test_only_so_many_threads_are_left_alone_and_each_that_comes_back_is_counted_out(
    address: URL,
) -> None:
    lane, go = Remote(address, 1, 0.1), threading.Event()
    while lane.left_alone < threads.MOST_LEFT:
        # on a busy machine a call's time may be over before its thread begins
        with pytest.raises((BackendTimeout, BackendUnavailable)):
            await lane.run(lambda _: go.wait(20))
    with pytest.raises(BackendUnavailable, match="4 calls have not come back"):
        await lane.run(lambda _: None)
    assert lane._room.in_use == 0
    go.set()
    await all_back(lane)
    lane.patience = 5.0
    await lane.run(lambda _: None)
    await lane.aclose()
