"""What two gateways share stands still, while partners call through the shipped proxy.

STALL=40 makes it stand still for 40 seconds instead of 10.
"""

import asyncio
import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from adapters.sample import MAPPING
from tests.cluster.stack import checks, proxy
from tests.conftest import Template
from tests.failures.test_processes_ill import posted
from tests.failures.test_whole_gateway import appointments
from tests.postgres_server import PostgresServer, postgres_server
from tests.processes.gateways import Load, Several, eventually, get, request, until_known
from tests.redis_server import RedisServer, redis_server
from tests.wire.proxies import free_port

pytestmark = pytest.mark.long

CLIENTS = "/api/v1/clients?limit=2"
STALL = float(os.environ.get("STALL", "10"))
PARTNERS, PAUSE = 4, 0.2
# Bookings that are asked for; and seconds that one may take while the store stands still.
MOST, PATIENCE = 60, 4.0


@dataclass(frozen=True, kw_only=True)
class Shared:
    """Two gateways, the port of the proxy before them, and what they share."""

    nodes: tuple[Several, ...]
    port: int
    clinic: Path
    store: PostgresServer
    limiter: RedisServer


@pytest.fixture(scope="module")
def shared(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """The first gateway is one process, the second has workers."""
    folder = tmp_path_factory.mktemp("shared")
    shutil.copy(template.folder / "clinic.db", folder)
    # the digits alone: with them the template's ids hold, though this is another state
    secret = folder / "sealing.secret"
    secret.write_text((template.folder / secret.name).read_text().split()[-1])
    secret.chmod(0o600)
    with ExitStack() as ends:
        store = ends.enter_context(postgres_server())
        limiter = ends.enter_context(redis_server(folder))
        config = folder / "gateway.yaml"
        config.write_text(
            "public_url: http://127.0.0.1:8080\ntrusted_proxies: 127.0.0.1\nnodes: 2\n"
            f"store: {store.url}\nlimiter: {limiter.url}/0\n"
            "listen: 127.0.0.1:0\noperations_listen: 127.0.0.1:0\nadmin_listen: ''\n"
            "shutdown_delay: 0\n"
            f"backend: {{url: 'sqlite:///{folder}/clinic.db', mapping: {MAPPING},"
            " secret_file: sealing.secret}\n"
        )
        nodes = tuple(_node(ends, folder, config, workers) for workers in (1, 2))
        port = free_port()
        ports = [(node.port, node.operations_port) for node in nodes]
        ends.enter_context(proxy(folder, port, ports))
        clinic = folder / "clinic.db"
        yield Shared(nodes=nodes, port=port, clinic=clinic, store=store, limiter=limiter)


def _node(ends: ExitStack, folder: Path, config: Path, workers: int) -> Several:
    own = folder / f"with-{workers}"
    own.mkdir()
    environ = {"GATEWAY_STATE": str(own / "state"), "GATEWAY_WORKERS": str(workers)}
    return ends.enter_context(Several(own, config=config, environ=environ))


class Steady(Load):
    """Partners that call five times a second each, however quickly they are answered."""

    async def _call(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await asyncio.sleep(PAUSE)
        return await super()._call(reader, writer)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a booking was told; the moments are the test's steady clock."""

    key: str
    sent: float
    status: int
    retry_after: str | None
    booked: str | None


@dataclass
class Seen:
    """What came of a stall: reads, bookings and what the nodes said of themselves meanwhile.

    `wanted` are bookings that nobody has asked for yet, by their Idempotency-Key.
    """

    reads: Steady
    wanted: dict[str, dict[str, str]]
    bookings: list[Answer] = field(default_factory=list)
    ready: list[tuple[int, float]] = field(default_factory=list)
    began: float = 0.0
    ended: float = 0.0

    @property
    def meanwhile(self) -> list[Answer]:
        """The answers to bookings that were sent during the stall, and not at its very end."""
        until = self.ended - PATIENCE
        return [each for each in self.bookings if self.began < each.sent < until]


async def stalled(shared: Shared, template: Template, part: Any) -> Seen:
    """Partners who read and book before, while and after the part stands still."""
    secret = shared.nodes[0].mint("--limit", "100000")[1]
    await asyncio.to_thread(until_known, secret, *(node.port for node in shared.nodes))
    wanted = await asyncio.to_thread(drafts, shared.port, secret, template)
    seen, stop = Seen(Steady(shared.port, request(CLIENTS, secret)), wanted), asyncio.Event()
    reading = asyncio.create_task(seen.reads.run(PARTNERS, stop))
    bookers = [asyncio.to_thread(_book, shared, secret, seen) for _ in range(PARTNERS)]
    booking = asyncio.gather(*bookers)
    await asyncio.sleep(1)
    seen.began = time.monotonic()
    part.hang()
    try:
        await asyncio.to_thread(_watch, shared, seen.began + STALL, seen)
    finally:
        part.go_on()
        seen.ended = time.monotonic()
    async with asyncio.timeout(30):
        await booking
    await asyncio.to_thread(_is_whole_again, shared)
    stop.set()
    await reading
    return seen


def drafts(port: int, secret: str, template: Template) -> dict[str, dict[str, str]]:
    """Bookings that are in nobody's way, each with a key of its own."""
    ids, found = template.ids, {}
    who = {"clientId": ids["clients"], "patientId": ids["patients"], "vetId": ids["vet"]}
    for ahead in range(1, 60):
        query = f"vetId={ids['vet']}&date={date.today() + timedelta(days=ahead)}"  # noqa: DTZ011
        end = ""
        for slot in get(port, f"/api/v1/appointments/available-slots?{query}", secret)[1]:
            if slot["startTime"] >= end and len(found) < MOST:
                found[str(uuid4())] = who | {"scheduledAt": slot["startTime"]}
                end = slot["endTime"]
    assert len(found) == MOST
    return found


def _watch(shared: Shared, until: float, seen: Seen) -> None:
    """Asks both nodes whether they are ready for reads."""
    while time.monotonic() < until:
        for node in shared.nodes:
            began = time.monotonic()
            status, _ = node.get("/readyz?for=reads")
            seen.ready.append((status, time.monotonic() - began))
        time.sleep(0.2)


def _book(shared: Shared, secret: str, seen: Seen) -> None:
    """One booking after the other, each asked for until it is decided."""
    while seen.wanted:
        key, wanted = seen.wanted.popitem()
        while (answer := _asked(shared, secret, key, wanted)).status not in {201, 409}:
            seen.bookings.append(answer)
            time.sleep(PAUSE)
        seen.bookings.append(answer)
        time.sleep(PAUSE)


def _asked(shared: Shared, secret: str, key: str, wanted: dict[str, str]) -> Answer:
    sent = time.monotonic()
    with closing(posted(shared.port, secret, wanted, key)) as connection:
        answer = connection.getresponse()
        told = json.loads(answer.read())
        return Answer(
            key=key,
            sent=sent,
            status=answer.status,
            retry_after=answer.headers["Retry-After"],
            booked=told.get("id"),
        )


def _is_whole_again(shared: Shared) -> None:
    """Both nodes are ready for all, soon."""
    eventually(lambda: all(node.get("/readyz")[0] == 200 for node in shared.nodes), within=15)


def each_was_booked_once(shared: Shared, seen: Seen, before: int) -> None:
    """Whoever was answered how, and however often it was asked for."""
    made = {each.booked for each in seen.bookings if each.status == 201}
    assert Counter(each.status for each in seen.bookings)[409] == 0
    assert len(made) == MOST
    assert appointments(shared.clinic) == before + MOST


def no_read_failed(seen: Seen) -> None:
    assert seen.reads.lost == []
    assert set(seen.reads.statuses) == {200}, seen.reads.statuses
    assert seen.reads.answered > STALL * PARTNERS / 2, "they went on all the while"


def ready_for_reads(seen: Seen) -> None:
    """Nearly always, and at once: a machine that is busy has its moments."""
    statuses, took = zip(*seen.ready, strict=True)
    assert statuses.count(200) > 0.9 * len(statuses)
    assert sorted(took)[len(took) // 2] < 0.5


def test_the_proxy_finds_both_nodes_ready_for_both_purposes(shared: Shared) -> None:
    """Not only that it asks them all the same, which it would where none is ready."""
    wanted = {
        f"{purpose}/node-{number}": ("UP", "L7OK")
        for purpose in ("reads", "bookings")
        for number in (1, 2)
    }
    eventually(lambda: checks(shared.clinic.parent) == wanted)


async def test_no_read_fails_and_nothing_is_booked_twice_while_the_shared_store_stands_still(
    shared: Shared, template: Template
) -> None:
    before = appointments(shared.clinic)
    seen = await stalled(shared, template, shared.store)
    no_read_failed(seen)
    ready_for_reads(seen)
    assert seen.meanwhile
    assert {each.status for each in seen.meanwhile} == {503}
    assert all(int(each.retry_after or 0) > 0 for each in seen.meanwhile)
    assert {each.status for each in seen.bookings} <= {201, 503, 504}
    each_was_booked_once(shared, seen, before)


async def test_no_call_fails_while_the_shared_limiter_stands_still(
    shared: Shared, template: Template
) -> None:
    before = appointments(shared.clinic)
    seen = await stalled(shared, template, shared.limiter)
    no_read_failed(seen)
    ready_for_reads(seen)
    assert {each.status for each in seen.bookings} == {201}
    each_was_booked_once(shared, seen, before)
