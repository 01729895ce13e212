"""A connection beyond a bound gets an answer, as long as that is no lever for a flood."""

import asyncio
import json
import socket
from pathlib import Path

import pytest

from gateway.web import connection_limiter
from gateway.web.connection import Connection
from gateway.web.connection_limiter import Overflow
from tests.conftest import Start
from tests.waiting import until
from tests.web.test_connections import count, ends, held, told
from tests.web.test_tls import write_pair
from tests.web.wire import Heard

DOCUMENT = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
LARGE = (
    b"POST /api/v1/appointments HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n"
    + b" " * 60_000
)


async def heard_of(port: int, sent: bytes, late: float = 0.0) -> Heard:
    """All that came until the end; ConnectionError where the line was reset."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
    await asyncio.sleep(late)
    writer.write(sent)
    await writer.drain()
    async with asyncio.timeout(30):
        heard = await reader.read()
    writer.close()
    return Heard(heard, closed=True)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"connections_per_address": 1}, "address"), ({"connections": 1}, "process")],
    ids=["address", "process"],
)
@pytest.mark.parametrize("late", [0.0, 0.2], ids=["at once", "late"])
async def test_a_connection_beyond_a_bound_is_answered_in_the_shape_of_every_error(
    start_gateway: Start,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, int],
    reason: str,
    late: float,
) -> None:
    # who is inside makes no room
    monkeypatch.setattr(Connection, "idle_since", lambda self: None)
    monkeypatch.setattr(Connection, "is_known", True)
    gateway = await start_gateway(**settings)
    async with held(gateway.port, "127.0.0.2"):
        await count(gateway, 1)
        heard = await heard_of(gateway.port, LARGE, late)
    [(status, headers, body)] = heard.answers
    assert (status, headers["retry-after"], headers["connection"]) == (503, "1", "close")
    assert json.loads(body) == {"message": "Service temporarily unavailable"}
    assert headers["cache-control"] == "private, no-store"
    assert headers["content-type"] == "application/json"
    assert len(headers["x-request-id"]) == 32
    assert told(gateway) == {reason: 1.0}


async def test_of_two_hundred_connections_at_once_none_is_reset(start_gateway: Start) -> None:
    gateway = await start_gateway()
    heard = await asyncio.gather(*(heard_of(gateway.port, DOCUMENT) for _ in range(200)))
    statuses = [each.statuses for each in heard]
    assert statuses.count([200]) >= 100
    assert statuses.count([200]) + statuses.count([503]) == 200
    assert sum(told(gateway).values()) == statuses.count([503])


async def test_more_than_that_are_closed_without_a_word(
    start_gateway: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_limiter, "MOST_AT_ONCE", 2)
    gateway = await start_gateway(connections_per_address=1)
    async with held(gateway.port, "127.0.0.2"):
        await count(gateway, 1)
        async with held(gateway.port, *["127.0.0.2"] * 2) as answered:
            for reader, _ in answered:
                assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 503")
            async with held(gateway.port, "127.0.0.2") as (silent,):
                assert await ends(silent)
                assert not silent[0]._buffer  # type: ignore[attr-defined]
        # they have closed: there is room for another answer
        async with asyncio.timeout(10):
            while not await _is_answered(gateway.port):  # noqa: ASYNC110 - who closes sets no event
                await asyncio.sleep(0.01)


async def _is_answered(port: int) -> bool:
    try:
        return (await heard_of(port, DOCUMENT)).statuses == [503]
    except ConnectionError:
        return False


async def test_over_tls_it_is_closed_before_a_handshake(
    start_gateway: Start, tmp_path: Path
) -> None:
    certificate, key = write_pair(tmp_path)
    gateway = await start_gateway(
        tls_certificate=certificate, tls_key=key, connections_per_address=1
    )
    async with held(gateway.port, "127.0.0.2"):
        await count(gateway, 1)
        async with held(gateway.port, "127.0.0.2", sent=b"\x16\x03\x01") as (refused,):
            assert await ends(refused)
            assert told(gateway) == {"address": 1.0}


def pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        caller = socket.create_connection(listening.getsockname())
        line, _ = listening.accept()
    caller.setblocking(False)
    return line, caller


async def test_who_does_not_close_is_let_go_in_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limiter, "LONGEST", 0.1)
    turned_away = Overflow()
    line, caller = pair()
    turned_away.turn_away(line)
    assert len(turned_away._open) == 1
    await until(lambda: not len(turned_away._open))
    assert line.fileno() == -1
    assert caller.recv(4096).startswith(b"HTTP/1.1 503")
    caller.close()


async def test_who_sends_without_an_end_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limiter, "MOST_BYTES", 1000)
    turned_away = Overflow()
    line, caller = pair()
    turned_away.turn_away(line)
    caller.send(b" " * 999)
    await asyncio.sleep(0.05)
    assert len(turned_away._open) == 1
    caller.send(b" ")
    await until(lambda: not len(turned_away._open))
    caller.close()


async def test_so_many_are_answered_in_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limiter, "MOST_IN_A_SECOND", 3)
    now = [5.0]
    turned_away = Overflow(lambda: now[0])
    lines = [pair() for _ in range(5)]
    for line, _ in lines:
        turned_away.turn_away(line)
    assert len(turned_away._open) == 3
    assert [line.fileno() == -1 for line, _ in lines] == [False] * 3 + [True] * 2
    now[0] = 6.0
    again, caller = pair()
    turned_away.turn_away(again)
    assert len(turned_away._open) == 4
    turned_away.close()
    assert not len(turned_away._open)
    assert again.fileno() == -1
    for _, each in [*lines, (again, caller)]:
        each.close()
