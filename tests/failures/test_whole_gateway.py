"""The disk, the clock, and callers who leave: what a whole gateway makes of them."""

import asyncio
import json
import shutil
import sqlite3
from asyncio.sslproto import SSLProtocol
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import http_parser
from pydantic import SecretStr

from adapters.sample import MAPPING
from gateway.app import utc_now
from gateway.audit import buffer as buffering
from gateway.settings import AuditSettings, BackendSettings, StartRefused
from gateway.web.server import check_runtime
from tests.conftest import RunningGateway, Start, Template, begun
from tests.partner import Partner
from tests.readiness import forget_answers
from tests.small_disk import fill, mounted

HOUR = timedelta(hours=1)


async def parts(gateway: RunningGateway, session: aiohttp.ClientSession) -> dict[str, Any]:
    """What /readyz says now of each part."""
    forget_answers(gateway.gateway)
    async with session.get(f"{gateway.operations}/readyz") as answer:
        found: dict[str, Any] = (await answer.json())["parts"]
    return found


async def all_ready(gateway: RunningGateway, session: aiohttp.ClientSession) -> bool:
    return all(each["ready"] for each in (await parts(gateway, session)).values())


def states(store: sqlite3.Connection) -> list[str]:
    """Of the ledger's rows."""
    return [state for (state,) in store.execute("SELECT state FROM bookings")]


def appointments(clinic: Path) -> int:
    """How many the practice has."""
    with closing(sqlite3.connect(clinic)) as desk:
        return int(desk.execute("SELECT count(*) FROM RDV").fetchone()[0])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", 16) as folder:
        yield folder


async def test_on_a_disk_without_room_for_anything_reads_go_on_and_nothing_is_booked(
    small_disk: Path,
    tmp_path: Path,
    template: Template,
    session: aiohttp.ClientSession,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(buffering, "EVERY", 0.02)
    # the practice system has a disk of its own
    clinic = shutil.copy(template.folder / "clinic.db", tmp_path / "clinic.db")
    backend = BackendSettings(url=SecretStr(f"sqlite:///{clinic}"), mapping=MAPPING)
    async with begun(template, small_disk / "state", backend=backend) as gateway:
        partner = await Partner(gateway, session, None).with_key()
        draft, before = await partner.draft(), appointments(clinic)
        filler = fill(small_disk)
        capfd.readouterr()
        for number in range(30):
            answer = await partner.post("/appointments", draft, Idempotency_Key=f"full-{number}")
            assert answer.status == 503
            assert int(answer.headers["Retry-After"]) > 0
            assert (await partner.get("/clients", limit="1")).status == 200
        assert appointments(clinic) == before
        told = await parts(gateway, session)
        assert not told["audit"]["ready"]
        assert "has no room to grow: free some of its disk" in told["store"]["reason"]
        assert told["backend"]["ready"]
        said = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
        # none of it once per call
        assert 0 < len(said) <= 6
        assert len({each["event"] for each in said}) == len(said)
        filler.unlink()
        async with asyncio.timeout(10):
            while not await all_ready(gateway, session):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        answer = await partner.post("/appointments", draft, Idempotency_Key="full-0")
        assert (answer.status, "Idempotent-Replayed" in answer.headers) == (201, False)
        assert appointments(clinic) == before + 1


async def test_on_a_disk_without_room_for_the_ledger_only_what_stands_in_it_is_booked(
    small_disk: Path, tmp_path: Path, template: Template, session: aiohttp.ClientSession
) -> None:
    clinic = shutil.copy(template.folder / "clinic.db", tmp_path / "clinic.db")
    backend = BackendSettings(url=SecretStr(f"sqlite:///{clinic}"), mapping=MAPPING)
    audit = AuditSettings(folder=shutil.copytree(template.folder / "audit", tmp_path / "audit"))
    async with begun(template, small_disk / "state", backend=backend, audit=audit) as gateway:
        partner = await Partner(gateway, session, None).with_key()
        draft, before = await partner.draft(), appointments(clinic)
        day = {"vetId": draft["vetId"], "date": partner.local_day(draft["scheduledAt"])}
        free = (await partner.get("/appointments/available-slots", **day)).data
        filler = fill(small_disk)
        answers = [
            await partner.post("/appointments", draft | {"scheduledAt": each["startTime"]})
            for each in free
        ]
        statuses = [each.status for each in answers]
        assert set(statuses) <= {201, 409, 503}
        assert statuses[-1] == 503
        assert appointments(clinic) == before + statuses.count(201)
        assert (await partner.get("/clients", limit="1")).status == 200
        told = await parts(gateway, session)
        assert not told["store"]["ready"]
        assert told["audit"]["ready"]
        filler.unlink()
        async with asyncio.timeout(10):
            while not await all_ready(gateway, session):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        wanted = draft | {"scheduledAt": free[-1]["startTime"]}
        assert (await partner.post("/appointments", wanted)).status == 201


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
async def test_a_clock_that_is_set_by_an_hour_changes_no_limit_and_no_booking(
    start_gateway: Start, session: aiohttp.ClientSession, jump: timedelta
) -> None:
    ahead = [timedelta()]
    gateway = await start_gateway(now=lambda: utc_now() + ahead[0])
    partner = await Partner(gateway, session, None).with_key(limit=100)
    ends = (datetime.now(UTC) + HOUR / 2).isoformat()
    short = await Partner(gateway, session, None).with_key(expires=ends)
    draft = await partner.draft()
    made = await partner.post("/appointments", draft, Idempotency_Key="before")
    assert made.status == 201
    left, reset = (int(made.headers[f"X-RateLimit-{each}"]) for each in ("Remaining", "Reset"))

    ahead[0] = jump
    again = await partner.post("/appointments", draft, Idempotency_Key="before")
    assert (again.status, again.data["id"]) == (201, made.data["id"])
    assert again.headers["Idempotent-Replayed"] == "true"
    assert int(again.headers["X-RateLimit-Remaining"]) == left - 1
    assert reset - 5 <= int(again.headers["X-RateLimit-Reset"]) <= reset
    # a key ends by the clock, and is good again where the clock was wrong
    assert (await short.get("/stock")).status == (401 if jump > timedelta() else 200)
    assert await all_ready(gateway, session)
    await gateway.gateway.public.front.observers.flush()
    ahead[0] = timedelta()
    assert (await short.get("/stock")).status == 200
    taken = await partner.post("/appointments", draft)
    assert taken.status == 409
    await gateway.gateway.public.front.observers.flush()
    lines = [
        json.loads(line)
        for file in sorted((gateway.folder / "audit").glob("*.jsonl"))
        for line in file.read_bytes().splitlines()
    ]
    set_by = [each["seconds"] for each in lines if each.get("kind") == "clock"]
    assert [round(each / 3600) for each in set_by] == [jump // HOUR, -(jump // HOUR)]


async def test_a_booking_whose_caller_has_left_is_made_once_and_told_to_who_asks_again(
    start_gateway: Start, session: aiohttp.ClientSession
) -> None:
    gateway = await start_gateway()
    partner = await Partner(gateway, session, None).with_key()
    draft = await partner.draft()
    with (
        closing(sqlite3.connect(gateway.folder / "clinic.db", isolation_level=None)) as desk,
        closing(sqlite3.connect(gateway.folder / "gateway.db")) as store,
    ):
        desk.execute("BEGIN IMMEDIATE")
        call = asyncio.create_task(partner.post("/appointments", draft, Idempotency_Key="left"))
        async with asyncio.timeout(5):
            while states(store) != ["sent"]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await asyncio.sleep(0.1)
        desk.execute("ROLLBACK")
        again = await partner.post("/appointments", draft, Idempotency_Key="left")
        assert (again.status, again.headers["Idempotent-Replayed"]) == (201, "true")
        assert states(store) == ["done"]


def test_a_parser_written_in_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_runtime()
    monkeypatch.setattr(http_parser, "HttpRequestParser", http_parser.HttpRequestParserPy)
    with pytest.raises(StartRefused, match="without its C parser; install a binary wheel"):
        check_runtime()


def test_a_python_that_reads_as_much_as_it_likes_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_runtime()
    monkeypatch.delattr(SSLProtocol, "max_size")
    with pytest.raises(StartRefused, match="cannot be told how much to read at once"):
        check_runtime()
