"""What two gateways share stands still, while partners call through the shipped proxy."""

import asyncio
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from adapters.sample import MAPPING
from tests.cluster.stack import proxy
from tests.conftest import Template
from tests.failures.test_processes_ill import draft, posted
from tests.postgres_server import PostgresServer, postgres_server
from tests.processes.gateways import Load, Several, eventually, get, request
from tests.redis_server import RedisServer, redis_server
from tests.wire.proxies import free_port

CLIENTS = "/api/v1/clients?limit=2"
STALL = 10.0
PARTNERS, PAUSE = 4, 0.1


@dataclass(frozen=True, kw_only=True)
class Shared:
    """Two gateways, the port of the proxy before them, and what they share."""

    nodes: tuple[Several, ...]
    port: int
    store: PostgresServer
    limiter: RedisServer


@pytest.fixture(scope="module")
def shared(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """The first gateway is one process, the second has workers."""
    folder = tmp_path_factory.mktemp("shared")
    for name in ("clinic.db", "sealing.secret"):
        shutil.copy(template.folder / name, folder)
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
        yield Shared(nodes=nodes, port=port, store=store, limiter=limiter)


def _node(ends: ExitStack, folder: Path, config: Path, workers: int) -> Several:
    own = folder / f"with-{workers}"
    own.mkdir()
    environ = {"GATEWAY_STATE": str(own / "state"), "GATEWAY_WORKERS": str(workers)}
    return ends.enter_context(Several(own, config=config, environ=environ))


class Steady(Load):
    """Partners that call ten times a second each, however quickly they are answered."""

    async def _call(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await asyncio.sleep(PAUSE)
        return await super()._call(reader, writer)


@dataclass
class Seen:
    """What came of a stall: reads, bookings and what the nodes said of themselves meanwhile."""

    reads: Steady
    bookings: list[tuple[int, str | None]] = field(default_factory=list)
    ready: list[tuple[int, float]] = field(default_factory=list)


async def stalled(shared: Shared, template: Template, part: Any) -> Seen:
    """Reads before, while and after the part stands still; a booking after the other meanwhile."""
    secret = shared.nodes[0].mint("--limit", "100000")[1]
    await _known(shared, secret)
    seen, stop = Seen(Steady(shared.port, request(CLIENTS, secret))), asyncio.Event()
    reading = asyncio.create_task(seen.reads.run(PARTNERS, stop))
    wanted = await asyncio.to_thread(draft, shared.port, secret, template)
    await asyncio.sleep(1)
    part.hang()
    try:
        until = time.monotonic() + STALL
        watching = asyncio.to_thread(_watch, shared, until, seen)
        booking = asyncio.to_thread(_book_until, shared, secret, wanted, until, seen)
        await asyncio.gather(watching, booking)
    finally:
        part.go_on()
    await asyncio.to_thread(_works_again, shared, secret, wanted)
    await asyncio.sleep(4)  # for what the end of a stall brings about, as its beginning did
    stop.set()
    await reading
    return seen


async def _known(shared: Shared, secret: str) -> None:
    """Every process knows the key; each connection may come to another one."""

    def is_known() -> bool:
        ports = [node.port for node in shared.nodes]
        return {get(port, CLIENTS, secret)[0] for port in ports for _ in range(8)} == {200}

    await asyncio.to_thread(eventually, is_known)


def _watch(shared: Shared, until: float, seen: Seen) -> None:
    """Asks both nodes whether they are ready for reads."""
    while time.monotonic() < until:
        for node in shared.nodes:
            began = time.monotonic()
            status, _ = node.get("/readyz?for=reads")
            seen.ready.append((status, time.monotonic() - began))
        time.sleep(0.2)


def _book_until(
    shared: Shared, secret: str, wanted: dict[str, str], until: float, seen: Seen
) -> None:
    while time.monotonic() < until:
        seen.bookings.append(_booked(shared, secret, wanted, f"stall-{len(seen.bookings)}"))
        time.sleep(0.5)


def _booked(
    shared: Shared, secret: str, wanted: dict[str, str], key: str
) -> tuple[int, str | None]:
    with closing(posted(shared.port, secret, wanted, key)) as connection:
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers["Retry-After"]


def _works_again(shared: Shared, secret: str, wanted: dict[str, str]) -> None:
    """Soon a booking is decided again, and both nodes are ready for all."""

    def is_decided() -> bool:
        return _booked(shared, secret, wanted, "after")[0] in {201, 409}

    eventually(is_decided, within=15)
    eventually(lambda: all(node.get("/readyz")[0] == 200 for node in shared.nodes), within=15)


def no_read_failed(seen: Seen) -> None:
    assert seen.reads.lost == []
    assert set(seen.reads.statuses) == {200}, seen.reads.statuses
    assert seen.reads.answered > STALL * PARTNERS, "they went on all the while"


def ready_for_reads(seen: Seen) -> None:
    """Nearly always and at once: a machine that is busy has its moments, of which this tells too."""
    statuses, took = zip(*seen.ready, strict=True)
    assert statuses.count(200) > 0.9 * len(statuses)
    assert sorted(took)[len(took) // 2] < 0.5


async def test_no_read_fails_while_the_shared_store_stands_still(
    shared: Shared, template: Template
) -> None:
    seen = await stalled(shared, template, shared.store)
    no_read_failed(seen)
    ready_for_reads(seen)
    assert {status for status, _ in seen.bookings} == {503}
    assert all(after is not None and int(after) > 0 for _, after in seen.bookings)


async def test_no_call_fails_while_the_shared_limiter_stands_still(
    shared: Shared, template: Template
) -> None:
    seen = await stalled(shared, template, shared.limiter)
    no_read_failed(seen)
    ready_for_reads(seen)
    assert {status for status, _ in seen.bookings} == {201, 409}
    assert [status for status, _ in seen.bookings].count(201) == 1
