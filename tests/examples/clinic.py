"""An example's practice on a real server, made for one run of the tests and dropped after it."""

import asyncio
import json
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import PIPE
from typing import Any
from urllib.request import Request, urlopen

import aiohttp
import asyncpg
import pytest

from adapters.base import Query
from adapters.ids.seal import SealedIds
from examples.dropping import drop
from examples.launch import Example, prepare, with_database
from examples.loading import address
from examples.mariadb_eav.generate import connected
from examples.practice import Practice
from gateway.app import build
from gateway.contract.operations import OPERATIONS
from gateway.sealing import read_secret
from gateway.settings import load_settings
from tests.conftest import RunningGateway
from tests.partner import Answer, Partner

SCALE = 0.4
ROOT = Path(__file__).resolve().parent.parent.parent
URLS = {
    "mysql": ("TEST_MARIADB_URL", "mysql://root:password@127.0.0.1/"),
    "postgresql": ("TEST_POSTGRES_URL", "postgresql://postgres:password@127.0.0.1/postgres"),
}


@dataclass(frozen=True)
class Clinic:
    """A made practice: what it was made from, its address for the desk, the gateway's folder."""

    practice: Practice
    url: str
    folder: Path

    async def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """What the practice's own desk sees, or does; columns by name."""
        if self.url.startswith("mysql"):
            async with connected(self.url, autocommit=True) as cursor:
                await cursor.execute(sql, values or None)
                names = [each[0] for each in cursor.description or ()]
                found = await cursor.fetchall() if names else []
                return [dict(zip(names, row, strict=True)) for row in found]
        connection = await asyncpg.connect(**address(self.url))
        try:
            return [dict(row) for row in await connection.fetch(sql, *values)]
        finally:
            await connection.close()

    def sealed(self, resource: str, key: int) -> str:
        """The public id of a row with a whole number for its key."""
        secret = read_secret(load_settings(self.folder / "gateway.yaml", {}))
        return SealedIds(secret, resource).seal(key)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[Partner]:
        """A partner with every permission, at FULL, of a gateway in front of it."""
        loaded = load_settings(self.folder / "gateway.yaml", {})
        free = dict.fromkeys(("listen", "operations_listen", "admin_listen"), "127.0.0.1:0")
        gateway = await build(loaded.model_copy(update=free))
        try:
            await gateway.start()
            running = RunningGateway(gateway, self.folder, {})
            async with aiohttp.ClientSession() as session:
                yield await Partner(running, session, None).with_key()
        finally:
            await gateway.aclose()


def server_of(kind: str) -> str:
    """The server's address; skips the test where none is given."""
    variable, shown = URLS[kind]
    server = os.environ.get(variable)
    if not server:
        pytest.skip(f"set {variable}={shown} (an account that may create databases)")
    return server


def started(module: str, kind: str, state: Path) -> dict[str, Any]:
    """What the command of an example hands over, and how its gateway answers to it."""
    server, name = server_of(kind), f"example_{secrets.token_hex(5)}"
    command = [sys.executable, "-m", module, "--server", server, "--database", name]
    command += ["--state", str(state), "--scale", "0.1", "--json"]
    command += ["--port", "0", "--operations-port", "0"]
    process = subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True, cwd=ROOT)
    try:
        line = process.stdout.readline()  # type: ignore[union-attr]
        assert line, process.communicate()[1]
        shown: dict[str, Any] = json.loads(line)
        client = f"{shown['base']}/clients/{shown['ids']['CLIENT']}"
        with urlopen(Request(client, headers={"X-API-Key": shown["keys"]["FULL"]})) as answer:
            shown["status"] = answer.status
        day = "vetId={VET}&date={DAY}".format(**shown["ids"])
        slots = f"{shown['base']}/appointments/available-slots?{day}"
        with urlopen(Request(slots, headers={"X-API-Key": shown["keys"]["FULL"]})) as answer:
            shown["first"] = json.load(answer)[0]["startTime"]
        shown["private"] = not (state / "gateway.yaml").stat().st_mode & 0o077
        return shown
    finally:
        process.terminate()
        process.communicate(timeout=20)
        asyncio.run(drop(server, name))


@contextmanager
def made(example: Example, kind: str, folder: Path) -> Iterator[Clinic]:
    """The example's own start, under a name of its own; skips where no server is given."""
    server = server_of(kind)
    practice = Practice(datetime.now(UTC).date(), SCALE)
    name = f"example_{secrets.token_hex(5)}"
    ours = replace(example, name=name)
    url = with_database(server, name)
    try:
        prepare(ours, server, folder, scale=SCALE)
        yield Clinic(practice, url, folder)
    finally:
        asyncio.run(drop(server, name))


async def free_times(partner: Partner, vet: str, kind: str | None = None) -> list[dict[str, Any]]:
    """The free times of the first day from tomorrow on that has any."""
    for ahead in range(1, 21):
        day = (datetime.now(UTC).date() + timedelta(days=ahead)).isoformat()
        query = {"vetId": vet, "date": day} | ({} if kind is None else {"appointmentTypeId": kind})
        answer = await partner.get("/appointments/available-slots", **query)
        assert answer.status == 200, answer.text
        if answer.data:
            return answer.data
    raise LookupError("no free time in three weeks")


async def an_owned_animal(partner: Partner) -> dict[str, str]:
    """A patient and its present client, as a booking names them."""
    clients = {each["id"] for each in await everything(partner, "/clients")}
    patients = (await partner.get("/patients", limit="100")).data
    found = next(each for each in patients if each["clientId"] in clients)
    return {"clientId": found["clientId"], "patientId": found["id"]}


async def vets(partner: Partner, limit: int = 50) -> dict[str, str]:
    """The first page of the directory of veterinarians: public ids by name."""
    query = Query(resource="vets", now=datetime.now(UTC), limit=limit)
    page = await partner.gateway.gateway.adapter.read_many(query)
    return {each["name"]: each["id"] for each in page.records}


async def everything(partner: Partner, path: str, **query: str) -> list[dict[str, Any]]:
    """All records of a list, page by page."""
    answer = await partner.get(path, limit="200", **query)
    assert answer.status == 200, answer.text
    records = answer.data
    while next_page := answer.headers.get("Link"):
        assert len(records) < 100_000
        address_ = next_page.partition(">")[0].lstrip("<")
        answer = await partner.send("GET", address_.partition("/api/v1")[2])
        assert answer.status == 200, answer.text
        records += answer.data
    return records


async def troubles(partner: Partner) -> list[str]:
    """The figures of values and rows that the gateway could not use."""
    lines = await asyncio.to_thread(_figures, f"{partner.gateway.operations}/metrics")
    return [line for line in lines if line.startswith("gateway_unusable_values_total{")]


def _figures(address_: str) -> list[str]:
    with urlopen(address_) as answer:
        return answer.read().decode().splitlines()


def paths_without_ids(done: AbstractSet[str]) -> dict[str, str]:
    """The paths of the other operations that can be asked without knowing an id."""
    others = [each for each in OPERATIONS if each.id not in done and not each.creates]
    return {each.id: each.path for each in others if "{" not in each.path}


async def every_operation(partner: Partner, known: dict[str, str]) -> dict[str, Answer]:
    """All operations, each called once; `known` has an id of a consultation and of an invoice."""
    directory = await vets(partner)
    kinds = await partner.get("/appointments/types")
    vet, animal = next(iter(directory.values())), await an_owned_animal(partner)
    slots = await free_times(partner, vet, kinds.data[0]["id"])
    booked = await partner.post(
        "/appointments",
        animal
        | {"vetId": vet, "appointmentTypeId": kinds.data[0]["id"]}
        | {"scheduledAt": slots[0]["startTime"], "reason": "Café, à voir", "isUrgent": True},
    )
    assert booked.status == 201, booked.text
    day = booked.data["scheduledAt"][:10]
    stock = await partner.get("/stock")
    paths = {
        "list_available_slots": f"/appointments/available-slots?vetId={vet}&date={day}",
        "get_appointment": f"/appointments/{booked.data['id']}",
        "list_clients": "/clients",
        "get_client": f"/clients/{animal['clientId']}",
        "list_patients": f"/patients?clientId={animal['clientId']}",
        "get_patient": f"/patients/{animal['patientId']}",
        "get_consultation": f"/consultations/{known['consultations']}",
        "get_invoice": f"/invoices/{known['invoices']}",
        "list_client_invoices": f"/invoices/client/{animal['clientId']}",
        "get_stock_item": f"/stock/{stock.data[0]['id']}",
        "list_low_stock": "/stock/low",
    }
    answers = {
        "create_appointment": booked,
        "list_appointment_types": kinds,
        "list_stock": stock,
    }
    paths |= paths_without_ids(answers.keys() | paths.keys())
    answers |= {name: await partner.get(path) for name, path in paths.items()}
    assert answers.keys() == {each.id for each in OPERATIONS}
    return answers
