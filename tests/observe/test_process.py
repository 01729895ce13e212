"""What blocks the event loop is seen, and nothing in the road does."""

import asyncio
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.observe.metrics import Metrics
from gateway.observe.process import EVERY, LOOK_BACK, Lag
from tests.conftest import RunningGateway
from tests.partner import Partner


async def readiness(session: aiohttp.ClientSession, gateway: RunningGateway) -> Any:
    async with session.get(gateway.operations + "/readyz") as response:
        return response.status, await response.json()


async def test_a_loop_that_stood_still_is_not_ready_and_says_for_how_long(
    running_gateway: RunningGateway,
    session: aiohttp.ClientSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.assembly.answering.LAG_COUNTS", 0.5)
    await asyncio.sleep(0.15)
    time.sleep(1.15)  # noqa: ASYNC251 - that is what is tried
    await asyncio.sleep(0.05)
    status, said = await readiness(session, running_gateway)
    assert status == 503
    assert "stood still for 1." in said["parts"]["loop"]["reason"]
    async with session.get(running_gateway.operations + "/metrics") as response:
        lines = (await response.text()).splitlines()
    [most] = [each for each in lines if each.startswith("gateway_loop_lag_max_seconds ")]
    assert 1.0 < float(most.split()[1]) < 5
    await asyncio.sleep(1.0)
    assert (await readiness(session, running_gateway))[1]["parts"]["loop"]["ready"]


def test_the_largest_lag_of_a_time_is_told_and_forgotten_after_a_minute() -> None:
    clock = [0.0]
    lag = Lag(Metrics([]), lambda: clock[0])
    assert lag.most(LOOK_BACK) == (0.0, 0.0)
    for at, late in ((1.0, 0.5), (2.0, 0.1), (3.0, 0.3), (4.0, 0.2)):
        clock[0] = at
        lag.note(late)
    clock[0] = 5.0
    assert lag.most(60) == (0.5, 4.0)
    assert lag.most(3) == (0.3, 2.0)
    assert lag.most(1) == (0.2, 1.0)
    clock[0] = 1.0 + LOOK_BACK + 0.5
    lag.note(0.0)
    assert lag.most(LOOK_BACK) == (0.3, 58.5)
    clock[0] = 1000.0
    lag.note(0.01)
    assert lag.most(LOOK_BACK) == (0.01, 0.0)
    for _ in range(1000):
        lag.note(0.0)
    assert len(lag._latest) == LOOK_BACK / EVERY


# What makes the thread wait that asks for it. The logs write to files that are open already.
WAITS = {
    "open",
    "os.listdir",
    "os.scandir",
    "socket.connect",
    "socket.getaddrinfo",
    "sqlite3.connect",
    "subprocess.Popen",
    "time.sleep",
}
_heard: list[str] = []
# the thread that is listened to
_thread: set[int] = set()


def _listen(event: str, arguments: Any) -> None:
    if event in WAITS and threading.get_ident() in _thread:
        _heard.append(f"{event} {arguments!r:.100}")


async def test_no_call_waits_for_the_disk_or_the_network_in_the_event_loop(
    partner: Partner,
) -> None:
    sys.addaudithook(_listen)  # for good: there is no way to take it away
    gateway = partner.gateway
    known = await gateway.ids()
    draft = await partner.draft()
    paths = (
        *(f"/{name}/{known[name]}" for name in ("clients", "patients", "invoices", "stock")),
        *(f"/{name}/{known[name]}" for name in ("appointments", "consultations")),
        f"/invoices/client/{known['clients']}",
        *("/clients", "/patients", "/stock", "/stock/low", "/appointments/types"),
        f"/appointments/available-slots?vetId={known['vet']}&date=2026-03-02",
        *("/openapi.json", "/nowhere"),
    )
    for path in paths:  # whatever is made once is made
        await partner.get(path)
    _thread.add(threading.get_ident())
    try:
        Path(__file__).open().close()  # noqa: ASYNC230 - the listener hears
        heard, _heard[:] = list(_heard), []
        for path in paths:
            await partner.get(path)
        made = await partner.post("/appointments", draft)
    finally:
        _thread.clear()
    assert len(heard) == 1
    assert made.status == 201
    assert _heard == []
    await gateway.gateway.public.runner.server.request_handler.observers.flush()
    assert json.loads(gateway.lines("access.jsonl")[-1])["operation"] == "create_appointment"
