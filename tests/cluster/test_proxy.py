"""The cluster's HAProxy before nodes that die or are not ready: who is asked, what is said."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from gateway.settings import Settings
from tests.cluster.nodes import Able, Dying, answer
from tests.cluster.stack import proxy
from tests.streams import Streams
from tests.waiting import until
from tests.wire.proxies import free_port

UNKNOWN = "Booking outcome unknown."


@asynccontextmanager
async def proxied(folder: Path, nodes: Sequence[Dying | Able]) -> AsyncIterator[int]:
    servers = [Streams(each.serve) for each in nodes]
    port = free_port()
    try:
        for each in servers:
            await each.open()
        with proxy(folder, port, [(each.port, each.port) for each in servers], looks="100ms"):
            yield port
    finally:
        for each in servers:
            await each.close()


async def answers(port: int, status: int) -> bool:
    """Whether a read is answered with that status."""
    return (await answer(port, "GET"))[0] == status


@pytest.mark.parametrize(
    ("headers", "then"),
    [
        ((), "Check before booking again."),
        (("Idempotency-Key: k",), "Ask again with the same Idempotency-Key."),
    ],
)
async def test_a_booking_is_sent_once_and_its_outcome_is_said_to_be_unknown(
    headers: tuple[str, ...], then: str, tmp_path: Path
) -> None:
    nodes = [Dying(), Dying()]
    async with proxied(tmp_path, nodes) as port:
        assert await answer(port, "POST", *headers) == (504, {"message": f"{UNKNOWN} {then}"})
    assert [*nodes[0].asked, *nodes[1].asked] == [b"POST"]


async def test_a_read_is_asked_of_the_other_node_too(tmp_path: Path) -> None:
    nodes = [Dying(), Dying()]
    async with proxied(tmp_path, nodes) as port:
        status, said = await answer(port, "GET")
    assert (status, said) == (502, {"message": "Service temporarily unavailable"})
    assert all(b"GET" in node.asked for node in nodes)


BOTH = {"reads", "bookings"}


@pytest.mark.parametrize(
    ("first", "second", "reads", "bookings"),
    [
        (set(), BOTH, {2}, {2}),  # one that ends, or is cut off, gets nothing new
        ({"reads"}, BOTH, {1, 2}, {2}),
        ({"reads"}, {"reads"}, {1, 2}, {1, 2}),  # the shared store is down: each says so itself
        ({"reads"}, set(), {1}, {1, 2}),
        (set(), set(), {1, 2}, {1, 2}),
    ],
)
async def test_calls_go_to_those_that_are_ready_for_them_and_to_all_where_none_is(
    first: set[str], second: set[str], reads: set[int], bookings: set[int], tmp_path: Path
) -> None:
    nodes = [Able(first), Able(second)]
    async with proxied(tmp_path, nodes) as port:
        await asyncio.gather(*(node.looked_at() for node in nodes))
        for method, expected in (("GET", reads), ("POST", bookings)):
            for _ in range(8):
                assert await answer(port, method) == (200, {})
            asked = {number for number, node in enumerate(nodes, 1) if method in node.asked}
            assert asked == expected, method
    assert sum(len(node.asked) for node in nodes) == 16


async def test_a_node_that_is_ready_again_gets_calls_again(tmp_path: Path) -> None:
    nodes = [Able(set()), Able(set(BOTH))]
    async with proxied(tmp_path, nodes) as port:
        await nodes[0].looked_at()
        assert await answer(port, "GET") == (200, {})
        assert nodes[0].asked == []
        nodes[0].ready = BOTH
        await nodes[0].looked_at()
        for method in ("GET", "POST") * 8:
            assert await answer(port, method) == (200, {})
    assert {"GET", "POST"} == set(nodes[0].asked)


async def test_one_caller_holds_so_many_connections_and_is_told_so_beyond(tmp_path: Path) -> None:
    # 100 for each of two workers of two nodes: the settings' own bound, as often as they count
    most = 4 * Settings().connections_per_address
    async with proxied(tmp_path, [Able(BOTH), Able(BOTH)]) as port:
        with ExitStack() as held:
            for _ in range(most - 1):
                held.enter_context(socket.create_connection(("127.0.0.1", port), 5))
            assert await answer(port, "GET") == (200, {})
            held.enter_context(socket.create_connection(("127.0.0.1", port), 5))
            # its threads take connections at the same time: the next may come before the last
            await until(lambda: answers(port, 503))
            told = {"message": "Service temporarily unavailable"}
            assert await answer(port, "GET") == (503, told)
        await until(lambda: answers(port, 200))
