import asyncio
import contextlib
import io
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import pairwise, product
from typing import Any

import aiohttp
import pytest

from adapters.base import AdapterOptions, BackendTimeout, BackendUnavailable, OutcomeUnknown
from adapters.documents.problems import DocumentErrors, Problem
from gateway.assembly.answering import probe_backend
from gateway.audit.buffer import Buffer
from gateway.backend import CHECK_EVERY, LOOK_PATIENCE, BackendProbe
from gateway.booking.base import STATES
from gateway.keys.ring import KeyRing
from gateway.observe.event_log import Outlet
from gateway.observe.metrics import Metrics, Snapshot
from gateway.observe.process import Lag
from gateway.purposes import Purpose
from gateway.store import Store, StoreError
from gateway.web import system as asking
from gateway.web.system import Readiness
from tests.conftest import Begin, RunningGateway, Start
from tests.web.wire import say
from tests.world import SOME_ID, WORLDS, World, WorldAdapter


async def get(session: aiohttp.ClientSession, gateway: RunningGateway, path: str) -> Any:
    async with session.get(gateway.operations + path) as response:
        return response.status, await response.text()


async def test_ready_says_so_for_each_part(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    assert await get(session, running_gateway, "/healthz") == (200, '{"alive":true}')
    status, text = await get(session, running_gateway, "/readyz")
    assert status == 200
    for part in ("backend", "store", "policy", "limiter"):
        assert f'"{part}":{{"ready":true' in text
    assert running_gateway.gateway.keeper.policy().hash[:12] in text


async def test_any_other_path_names_those_that_there_are(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    for path in ("/", "/metric", "/healthz/x"):
        status, text = await get(session, running_gateway, path)
        assert status == 404
        assert all(f'"{each}"' in text for each in ("/healthz", "/readyz", "/metrics"))


async def test_no_answer_tells_what_it_was_made_with(running_gateway: RunningGateway) -> None:
    for first, status in (
        ("GET /healthz HTTP/1.1", 200),
        ("HEAD /metrics HTTP/1.1", 200),
        ("GET /readyz HTTP/1.1", 200),
        ("GET /nowhere HTTP/1.1", 404),
        ("POST /healthz HTTP/1.1", 405),
        ("nonsense", 400),
        ("GET /" + "a" * 5000 + " HTTP/1.1", 431),
        ("GET http://xn--a/ HTTP/1.1", 404),
        ("GET ftp://localhost/healthz HTTP/1.1", 400),
    ):
        sent = f"{first}\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        heard = await say(running_gateway.gateway.system.port, sent)
        assert heard.closed
        lines = heard.data.decode().split("\r\n")
        assert lines[0].split()[1] == str(status)
        assert [each for each in lines if each.startswith("Server")] == ["Server: clinic-gateway"]
        assert "aiohttp" not in heard.data.decode().lower()
        assert "python" not in heard.data.decode().lower().partition("\r\n\r\n")[0]


HOSTS = {
    "localhost": 200,
    "LocalHost:1": 200,
    "127.0.0.1:8081": 200,
    "[::1]:8081": 200,
    "192.0.2.7": 200,
    "gateway.internal:8081": 200,
    "gateway-2": 200,
    "evil.example": 421,
    "localhost.evil.example": 421,
    "127.0.0.1.evil.example": 421,
    "a b": 400,
    "": 400,
}


async def test_the_operations_listener_answers_under_its_own_names_alone(
    start_gateway: Start,
) -> None:
    gateway = await start_gateway(operations_hosts="Gateway.internal, gateway-2")
    for (host, status), path in product(HOSTS.items(), ("/healthz", "/readyz", "/metrics", "/no")):
        sent = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
        heard = await say(gateway.gateway.system.port, sent)
        wanted = 404 if status == 200 and path == "/no" else status
        assert heard.statuses == [wanted], (host, path)


async def test_a_health_check_of_http_1_0_names_no_host(running_gateway: RunningGateway) -> None:
    heard = await say(running_gateway.gateway.system.port, b"GET /healthz HTTP/1.0\r\n\r\n")
    assert heard.statuses == [200]


async def test_other_methods_are_told_those_that_there_are(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    async with session.post(running_gateway.operations + "/healthz") as response:
        assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")
        assert await response.json() == {"message": "Method not allowed"}


async def test_a_fault_of_a_page_is_500_and_in_the_event_log(
    running_gateway: RunningGateway,
    session: aiohttp.ClientSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_: Metrics) -> Snapshot:
        raise LookupError("a value")

    stream = io.StringIO()
    monkeypatch.setattr(running_gateway.gateway.events, "_outlet", Outlet(stream, str))
    monkeypatch.setattr(Metrics, "snapshot", broken)
    async with session.get(running_gateway.operations + "/metrics") as response:
        assert (response.status, response.headers["Server"]) == (500, "clinic-gateway")
        assert await response.json() == {"message": "Internal server error"}
    said = stream.getvalue()
    assert '"error":"LookupError"' in said
    assert "a value" not in said


async def test_a_practice_system_that_is_down_makes_it_not_ready_but_alive(
    partner_of: Begin, session: aiohttp.ClientSession
) -> None:
    def down() -> None:
        raise BackendUnavailable("no route to the practice")

    partner = await partner_of(World(ping=down))
    status, text = await get(session, partner.gateway, "/readyz")
    assert status == 503
    assert json.loads(text)["parts"]["backend"] == {
        "ready": False,
        "for": ["reads", "bookings"],
        "stops": ["reads", "bookings"],
        "reason": "no route to the practice",
    }
    assert (await get(session, partner.gateway, "/healthz"))[0] == 200


async def test_who_asks_whether_it_lives_asks_nobody_else_and_readiness_asks_once_a_second(
    partner_of: Begin, session: aiohttp.ClientSession
) -> None:
    pings: list[float] = []
    partner = await partner_of(World(ping=lambda: pings.append(time.monotonic())))
    pings.clear()
    for _ in range(5):
        assert (await get(session, partner.gateway, "/healthz"))[0] == 200
    assert pings == []
    for _ in range(5):
        await get(session, partner.gateway, "/readyz")
        await get(session, partner.gateway, "/metrics")
    assert pings
    assert all(later - before >= 1.0 for before, later in pairwise(pings))


async def test_every_part_that_is_not_ready_says_why_in_words(
    partner_of: Begin, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down() -> None:
        raise BackendUnavailable("the practice system cannot be reached")

    async def gone(self: Store) -> None:
        raise StoreError("the store can't be used (disk I/O error)")

    partner = await partner_of(World(ping=down))
    monkeypatch.setattr(type(partner.gateway.gateway.store), "ping", gone)
    monkeypatch.setattr(KeyRing, "age", property(lambda ring: 61.0))
    monkeypatch.setattr(Lag, "most", lambda lag, seconds: (1.5, 2.0))
    status, text = await get(session, partner.gateway, "/readyz")
    parts = json.loads(text)["parts"]
    assert status == 503
    assert {name: part.get("reason") for name, part in parts.items()} == {
        "backend": "the practice system cannot be reached",
        "store": "the store can't be used (disk I/O error)",
        "keys": "the keys were last read 61 seconds ago",
        "policy": None,
        "audit": None,
        "limiter": None,
        "loop": "it stood still for 1.5 seconds, 2 seconds ago",
    }
    _, text = await get(session, partner.gateway, "/metrics")
    for part, ready in (("store", 0.0), ("keys", 0.0), ("loop", 0.0), ("policy", 1.0)):
        assert f'gateway_part_ready{{part="{part}"}} {ready}' in text
    assert "\ngateway_ready 0.0\n" in text


async def test_the_ledgers_states_and_its_oldest_unknown_booking_are_told(
    partner_of: Begin, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the panel may have had them counted just before
    monkeypatch.setattr("gateway.booking.reconcile.COUNT_EVERY", 0.0)

    def lost(draft: object) -> Any:
        raise OutcomeUnknown("cut off")

    def down(draft: object) -> Any:
        raise BackendUnavailable("nobody can tell what became of it")

    world = World(find=down)
    partner = await partner_of(world)
    draft = {"clientId": SOME_ID, "patientId": SOME_ID, "vetId": SOME_ID}
    await partner.post("/appointments", draft | {"scheduledAt": "2099-01-01T09:00:00Z"})
    world.create = lost
    asked = time.monotonic()
    await partner.post("/appointments", draft | {"scheduledAt": "2099-01-01T10:00:00Z"})
    await asyncio.sleep(0.3)
    _, text = await get(session, partner.gateway, "/metrics")
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    states = {state: lines[f'gateway_ledger_bookings{{state="{state}"}}'] for state in STATES}
    assert states == {
        "intended": "0.0", "sent": "0.0", "done": "1.0", "refused": "0.0", "unknown": "1.0",
    }  # fmt: skip
    age = float(lines["gateway_ledger_oldest_unknown_seconds"])
    assert 0.3 <= age <= time.monotonic() - asked + 0.1


def probe(asked: list[str], name: str, answer: Callable[[], Awaitable[object]]) -> Any:
    async def ask() -> dict[str, str]:
        asked.append(name)
        await answer()
        return {}

    return ask


async def nothing() -> None:
    return None


async def test_integrity_are_asked_once_a_second_and_silence_is_no_answer(monkeypatch: Any) -> None:
    asked: list[str] = []
    monkeypatch.setattr(asking, "PATIENCE", 0.01)
    silence = asyncio.Event().wait
    readiness = Readiness(
        {"keys": probe(asked, "keys", nothing), "store": probe(asked, "store", silence)}
    )
    first, second = await readiness.report(), await readiness.report()
    assert first == second
    assert asked == ["keys", "store"]
    assert first["parts"]["store"]["reason"] == "no answer in time"
    assert not first["parts"]["store"]["ready"]
    await readiness.aclose()


async def test_a_part_that_hangs_holds_up_no_answer_even_where_it_cannot_be_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A database's driver takes its time to give up a connection on which nothing comes back."""
    monkeypatch.setattr(asking, "PATIENCE", 0.2)
    monkeypatch.setattr(asking, "REMEMBERED", 0.0)
    hangs, ends = False, asyncio.Event()

    async def store() -> dict[str, Any]:
        while hangs and not ends.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await ends.wait()
        return {}

    readiness = Readiness({"store": store, "keys": probe([], "keys", nothing)})
    assert (await readiness.report())["ready"]
    hangs = True
    told, longest = [], 0.0
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        began = time.monotonic()
        told.append((await readiness.report())["parts"]["store"]["ready"])
        longest = max(longest, time.monotonic() - began)
    assert (told[0], told[-1]) == (True, False), (
        "what it said last counts for as long as it may take"
    )
    assert sorted(told, reverse=True) == told
    assert longest < 0.8, "it waits for a moment, not for the part"
    ends.set()
    await readiness.aclose()


async def test_reads_do_not_wait_for_what_only_bookings_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking, "PATIENCE", 60.0)
    asked: list[str] = []
    readiness = Readiness(
        {
            "keys": probe(asked, "keys", nothing),
            "store": probe(asked, "store", asyncio.Event().wait),
        }
    )
    async with asyncio.timeout(30):
        told = await readiness.report(Purpose.READS)
    assert told == {
        "ready": True,
        "for": "reads",
        "parts": {"keys": {"ready": True, "for": (Purpose.READS, Purpose.BOOKINGS)}},
    }
    assert asked == ["keys"]


# What fails -> the part that says so, and what the gateway is ready for all the same.
FAILURES: dict[str, tuple[str, set[str]]] = {
    "practice": ("backend", set()),
    "store": ("store", {"reads"}),
    "keys for 6 s": ("keys", {"reads"}),
    "keys for 61 s": ("keys", set()),
    "audit": ("audit", {"reads"}),
    "audit, and no more room": ("audit", set()),
    "loop": ("loop", set()),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_gateway_is_ready_for_what_it_can_do(
    failure: str, partner_of: Begin, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down() -> None:
        raise BackendUnavailable("the practice system cannot be reached")

    async def gone(self: Store) -> None:
        raise StoreError("the store can't be used (disk I/O error)")

    partner = await partner_of(World(ping=down if failure == "practice" else lambda: None))
    gateway = partner.gateway.gateway
    if failure == "store":
        monkeypatch.setattr(type(gateway.store), "ping", gone)
    elif failure.startswith("keys"):
        age = float(failure.split()[2])
        monkeypatch.setattr(KeyRing, "age", property(lambda ring: age))
    elif failure.startswith("audit"):
        monkeypatch.setattr(Buffer, "is_full", "room" in failure)
        gateway.public.front.pipeline.audit.broken = "no space left on device"
    elif failure == "loop":
        monkeypatch.setattr(Lag, "most", lambda lag, seconds: (1.5, 2.0))
    part, left = FAILURES[failure]
    status, whole = await get(session, partner.gateway, "/readyz")
    told = json.loads(whole)
    assert (status, told["ready"]) == (503, False)
    assert {name for name, each in told["parts"].items() if not each["ready"]} == {part}
    assert {purpose for purpose in Purpose if told[purpose]} == left
    for purpose in Purpose:
        status, text = await get(session, partner.gateway, f"/readyz?for={purpose}")
        told = json.loads(text)
        assert (status, told["ready"]) == ((200, True) if purpose in left else (503, False))
        assert told["for"] == purpose
        assert all(purpose in each["for"] for each in told["parts"].values())


async def test_a_gateway_that_ends_is_ready_for_nothing(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    assert (await get(session, running_gateway, "/readyz"))[0] == 200
    running_gateway.gateway.readiness.stopping = True
    for path in ("/readyz", "/readyz?for=reads", "/readyz?for=bookings"):
        status, text = await get(session, running_gateway, path)
        assert (status, json.loads(text)["reason"]) == (503, "the gateway is shutting down")


async def test_a_purpose_that_is_none_is_refused_with_those_that_there_are(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    problem = "must be for=reads or for=bookings, or none"
    told = {
        "message": f"Invalid request: query {problem}",
        "errors": [{"field": "query", "problem": problem}],
    }
    for query in ("for=writes", "for=", "for=reads&for=reads", "of=reads"):
        status, text = await get(session, running_gateway, f"/readyz?{query}")
        assert (status, json.loads(text)) == (400, told), query


async def test_figures_are_in_prometheus_form_and_tell_of_calls(
    partner_of: Begin, session: aiohttp.ClientSession
) -> None:
    partner = await partner_of(World())
    await partner.get("/stock")
    await partner.anonymous().get("/stock")
    await (await partner.with_key(limit=0)).get("/stock")
    await partner.gateway.gateway.public.front.observers.flush()
    status, text = await get(session, partner.gateway, "/metrics")
    assert status == 200
    for line in (
        'gateway_requests_total{operation="list_stock",status="200"} 1.0',
        'gateway_requests_total{operation="list_stock",status="401"} 1.0',
        'gateway_authentication_failures_total{reason="KeyMissing"} 1.0',
        "gateway_limit_denials_total 1.0",
        "gateway_keys_loaded 2.0",
    ):
        assert line in text.splitlines()
    assert 'gateway_request_seconds_bucket{le="0.001",operation="list_stock"}' in text


def options(url: str) -> AdapterOptions:
    return AdapterOptions(url=url, mapping=None, secret=bytes(32), shapes={}, report=print)


async def test_the_tables_are_looked_at_now_and_then_and_until_nothing_is_missing() -> None:
    clock, missing, checks = [0.0], [True], 0

    def check() -> None:
        nonlocal checks
        checks += 1
        if missing[0]:
            raise DocumentErrors(
                [Problem("clinic.yaml", line, 1, "no such table") for line in (3, 9)]
            )

    WORLDS["probed"] = World(check=check)
    probe = BackendProbe(WorldAdapter(options("probed")), lambda: clock[0])

    async def backend() -> dict[str, Any]:
        await probe()
        return {}

    readiness = Readiness({"backend": backend})
    part = (await readiness.report())["parts"]["backend"]
    assert not part["ready"]
    assert part["reason"] == "clinic.yaml:3:1: no such table (and 1 more)"
    missing[0] = False
    await probe()
    await probe()
    assert checks == 2
    clock[0] = CHECK_EVERY
    await probe()
    assert checks == 3


class Distant(WorldAdapter):
    """Looks at its tables for as long as `ended` is not set; then they lack what `lack` says."""

    def __init__(self, name: str) -> None:
        WORLDS[name] = World()
        super().__init__(options(name))
        self.ended, self.looks, self.lack = asyncio.Event(), 0, ""

    async def check(self) -> Sequence[Problem]:
        self.looks += 1
        await self.ended.wait()
        if self.lack:
            raise DocumentErrors([Problem("clinic.yaml", 3, 1, self.lack)])
        return ()


async def test_a_look_at_the_tables_that_takes_long_goes_on_when_nobody_waits() -> None:
    """Over a slow line it takes longer than a readiness check may."""
    clock = [0.0]
    adapter = Distant("distant")
    adapter.lack = "no such table"
    probe = BackendProbe(adapter, lambda: clock[0])
    for _ in range(3):
        with pytest.raises(BackendTimeout, match="still being looked at"):
            await probe(0.01)
    assert adapter.looks == 1
    adapter.ended.set()
    await asyncio.sleep(0)
    adapter.ended.clear()
    for _ in range(2):  # what was found stands while the next look goes on
        with pytest.raises(DocumentErrors, match="no such table"):
            await probe(0.01)
    assert adapter.looks == 2
    adapter.lack = ""
    adapter.ended.set()
    await probe(None)
    adapter.ended.clear()
    clock[0] = CHECK_EVERY
    await probe(0.01)
    assert adapter.looks == 3
    await probe.aclose()


async def test_a_warning_of_a_look_is_told_once_and_stands_as_long_as_it_is_seen() -> None:
    clock, seen = [0.0], [Problem("clinic.yaml", 3, 1, "leads to nothing")]

    class Doubtful(WorldAdapter):
        async def check(self) -> Sequence[Problem]:
            return tuple(seen)

    WORLDS["doubtful"] = World()
    told: list[dict[str, str]] = []
    probe = BackendProbe(
        Doubtful(options("doubtful")),
        lambda: clock[0],
        lambda **each: told.append(each),
    )
    backend = partial(probe_backend, probe, lambda: "closed")
    for look in range(3):
        clock[0] = look * CHECK_EVERY
        part = (await Readiness({"backend": backend}).report())["parts"]["backend"]
        assert part["ready"]
        assert part["warnings"] == ["clinic.yaml:3:1: leads to nothing"]
    assert told == [{"place": "clinic.yaml:3:1", "said": "leads to nothing"}]
    seen.clear()
    clock[0] = 3 * CHECK_EVERY
    assert "warnings" not in await backend()


async def test_a_fault_of_a_look_is_told_to_who_asks() -> None:
    class Faulty(WorldAdapter):
        async def check(self) -> Sequence[Problem]:
            raise TypeError("a fault")

    WORLDS["faulty"] = World()
    probe = BackendProbe(Faulty(options("faulty")))
    with pytest.raises(TypeError, match="a fault"):
        await probe()


async def test_a_probe_that_is_closed_ends_its_look() -> None:
    adapter = Distant("closed")
    probe = BackendProbe(adapter)
    async with asyncio.timeout(5 * LOOK_PATIENCE):
        with pytest.raises(BackendTimeout):
            await probe()
    [look] = [each for each in asyncio.all_tasks() if "BackendProbe" in repr(each.get_coro())]
    await probe.aclose()
    assert look.cancelled()
