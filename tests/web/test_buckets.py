"""Who calls often without a key that counts waits for its answer, and nobody else does."""

import asyncio
import time
from typing import Any

import pytest

from gateway.web import addresses
from gateway.web.addresses import BURST, LONGEST, RATE, AddressBuckets
from tests.conftest import Begin, Start
from tests.partner import Partner
from tests.waiting import until
from tests.web.test_connections import count, ends, held, told
from tests.web.wire import head, say
from tests.world import World

TYPES = "/api/v1/appointments/types"


class Times:
    """AddressBuckets, and their clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.buckets = AddressBuckets(lambda: self.now)

    def take(self, address: str = "192.0.2.1", times: int = 1) -> float:
        return [self.buckets.take(address) for _ in range(times)][-1]


def test_a_burst_waits_for_nothing_and_then_each_for_its_token() -> None:
    times = Times()
    assert times.take(times=int(BURST)) == pytest.approx(0, abs=1e-9)
    assert times.take() == pytest.approx(1 / RATE)
    assert times.take() == pytest.approx(2 / RATE)
    times.now += 3 / RATE
    assert times.take() == pytest.approx(0, abs=1e-9)


def test_nobody_waits_longer_than_that_however_often_it_comes() -> None:
    times = Times()
    assert times.take(times=10_000) == pytest.approx(LONGEST)
    times.now += LONGEST
    assert times.take() == pytest.approx(1 / RATE)


def test_addresses_wait_for_themselves_alone() -> None:
    times = Times()
    times.take("2001:db8::1", times=10_000)
    assert times.take("2001:db8::2") == pytest.approx(LONGEST)
    assert times.take("2001:db8:0:1::2") == 0
    assert times.take("::ffff:192.0.2.9") == times.take("192.0.2.8") == 0


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "MOST", 100)
    times = Times()
    for number in range(1000):
        times.take(f"10.0.{number // 250}.{number % 250}")
    assert len(times.buckets._full_at) == 100
    times.now += BURST / RATE
    for number in range(60):
        times.take(f"10.1.0.{number}")
    assert len(times.buckets._full_at) <= 60


@pytest.fixture
def small_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten at once; each further one waits half a second, however long the ten took."""
    monkeypatch.setattr(addresses, "BURST", 10.0)
    monkeypatch.setattr(addresses, "RATE", 0.01)
    monkeypatch.setattr(addresses, "LONGEST", 0.5)


async def timed(partner: Partner, path: str = "/clients?limit=1") -> tuple[int, float]:
    began = time.perf_counter()
    answer = await partner.get(path)
    return answer.status, time.perf_counter() - began


@pytest.mark.usefixtures("small_buckets")
@pytest.mark.parametrize(
    "path",
    [
        "/clients",
        "/openapi.json",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("/nowhere", "/../../elsewhere")),
    ],
)
@pytest.mark.parametrize("key", ["", "vk_junk"])
async def test_without_a_good_key_many_calls_wait_and_get_the_same_answer(
    partner_of: Begin, path: str, key: str
) -> None:
    partner = await partner_of(World())
    stranger = partner.as_key(key) if key else partner.anonymous()
    first = await stranger.get(path)
    found = [await timed(stranger, path) for _ in range(10)]
    assert {status for status, _ in found} == {first.status}
    assert found[-1][1] >= 0.4
    # the same address, with a good key: as if nothing were
    began = time.perf_counter()
    for _ in range(20):
        assert (await partner.get("/appointments/types")).status == 200
    assert time.perf_counter() - began < 20 * 0.4
    assert (await timed(stranger, path))[1] >= 0.4


@pytest.mark.usefixtures("small_buckets")
async def test_behind_a_proxy_the_address_that_it_names_waits(partner_of: Begin) -> None:
    partner = await partner_of(World(), trusted_proxies="127.0.0.1")

    async def call(address: str) -> float:
        began = time.perf_counter()
        answer = await partner.anonymous().send(
            "GET", "/clients", headers={"X-Forwarded-For": address}
        )
        assert answer.status == 401
        return time.perf_counter() - began

    assert [await call("192.0.2.1") for _ in range(11)][-1] >= 0.4
    waits = partner.gateway.gateway.public.front._buckets.take
    assert waits("192.0.2.2") == 0
    assert waits("192.0.2.1") > 0


@pytest.mark.usefixtures("small_buckets")
async def test_who_waits_makes_room_for_who_comes(
    partner_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    partner = await partner_of(World(), connections=2)
    gateway = partner.gateway
    gateway.gateway.public.front._buckets.take("127.0.0.2")
    monkeypatch.setattr(addresses, "LONGEST", 30.0)
    monkeypatch.setattr(addresses, "RATE", 0.1)
    junk = b"GET /api/v1/clients HTTP/1.1\r\nHost: x\r\n\r\n"
    async with held(gateway.port, "127.0.0.2", "127.0.0.2", sent=junk * 20) as lines:
        await count(gateway, 2)
        await until(lambda: gateway.gateway.public.front.running == 2, 10.0)
        await asyncio.sleep(0.3)
        sent = head(partner, "GET", TYPES, "Connection: close")
        assert (await say(gateway.port, sent)).statuses == [200]
        assert sum([await ends(each, 0.5) for each in lines]) == 1
    assert told(gateway) == {"idle": 1.0}


@pytest.mark.usefixtures("small_buckets")
async def test_the_wait_is_no_part_of_the_time_that_is_told(
    start_gateway: Start, session: Any
) -> None:
    gateway = await start_gateway()
    stranger = Partner(gateway, session, None)
    seconds: list[float] = []
    observers = gateway.gateway.public.front.observers
    note = observers.note

    def noted(*given: Any) -> None:
        seconds.append(time.perf_counter() - given[4])
        note(*given)

    observers.note = noted  # type: ignore[method-assign]
    for _ in range(11):
        last = await timed(stranger)
    assert last[1] >= 0.4
    assert seconds[-1] < 0.4
