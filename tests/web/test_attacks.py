"""The attacks of `make attack`, short: against a gateway of this process, and one as it is run."""

import asyncio
import statistics
import sys
import time
from contextlib import AsyncExitStack

import aiohttp
import pytest

from attack.__main__ import ATTACKS, main
from attack.base import Attack, Missing, Row
from attack.crowd import Crowd
from attack.crowds import HEAD
from gateway.web import connection as connections
from tests.conftest import Start
from tests.partner import Partner
from tests.waiting import until
from tests.web.test_connections import count, entrance

pytestmark = pytest.mark.long

CROWD, ROOM, PATIENCE = 400, 300, 1.0


@pytest.mark.parametrize("kind", ["idle", "heads", "bodies", "readers"])
async def test_honest_calls_go_on_in_a_crowd_of_slow_ones(
    start_gateway: Start, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    limits = {"keepalive_timeout": PATIENCE, "lingering_time": 0.2}
    monkeypatch.setattr(connections, "LIMITS", connections.LIMITS | limits)
    gateway = await start_gateway(connections=ROOM, body_timeout=PATIENCE)
    entrance(gateway).write_limit.patience = PATIENCE
    honest, stolen = await gateway.mint(), await gateway.mint()
    key = f"Host: x\r\nX-API-Key: {stolen.secret}\r\n"
    first = {
        "idle": b"",
        "heads": HEAD,
        "bodies": (
            f"POST /api/v1/appointments HTTP/1.1\r\n{key}Content-Type: application/json\r\n"
            "Content-Length: 60000\r\n\r\n{"
        ).encode(),
        "readers": f"GET /api/v1/clients?limit=200 HTTP/1.1\r\n{key}\r\n".encode(),
    }[kind]
    crowd = Crowd(gateway.port, first, b" " if kind == "bodies" else b"a")
    coming = asyncio.create_task(crowd.gather(CROWD))
    connector = aiohttp.TCPConnector(local_addr=("127.9.9.9", 0), force_close=True)
    async with AsyncExitStack() as stack:
        stack.callback(crowd.leave)
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        partner = Partner(gateway, session, honest.secret)
        times = []
        while not coming.done() or len(times) < 20:
            began = time.perf_counter()
            assert (await partner.get("/appointments/types")).status == 200
            times.append(time.perf_counter() - began)
        assert statistics.median(times) < 0.25
        assert len(entrance(gateway)) <= ROOM
        await until(lambda: len(entrance(gateway)) <= 1, PATIENCE + 15)
    await count(gateway, 0)


def test_an_attack_on_a_real_process_gives_its_row(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["junk-keys", "--seconds", "0.5"])
    *_, row = capsys.readouterr().out.splitlines()
    assert row.startswith("junk-keys")
    assert code == (0 if " held (" in row else 1)
    assert "honest calls" in row


def test_one_bound_that_does_not_hold_fails_the_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(_: object) -> Row:
        raise Missing("install it")

    attack = sys.modules["attack.__main__"]
    monkeypatch.setattr(attack, "started", lambda *_: memoryview(b""))
    rows = (Row(attack="good"), Row(attack="bad", p50=1.0, failures=("too slow", "too large")))
    made = tuple(Attack(each.attack, "", lambda _, row=each: row) for each in rows)
    monkeypatch.setattr(attack, "ATTACKS", (*made, Attack("none", "", missing)))
    assert main(["good"]) == 0
    assert main(["good", "bad"]) == 1
    assert "too slow; too large" in capsys.readouterr().out
    assert main(["none"]) == 1
    assert capsys.readouterr().err == "install it\n"
    with pytest.raises(SystemExit, match="2"):
        main(["unknown"])


def test_each_attack_has_a_name_of_its_own() -> None:
    assert len({each.name for each in ATTACKS}) == len(ATTACKS)
