"""What blocks the event loop is seen, and nothing in the road does."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.observe import process
from gateway.observe.metrics import Metrics
from gateway.observe.process import EVERY, LOOK_BACK, Lag, OwnWork
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


def test_lateness_counts_as_far_as_it_is_own_work() -> None:
    worked, waited = [0.0], [0.0]
    own = OwnWork(lambda: worked[0], lambda: waited[0])
    own.begin()

    def share(late: float, work: float, wait: float) -> float:
        worked[0] += work
        waited[0] += wait
        return round(own.share_of(late), 6)

    assert share(0.06, 0.16, 0.0) == 0.06, "all of it is own work"
    assert share(0.06, 0.02, 0.1) == 0.01, "another program had the core"
    assert share(0.2, 0.15, 0.15) == 0.1, "both"
    assert share(0.06, 0.01, 0.0) == 0.01, "no core was missed: a disk, or a core without a kernel"
    assert share(0.06, 0.0, 0.0) == share(0.0, 0.1, 0.1) == 0.0
    own.end()


async def test_where_the_kernel_tells_nothing_of_waiting_own_cpu_time_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    worked = [0.0]
    for text in (None, "", "0 no\n"):
        if text is not None:
            (tmp_path / "schedstat").write_text(text)
        monkeypatch.setattr(process, "_SCHEDULED", str(tmp_path / "schedstat"))
        own = OwnWork(lambda: worked[0])
        own.begin()
        worked[0] += 0.04
        assert own.share_of(0.1) == pytest.approx(0.04)
        own.end()


# A process on one core. Its loop has little to do, or turns busily for 60 ms at a time.
LOOP = """
import asyncio, os, sys, time
from gateway.observe.metrics import Metrics
from gateway.observe.process import Lag
from gateway.pipeline.shedder import AdaptiveLimit, LoadShedder

class Silent:
    def report(self, *_, **__): pass

async def main(work, seconds):
    os.sched_setaffinity(0, {int(sys.argv[3])})
    lag, shedder = Lag(Metrics([])), LoadShedder(64, 64, 1000, Silent())
    by_all = AdaptiveLimit(64, Silent())
    def on_lag(own):
        shedder.on_lag(own)
        by_all.on_lag(lag._latest[-1][1])
        least[:] = map(min, least, (shedder.places.now, by_all.now))
    lag.on_lag = on_lag
    lag.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.thread_time()
        while time.thread_time() - began < work: pass
        await asyncio.sleep(0 if work > 0.05 else 0.02)
    await lag.aclose()
    print(*least)

least = [64, 64]
asyncio.run(main(float(sys.argv[1]), float(sys.argv[2])))
"""


def fewest_places(work: float, neighbours: int) -> tuple[int, int]:
    """The fewest places of a key beside busy neighbours; those if each lateness counted."""
    core = min(os.sched_getaffinity(0))
    pin = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    burning = [subprocess.Popen([sys.executable, "-c", pin]) for _ in range(neighbours)]
    try:
        ended = subprocess.run(
            [sys.executable, "-c", LOOP, str(work), "4", str(core)],
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
    finally:
        for each in burning:
            each.kill()
            each.wait()
    fewest, by_all = map(int, ended.stdout.split())
    return fewest, by_all


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="needs schedstat")
def test_a_neighbour_that_burns_the_core_takes_nobody_s_places_and_own_work_does() -> None:
    fewest, by_all = fewest_places(0.015, 8)
    assert fewest == 64
    assert by_all <= 32, "it is so late that it would have cost places"
    fewest, _ = fewest_places(0.08, 0)
    assert fewest <= 32
