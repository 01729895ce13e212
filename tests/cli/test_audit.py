"""`clinic-gateway audit`: over gateways that served, were killed, and were tampered with."""

import asyncio
import json
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest

from gateway.audit.chains import Known
from gateway.audit.entries import ChainHead, read_secrets
from gateway.cli.audit import lines_of
from gateway.inquiries.audit import AuditReport
from tests.command import clinic_gateway
from tests.conftest import RunningGateway, Template
from tests.partner import Partner


async def asked(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`clinic-gateway audit ...`, beside what runs."""
    config = str(folder / "gateway.yaml")
    return await asyncio.to_thread(clinic_gateway, "audit", *words, "--config", config)


async def flushed(gateway: RunningGateway) -> None:
    await gateway.gateway.public.runner.server.request_handler.observers.flush()


async def test_an_owner_is_told_which_keys_saw_which_fields(partner: Partner) -> None:
    gateway, ids = partner.gateway, await partner.ids()
    poor = await partner.with_key(permissions=("CLIENT_READ",), level="BASIC")
    path = f"/clients/{ids['clients']}"
    for caller in (partner, partner, poor):
        assert (await caller.get(path)).status == 200
    assert (await partner.get(f"/patients/{ids['patients']}")).status == 200
    await poor.get(f"/patients/{ids['patients']}")
    await flushed(gateway)
    done = await asked(gateway.folder, "who-read", "clients", ids["clients"], "--json")
    assert done.returncode == 0, done
    told = json.loads(done.stdout)
    calls = {each["id"]: each["calls"] for each in told["keys"]}
    assert calls.keys() == {partner._key_id, poor._key_id}
    [full], [basic] = calls[partner._key_id], calls[poor._key_id]
    assert (full["operation"], full["level"], full["times"]) == ("get_client", "FULL", 2)
    assert (basic["level"], basic["times"]) == ("BASIC", 1)
    assert basic["policy"] == gateway.gateway.keeper.policy().hash[:12]
    assert set(basic["fields"]) == set((await poor.get(path)).data)
    assert full["fields"]["phone"] == "whole"
    await flushed(gateway)
    said = await asked(
        gateway.folder, "who-read", "clients", ids["clients"], "--since", "2020-01-01"
    )
    assert "2 keys have been shown it since 2020-01-01" in said.stdout
    assert f"({poor._key_id})" in said.stdout
    assert "get_client at BASIC: 2 times, first" in said.stdout
    assert "get_client at FULL: 2 times, first" in said.stdout
    animal = await asked(gateway.folder, "who-read", "patients", ids["patients"])
    assert "1 key has been shown it" in animal.stdout
    never = await asked(
        gateway.folder, "who-read", "clients", ids["clients"], "--until", "2020-01-01"
    )
    assert "no key has been shown it until 2020-01-01" in never.stdout


async def test_what_a_key_did_is_told_with_its_last_calls(partner: Partner) -> None:
    gateway, ids = partner.gateway, await partner.ids()
    for number in range(12):
        await partner.send("GET", "/stock", headers={"X-Request-Id": f"the-call-{number:02}"})
    await partner.get(f"/clients/{ids['vet']}")
    await flushed(gateway)
    done = await asked(gateway.folder, "key", partner._key_id, "--json")
    told = json.loads(done.stdout)
    sums = {(e["operation"], e["outcome"], e["reason"]): e["times"] for e in told["calls"]}
    assert sums == {
        ("list_stock", "answered", None): 12,
        ("get_client", "refused", "NotFound"): 1,
    }
    requests = [each["requestId"] for each in told["last"]]
    assert requests[1:] == [f"the-call-{number:02}" for number in range(11, 2, -1)]
    said = (await asked(gateway.folder, "key", partner._key_id)).stdout
    assert "list_stock answered: 12 times" in said
    assert "request the-call-11" in said
    by_name = json.loads((await asked(gateway.folder, "key", told["key"]["name"], "--json")).stdout)
    assert by_name["key"] == {"id": partner._key_id, "name": told["key"]["name"]}
    assert by_name["calls"] == told["calls"]


async def test_an_explanation_tells_of_every_call_with_that_request_id(partner: Partner) -> None:
    gateway = partner.gateway
    for path in ("/clients", "/stock"):
        await partner.send("GET", path, headers={"X-Request-Id": "the-same-id"})
    await flushed(gateway)
    config = str(gateway.folder / "gateway.yaml")
    words = ("policy", "explain", "--request", "the-same-id", "--config", config)
    said = (await asyncio.to_thread(clinic_gateway, *words)).stdout
    assert said.startswith("list_stock for ")
    assert "the newest of 2 with that request id; before:" in said
    assert "list_clients: answered" in said


async def test_what_runs_verifies_and_goes_on_over_a_rotation_of_the_key(partner: Partner) -> None:
    folder = partner.gateway.folder
    await partner.get("/stock")
    await flushed(partner.gateway)
    rotated = await asked(folder, "rotate-key", "--json")
    key = json.loads(rotated.stdout)["key"]
    assert len(read_secrets(folder / "audit.key")) == 2
    await partner.get("/stock")
    await flushed(partner.gateway)
    done = await asked(folder, "verify", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["sound"]) == (0, True), told
    assert {each["state"] for each in told["chains"]} == {"runs", "ended"}
    assert re.search(r"\(2 ended, [1-9] running\)", (await asked(folder, "verify")).stdout)
    lines = b"".join(file.read_bytes() for file in (folder / "audit").glob("*.jsonl"))
    assert f'"key":"{key}"'.encode() in lines
    assert lines.count(b'"operation":"list_stock"') == 2


async def test_the_first_line_that_was_changed_is_named_and_the_exit_is_1(partner: Partner) -> None:
    folder = partner.gateway.folder
    for _ in range(3):
        await partner.get("/stock")
    await partner.gateway.gateway.aclose()
    [file] = [
        file
        for file in (folder / "audit").glob("*.jsonl")
        if b"list_stock" in file.read_bytes()
    ]  # fmt: skip
    file.write_bytes(file.read_bytes().replace(b'"list_stock"', b'"list_clients"', 1))
    done = await asked(folder, "verify")
    assert done.returncode == 1
    assert done.stderr == f"BROKEN: {file}:2: line 2 of its chain is not as it was written\n"
    assert done.stdout.endswith("1 broken\n")
    (folder / "audit.key").chmod(0o644)
    unread = await asked(folder, "verify")
    assert (unread.returncode, unread.stdout) == (2, "")
    assert "audit.key is open to others: chmod 600" in unread.stderr


async def test_questions_that_cannot_be_answered_say_why(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text("state: .\n")
    for words in (("verify",), ("who-read", "clients", "x"), ("key", "x")):
        done = await asked(tmp_path, *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"nothing has been served yet from the state folder {tmp_path}\n"
    odd = await asked(tmp_path, "who-read", "clients", "x", "--since", "20261121")
    assert odd.returncode == 2
    assert "must be a day (UTC), such as 2026-11-21" in odd.stderr
    assert (await asked(tmp_path, "who-read", "client", "x")).returncode == 2


@pytest.fixture
def folder(template: Template, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template.folder, tmp_path / "state"))


class Caller(threading.Thread):
    """A partner that reads over and over until nobody answers; what it was answered counts."""

    def __init__(self, port: int, secret: str) -> None:
        super().__init__(daemon=True)
        self._port, self._secret = port, secret
        self.answered = 0

    def run(self) -> None:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            while True:
                connection.request("GET", "/api/v1/stock", headers={"X-API-Key": self._secret})
                answer = connection.getresponse()
                answer.read()
                self.answered += answer.status == 200
        except (OSError, HTTPException):
            connection.close()


def killed_while_it_serves(folder: Path, secret: str, seconds: float) -> int:
    """A gateway that ends by kill -9 under load; how many calls it answered."""
    command = [sys.executable, "-m", "gateway", "serve", "--config", str(folder / "gateway.yaml")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        port = json.loads(process.stderr.readline())["port"]  # type: ignore[union-attr]
        callers = [Caller(port, secret) for _ in range(4)]
        for each in callers:
            each.start()
        time.sleep(seconds)
        process.kill()
        for each in callers:
            each.join(10)
    return sum(each.answered for each in callers)


def minted(folder: Path) -> dict[str, Any]:
    made = clinic_gateway(
        "keys", "create", "--name", "x", "--level", "FULL", "--permission", "STOCK_READ",
        "--limit", "1000000", "--json", "--config", str(folder / "gateway.yaml"),
    )  # fmt: skip
    key: dict[str, Any] = json.loads(made.stdout)
    return key


def entries(folder: Path) -> Iterator[bytes]:
    for file in (folder / "audit").glob("*.jsonl"):
        yield from (line for line in file.read_bytes().split(b"\n") if b'"list_stock"' in line)


@pytest.mark.long
async def test_a_kill_is_no_alarm_and_costs_a_moment_of_reads_at_most(folder: Path) -> None:
    key = await asyncio.to_thread(minted, folder)
    answered = 0
    for seconds in (1.6, 0.7):
        answered += await asyncio.to_thread(killed_while_it_serves, folder, key["key"], seconds)
    done = await asked(folder, "verify", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["sound"]) == (0, True), told
    assert [each["state"] for each in told["chains"]] == ["ended", "ended", "cut off", "cut off"]
    written = len(list(entries(folder)))
    assert 0 < written <= answered + 8
    # a line that the kill has cut is told; it takes nothing from the lines before it
    newest = max((folder / "audit").glob("*.jsonl"), key=lambda file: file.stat().st_mtime)
    head = json.loads(newest.read_bytes().splitlines()[-1])["seq"]
    with newest.open("ab") as file:
        file.write(b'{"seq":%d,"time":"2026-11-21T' % (head + 1))
    done = await asked(folder, "verify")
    assert done.returncode == 0
    assert f"note: {newest}:{head + 1}: the last line was cut off" in done.stdout
    last = json.loads((await asked(folder, "key", key["id"], "--json")).stdout)
    assert sum(each["times"] for each in last["calls"]) == written


def test_of_chains_that_are_elsewhere_it_is_said_what_to_do() -> None:
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    chain = Known(
        id="c",
        place="p",
        host="x",
        begun=begun,
        head=ChainHead(),
        ended=False,
        dropped=None,
        base=ChainHead(),
        base_seal="",
    )

    for host, said in (
        (
            socket.gethostname(),
            "the chains of p belong to another audit folder on this machine: run `audit verify`"
            " with that gateway's configuration. If the folder is gone, restore it",
        ),
        ("x", "the chains of p are on another machine (x): run `audit verify` there"),
    ):
        report = AuditReport([], [replace(chain, host=host)])
        assert list(lines_of(report))[-1] == f"note: {said}"
