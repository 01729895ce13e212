"""Several machines: two gateways behind HAProxy, with one store, one limiter and one practice."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import aiohttp
import pytest

from tests.adapters.servers import execute_async
from tests.chaos.history import STICK, Attempt, Row, faults
from tests.chaos.storm import Plan
from tests.chaos.strikes import Strikes
from tests.cluster.rush import Blow, Rush, diary, held, known, longest, working_day
from tests.cluster.stack import Stack, stack
from tests.processes.gateways import Load, eventually, get, request

pytestmark = pytest.mark.long

TYPES = "/api/v1/appointments/types"
CLIENTS = "/api/v1/clients?limit=1"
LIMIT, CALLS, AT_ONCE = 1_000, 1_500, 100
OPEN = "SELECT id FROM bookings WHERE state IN ('intended', 'sent', 'unknown')"
# Sent by processes that are named, without an Idempotency-Key.
LEFT = (
    OPEN + " AND state = 'sent' AND idempotency_digest IS NULL"
    " AND owner IN (SELECT id FROM presence WHERE pid IN ({}))"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with stack(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def minted(cluster: Stack, *words: str) -> tuple[str, str]:
    """A key's id and its secret, once all processes know it."""
    made = cluster.nodes[0].gateway.mint(*words)
    time.sleep(1)
    return made


async def test_a_limit_is_exact_over_nodes(cluster: Stack) -> None:
    _, secret = minted(cluster, "--limit", str(LIMIT))
    before = [node.answered() for node in cluster.nodes]
    url, headers = f"http://127.0.0.1:{cluster.port}{TYPES}", {"X-API-Key": secret}
    connector = aiohttp.TCPConnector(limit=AT_ONCE)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def call() -> int:
            async with session.get(url) as answer:
                await answer.read()
                return answer.status

        statuses = Counter(await asyncio.gather(*(call() for _ in range(CALLS))))
    assert statuses == {200: LIMIT, 429: CALLS - LIMIT}
    after = [node.answered() for node in cluster.nodes]
    assert sum(after) - sum(before) == CALLS
    assert all(now - then > CALLS / 10 for now, then in zip(after, before, strict=True))


def test_a_revocation_holds_on_both_nodes_within_a_second(cluster: Stack) -> None:
    key_id, secret = minted(cluster)
    ports = [node.port for node in cluster.nodes]
    assert {get(port, TYPES, secret)[0] for port in ports for _ in range(6)} == {200}
    cluster.nodes[0].gateway.command("keys", "revoke", "--yes", key_id)
    time.sleep(1)
    # each connection may come to another process
    assert {get(port, TYPES, secret)[0] for port in ports for _ in range(6)} == {401}


def test_status_and_changes_of_the_policy_are_of_both_nodes(cluster: Stack) -> None:
    _, secret = minted(cluster)
    ports = [node.port for node in cluster.nodes]
    seen = [get(port, CLIENTS, secret)[1][0] for port in ports]
    assert all("phone" in each for each in seen)
    assert seen[0] == seen[1]  # ids too: one sealing secret
    text = cluster.policies.read_text("utf-8")
    hidden = re.sub(r"(STANDARD: \[)phone, (.*\n.*\n  never: \[)\]", r"\1\2phone]", text, count=1)
    assert hidden != text
    beside = cluster.policies.with_suffix(".new")
    beside.write_text(hidden, "utf-8")
    beside.rename(cluster.policies)

    def is_hidden() -> bool:
        records = [get(port, CLIENTS, secret)[1][0] for port in ports for _ in range(4)]
        return all("phone" not in each for each in records)

    eventually(is_hidden, within=5)
    told = cluster.nodes[1].gateway.command("policy", "status")["processes"]
    assert Counter(each["role"] for each in told) == {
        "operations": 2, "worker 1": 2, "worker 2": 2,
    }  # fmt: skip
    assert len({each["hash"] for each in told}) == 1


def test_nobody_names_its_own_address_through_the_proxy(cluster: Stack) -> None:
    _, secret = minted(cluster)
    # a gateway answers 400 to two addresses: the proxy has put its own in their place
    spoofed = f"{secret}\r\nX-Forwarded-For: 10.9.8.7, 10.9.8.6"
    read = request(CLIENTS, spoofed)
    load = Load(cluster.port, read, most=1)
    asyncio.run(load.run(1, asyncio.Event()))
    assert load.statuses == {200: 1}


@dataclass(frozen=True)
class Struck:
    """What came of a rush during which a node was killed, and begun again later."""

    rush: Rush
    blow: Blow
    left: list[int]
    reads: Load
    by_vet: list[Row]
    by_room: list[Row]
    strays: int


@pytest.fixture(scope="module")
def struck(cluster: Stack) -> Struck:
    secrets = [cluster.nodes[0].gateway.mint("--limit", "100000")[1] for _ in range(3)]
    time.sleep(1)
    return asyncio.run(_strike(cluster, secrets))


async def _strike(cluster: Stack, secrets: list[str]) -> Struck:
    learnt = await known(cluster, secrets[0], [working_day()])
    plan = Plan(attempts=160, kills=0, partners=10, seed=5)
    node = cluster.nodes[0].gateway
    rush = Rush(
        cluster,
        secrets,
        learnt.ids,
        plan,
        (),
        Strikes(node, 5),
        offered=learnt.offered,  # type: ignore[arg-type]
    )
    reads, stop = Load(cluster.port, request(CLIENTS, secrets[1])), asyncio.Event()
    reading = asyncio.create_task(reads.run(4, stop))
    booking = asyncio.create_task(rush.blow())
    await rush.asked(60)
    blow, left = await _kill_at_work(cluster)
    await asyncio.sleep(4)
    stop.set()
    await reading
    await asyncio.to_thread(cluster.nodes[0].start)
    await booking
    return Struck(rush, blow, left, reads, *await diary(cluster))


async def _kill_at_work(cluster: Stack) -> tuple[Blow, list[int]]:
    """Kills the first node while it is at bookings: when, and at which."""
    node = cluster.nodes[0]
    wanted = LEFT.format(", ".join(map(str, node.pids())))
    until = time.monotonic() + 20
    while time.monotonic() < until:
        before = time.monotonic()
        node.freeze()
        if left := await execute_async(cluster.store, wanted):
            await asyncio.to_thread(node.kill)
            return Blow(before, time.monotonic()), [number for (number,) in left]
        node.go_on()
        await asyncio.sleep(0.05)
    raise AssertionError("it is at no booking")


def test_nothing_is_booked_twice_though_a_node_dies(struck: Struck) -> None:
    assert faults(held(struck.rush.attempts), struck.by_vet, struck.strays) == []
    ordered = sorted(struck.by_room, key=lambda row: (row.vet, row.start))
    for one, other in pairwise(ordered):
        assert one.vet != other.vet or one.end <= other.start
    answers = Counter(each.status for each in struck.rush.attempts)
    assert answers[201] > 20
    assert answers[409] > 20


def test_only_what_was_under_way_on_the_dead_node_fails(struck: Struck) -> None:
    under_way = [each for each in struck.rush.attempts if struck.blow.met(each)]
    failed = [
        each
        for each in struck.rush.attempts
        if each.status not in STICK and each.ended > struck.blow.before
    ]
    assert failed
    others = [each for each in failed if not _is_of(each, under_way)]
    assert others == [], struck.blow
    later = [each for each in struck.rush.attempts if each.sent > struck.blow.after]
    assert {each.status for each in later} >= {201, 409}


def _is_of(failed: Attempt, under_way: Sequence[Attempt]) -> bool:
    """Whether it is one of these, or was 503 for a time that one of these may have taken."""
    wish = longest(failed).wish
    return any(
        wish.note == each.note
        or (
            failed.status == 503
            and wish.vet == each.vet
            and wish.start < each.end
            and each.start < wish.end
        )
        for each in (longest(attempt).wish for attempt in under_way)
    )


def test_no_read_is_lost_with_a_node(struck: Struck) -> None:
    assert struck.reads.lost == []
    assert set(struck.reads.statuses) == {200}
    assert struck.reads.answered > 100


async def test_what_the_dead_node_was_at_is_settled_by_the_other(
    cluster: Stack, struck: Struck
) -> None:
    deadline = time.monotonic() + 30
    while await execute_async(cluster.store, OPEN):
        assert time.monotonic() < deadline, struck.left
        await asyncio.sleep(0.2)


def test_the_node_comes_back(cluster: Stack, struck: Struck) -> None:
    _, secret = minted(cluster)
    before = cluster.nodes[0].answered()

    def serves() -> bool:
        assert {get(cluster.port, CLIENTS, secret)[0] for _ in range(4)} == {200}
        return cluster.nodes[0].answered() > before

    eventually(serves)


def test_a_node_that_ends_loses_nothing(cluster: Stack, struck: Struck) -> None:
    _, secret = minted(cluster, "--limit", "100000")
    load, node = Load(cluster.port, request(CLIENTS, secret)), cluster.nodes[1]

    async def ended() -> int:
        stop = asyncio.Event()
        reading = asyncio.create_task(load.run(4, stop))
        code = await asyncio.to_thread(node.gateway.end)
        stop.set()
        await reading
        return code

    assert asyncio.run(ended()) == 0
    assert load.lost == []
    assert set(load.statuses) == {200}
