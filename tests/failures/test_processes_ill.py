"""Real gateways, of one process and of several: their end in mid-booking, and without a store."""

import asyncio
import json
import signal
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from tests.adapters.servers import postgres_database
from tests.conftest import Template
from tests.forwarder import forwarder
from tests.processes.gateways import Several, copy_of, eventually, get, until_known

pytestmark = pytest.mark.long

CLIENTS = "/api/v1/clients?limit=2"
# Seconds for which keys that are unknown, and known ones, count without the store: short here.
UNKNOWN_FOR, KNOWN_FOR = 1.0, 8.0


@pytest.fixture
def folder(template: Template, tmp_path: Path) -> Path:
    return copy_of(template.folder, tmp_path / "state")


@pytest.fixture
def desk(folder: Path) -> Iterator[sqlite3.Connection]:
    """Another program that works in the practice's database."""
    with closing(sqlite3.connect(folder / "clinic.db", isolation_level=None)) as opened:
        yield opened


def draft(port: int, secret: str, template: Template) -> dict[str, str]:
    """A booking that fits."""
    ids = template.ids
    for ahead in range(1, 21):
        day = date.today() + timedelta(days=ahead)  # noqa: DTZ011
        query = f"vetId={ids['vet']}&date={day}"
        status, free = get(port, f"/api/v1/appointments/available-slots?{query}", secret)
        assert status == 200, free
        if free:
            who = {"clientId": ids["clients"], "patientId": ids["patients"], "vetId": ids["vet"]}
            return who | {"scheduledAt": free[-1]["startTime"]}
    raise LookupError("no free time in three weeks")


def posted(port: int, secret: str, body: dict[str, str], key: str) -> HTTPConnection:
    """A booking that was sent, and whose answer nobody has read yet."""
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"X-API-Key": secret, "Content-Type": "application/json", "Idempotency-Key": key}
    connection.request("POST", "/api/v1/appointments", json.dumps(body), headers)
    return connection


def states(folder: Path) -> list[str]:
    """Of the ledger's rows."""
    with closing(sqlite3.connect(folder / "gateway.db")) as store:
        return [state for (state,) in store.execute("SELECT state FROM bookings")]


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("workers", [1, 2])
def test_a_booking_that_runs_when_the_end_begins_is_made_and_answered(
    folder: Path, template: Template, desk: sqlite3.Connection, workers: int
) -> None:
    with Several(folder, lines=(f"workers: {workers}",)) as gateway:
        _, secret = gateway.mint()
        port = gateway.port
        until_known(secret, port)
        wanted = draft(port, secret, template)
        desk.execute("BEGIN IMMEDIATE")
        with closing(posted(port, secret, wanted, "at-the-end")) as connection:
            eventually(lambda: states(folder) == ["sent"])
            # whoever presses again gets no quicker, and no worse, an end
            for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
                gateway.process.send_signal(number)
                time.sleep(0.1)
            eventually(lambda: not listens(port), within=5)
            assert gateway.process.poll() is None
            desk.execute("ROLLBACK")
            answer = connection.getresponse()
            assert (answer.status, answer.headers["Connection"]) == (201, "close")
            made = json.loads(answer.read())["id"]
        assert gateway.process.wait(20) == 0
    assert states(folder) == ["done"]
    assert not [each for each in gateway.said() if each["level"] == "error"]
    lines = [
        json.loads(line)
        for file in (folder / "audit").glob("*.jsonl")
        for line in file.read_bytes().splitlines()
    ]
    booked = [each for each in lines if each.get("operation") == "create_appointment"]
    assert [each["outcome"] for each in booked] == ["begun", "answered"]
    assert booked[-1]["recordIds"] == [made]


def test_the_end_comes_in_order_and_sigquit_says_what_runs(folder: Path) -> None:
    config = folder / "gateway.yaml"
    config.write_text(config.read_text().replace("shutdown_delay: 0", "shutdown_delay: 2"))
    with Several(folder, lines=()) as gateway:
        _, secret = gateway.mint()
        port = gateway.port
        eventually(lambda: get(port, CLIENTS, secret)[0] == 200)
        gateway.process.send_signal(signal.SIGQUIT)
        gateway.event("asked what runs: a task")
        assert secret not in (folder / "stderr.txt").read_text()
        assert get(port, CLIENTS, secret)[0] == 200
        gateway.process.send_signal(signal.SIGTERM)
        # a balancer that asks is told first, and those whom it still sends are answered
        eventually(lambda: gateway.get("/readyz")[0] == 503, within=1.5)
        assert gateway.get("/readyz")[1]["reason"] == "the gateway is shutting down"
        assert get(port, CLIENTS, secret)[0] == 200
        eventually(lambda: not listens(port), within=6)
        assert gateway.process.wait(10) == 0


async def test_without_a_store_known_keys_go_on_for_a_while_and_nothing_is_booked(
    folder: Path, template: Template, postgres_tables: str
) -> None:
    short = (
        "import gateway.keys.ring as ring\n"
        f"ring.UNKNOWN_FOR, ring.KNOWN_FOR = {UNKNOWN_FOR}, {KNOWN_FOR}"
    )
    template_name = postgres_tables.rpartition("/")[2]
    with postgres_database(options=f"TEMPLATE {template_name}") as url:
        address = make_url(url)
        async with forwarder(address.port or 5432) as wire:
            through = address.set(host="127.0.0.1", port=wire.port)
            store = through.render_as_string(hide_password=False)
            lines = ("workers: 2", f"store: {store}")
            gateway = await asyncio.to_thread(Several, folder, lines=lines, spoilt=short)
            try:
                await _without_a_store(gateway, wire, template)
            finally:
                await asyncio.to_thread(gateway.__exit__)


async def _without_a_store(gateway: Several, wire: Any, template: Template) -> None:
    port = gateway.port

    async def told(secret: str) -> set[int]:
        """What both workers answer: each connection may come to another one."""
        return {(await asyncio.to_thread(get, port, CLIENTS, secret))[0] for _ in range(8)}

    async def until(secret: str, status: int, within: float) -> None:
        async with asyncio.timeout(within):
            while await told(secret) != {status}:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    def book(key: str) -> tuple[int, float]:
        began = time.monotonic()
        with closing(posted(port, secret, wanted, key)) as connection:
            return connection.getresponse().status, time.monotonic() - began

    _, secret = await asyncio.to_thread(gateway.mint)
    await until(secret, 200, 5)
    wanted = await asyncio.to_thread(draft, port, secret, template)
    nobody = "vk_" + "A" * 45
    assert await told(nobody) == {401}

    wire.hang()
    gone = time.monotonic()
    status, took = await asyncio.to_thread(book, "hung")
    assert (status, took < 4) == (503, True)
    assert await told(secret) == {200}
    await wire.refuse()
    wire.flow()
    status, took = await asyncio.to_thread(book, "gone")
    assert (status, took < 1.5) == (503, True)
    # whether it is a new key nobody can tell
    await until(nobody, 503, UNKNOWN_FOR + 2)
    if time.monotonic() - gone < KNOWN_FOR - 0.5:
        assert await told(secret) == {200}

    def is_told() -> bool:
        status, ready = gateway.get("/readyz")
        assert status == 503
        return not ready["parts"]["store"]["ready"]

    # a part's last answer counts for a second, and it has two to answer
    await asyncio.to_thread(eventually, is_told, within=4)
    figures = (await asyncio.to_thread(gateway.get, "/metrics"))[1]
    assert 'gateway_part_ready{part="store"} 0' in figures
    # by then a key that is known may have been revoked
    await until(secret, 503, KNOWN_FOR + 2)
    await wire.listen()
    await until(secret, 200, 10)
    await until(nobody, 401, 5)
    status, _ = await asyncio.to_thread(book, "back")
    assert status == 201
    said = [each["event"] for each in gateway.said()]
    # once in each process that follows the keys
    assert said.count("the store cannot be read; the known keys go on for a minute") <= 3
    assert said.count("the store can be read again") >= 2
    assert len(said) < 30
