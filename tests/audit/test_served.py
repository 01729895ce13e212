"""A gateway whose audit cannot be written, as its partners and its operators see it."""

import asyncio
import errno
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from adapters.base import Draft, Record, SlotTaken
from gateway.assembly.answering import probe_audit
from gateway.audit import buffer as buffering
from gateway.audit.buffer import Writer
from gateway.audit.chains import Chains
from gateway.audit.entries import ChainHead, Entry, Mark
from gateway.contract.resources import APPOINTMENT
from gateway.purposes import NotReady
from gateway.settings import AuditSettings
from gateway.store import StoreError
from tests.conftest import Begin, RunningGateway, Template
from tests.partner import Partner
from tests.readiness import forget_answers
from tests.small_disk import fill, mounted
from tests.waiting import until
from tests.world import SOME_ID, World, record_of

DRAFT = {
    "clientId": SOME_ID, "patientId": SOME_ID, "vetId": SOME_ID,
    "scheduledAt": "2099-01-01T09:00:00Z",
}  # fmt: skip


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffering, "EVERY", 0.02)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", 4) as folder:
        yield folder


async def ready(gateway: RunningGateway, session: aiohttp.ClientSession) -> tuple[int, Any]:
    """What /readyz says now, and of the audit."""
    forget_answers(gateway.gateway)
    async with session.get(f"{gateway.operations}/readyz") as response:
        return response.status, (await response.json())["parts"]["audit"]


async def figure(gateway: RunningGateway, session: aiohttp.ClientSession, name: str) -> float:
    async with session.get(f"{gateway.operations}/metrics") as response:
        found = re.search(rf"^{re.escape(name)} (.+)$", await response.text(), re.MULTILINE)
    assert found is not None
    return float(found[1])


async def test_on_a_full_disk_nothing_is_booked_and_reads_go_on_until_there_is_room(
    small_disk: Path,
    template: Template,
    partner_of: Begin,
    session: aiohttp.ClientSession,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    booked: list[Draft] = []

    def create(draft: Draft) -> Record:
        booked.append(draft)
        return record_of(APPOINTMENT) | {"id": str(uuid4())}

    monkeypatch.setattr(buffering, "MOST_WAITING", 12)
    world = World(create=create)
    shutil.copytree(template.folder / "audit", small_disk / "audit")
    partner = await partner_of(world, audit=AuditSettings(folder=small_disk / "audit"))
    gateway = partner.gateway
    assert (await partner.post("/appointments", DRAFT)).status == 201
    fill(small_disk)
    booked.clear()
    # the very first one that finds the disk full is not sent either
    for _ in range(3):
        answer = await partner.post("/appointments", DRAFT)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert booked == []
    status, part = await ready(gateway, session)
    assert (status, part["ready"]) == (503, False)
    place = re.escape(str(small_disk / "audit"))
    why = f"{place}: the disk is full"
    said = f"the audit cannot be written: {why}; (1 entry waits|[0-9]+ entries wait)"
    assert re.fullmatch(said, part["reason"])
    assert await figure(gateway, session, 'gateway_log_writable{log="audit"}') == 0
    asked = len(world.asked)
    # what the last page of the file has room for is still written, whenever that is tried
    statuses = [(await partner.get(f"/clients/{SOME_ID}")).status for _ in range(40)]
    read = statuses.count(200)
    assert (set(statuses), statuses[0], statuses[-1]) == ({200, 503}, 200, 503)
    # what cannot be noted is not even asked of the practice system
    assert len(world.asked) == asked + read
    (small_disk / "filler").unlink()
    await gateway.gateway.public.runner.server.request_handler.observers.flush()
    assert (await ready(gateway, session))[1] == {"ready": True, "for": ["reads", "bookings"]}
    assert await figure(gateway, session, 'gateway_log_writable{log="audit"}') == 1
    assert (await partner.get(f"/clients/{SOME_ID}")).status == 200
    assert (await partner.post("/appointments", DRAFT)).status == 201
    await gateway.gateway.aclose()
    events = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    [failed] = [each for each in events if "the audit cannot be" in each["event"]]
    assert re.fullmatch(why, failed["said"])
    assert "at" not in failed
    said_of_it = [each["event"] for each in events if "the audit" in each["event"]]
    # how many are lost is said with whatever can be written, and that may come in pieces
    lost = "entries of the audit are lost"
    assert lost in said_of_it
    assert [each for each in said_of_it if each != lost] == [
        "the audit cannot be written: bookings are refused, and reads soon",
        "the audit can be written again",
    ]
    text = b"".join(file.read_bytes() for file in (small_disk / "audit").glob("*.jsonl"))
    answered = [line for line in text.splitlines() if b'"outcome":"answered"' in line]
    assert sum(b"get_client" in line for line in answered) == read + 1


@pytest.mark.parametrize(("waiting", "told"), [(1, "1 entry waits"), (2, "2 entries wait")])
async def test_the_readiness_counts_what_waits_in_good_words(waiting: int, told: str) -> None:
    writer = SimpleNamespace(folder=Path("/a"))
    buffer = SimpleNamespace(
        broken="not a directory", waiting=waiting, is_full=False, writer=writer
    )
    journal: Any = SimpleNamespace(audit=buffer)
    with pytest.raises(NotReady, match=f"written: /a: not a directory; {told}$"):
        await probe_audit(journal)


class Failing:
    """Writes of the audit that fail as long as `fails` is so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fails = False
        write = Writer.write

        def failing(writer: Writer, lines: Sequence[Entry | Mark], now: Any) -> ChainHead:
            if self.fails:
                raise OSError(errno.EROFS, "Read-only file system")
            return write(writer, lines, now)

        monkeypatch.setattr(Writer, "write", failing)


async def test_a_booking_whose_entry_cannot_be_written_is_told_when_it_can(
    partner_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Failing(monkeypatch)
    made = 0

    def create(draft: Draft) -> Record:
        nonlocal made
        made += 1
        disk.fails = True
        return record_of(APPOINTMENT)

    partner = await partner_of(World(create=create))
    lost = await partner.post("/appointments", DRAFT, Idempotency_Key="once")
    assert (lost.status, lost.data["message"]) == (
        504,
        "Booking outcome unknown. Ask again with the same Idempotency-Key.",
    )
    again = await partner.post("/appointments", DRAFT, Idempotency_Key="once")
    assert again.status == 503
    disk.fails = False
    await partner.gateway.gateway.public.runner.server.request_handler.observers.flush()
    told = await partner.post("/appointments", DRAFT, Idempotency_Key="once")
    assert (told.status, told.headers["Idempotent-Replayed"]) == (201, "true")
    assert made == 1
    # an entry of a call that is not a 201 is written once its answer has gone, perhaps after others
    await until(lambda: len(ends(partner)) == 3)
    assert set(ends(partner)) == {
        ("unknown", "BookingUnknown"), ("failed", "Unavailable"), ("answered", None)
    }  # fmt: skip


async def test_without_an_idempotency_key_such_a_booking_is_told_to_the_same_request(
    partner_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Failing(monkeypatch)
    made = 0

    def create(draft: Draft) -> Record:
        nonlocal made
        if made:
            raise SlotTaken
        made += 1
        disk.fails = True
        return record_of(APPOINTMENT)

    partner = await partner_of(World(create=create))
    answer = await partner.post("/appointments", DRAFT)
    assert answer.status == 504
    assert answer.data["message"] == "Booking outcome unknown. Check before booking again."
    disk.fails = False
    await partner.gateway.gateway.public.runner.server.request_handler.observers.flush()
    told = await partner.post("/appointments", DRAFT)
    assert (told.status, told.data["id"]) == (201, record_of(APPOINTMENT)["id"])
    # once: asked for again it is another one, and the time is taken
    assert (await partner.post("/appointments", DRAFT)).status == 409
    # an answer may be gone, and what was noted before it written, before its call ends
    await until(lambda: {each for each, _ in ends(partner)} == {"unknown", "answered", "refused"})


def ends(partner: Partner) -> list[tuple[str, str | None]]:
    """How each call ended, and why, as the audit has it."""
    entries = partner.gateway.entries()
    return [(each["outcome"], each["reason"]) for each in entries if each["outcome"] != "begun"]


async def test_no_201_leaves_before_its_entry_is_on_disk(
    partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bytes] = []
    sync = os.fdatasync

    def noticed(file: int) -> None:
        sync(file)
        audit = partner.gateway.folder / "audit"
        synced[:] = [each.read_bytes() for each in audit.glob("*.jsonl")]

    monkeypatch.setattr(os, "fdatasync", noticed)
    answer = await partner.post("/appointments", await partner.draft())
    assert answer.status == 201
    request = f'"requestId":"{answer.headers["X-Request-Id"]}"'.encode()
    [line] = [
        line
        for data in synced
        for line in data.splitlines()
        if request in line and b'"outcome":"answered"' in line
    ]
    assert answer.data["id"].encode() in line


async def test_the_store_is_told_at_once_of_the_audit_of_a_booking(
    partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.audit.journal.RECORD_EVERY", 60.0)
    recorded: list[ChainHead] = []

    async def record(_: object, chain: str, head: ChainHead, *__: object, **___: object) -> None:
        recorded.append(head)

    monkeypatch.setattr(Chains, "record", record)
    for _ in range(2):
        answer = await partner.post("/appointments", await partner.draft())
        assert answer.status == 201
        request = answer.headers["X-Request-Id"].encode()
        files = [each.read_bytes() for each in (partner.gateway.folder / "audit").glob("*.jsonl")]
        [lines] = [data.count(b"\n") for data in files if request in data]
        for _ in range(100):
            if recorded and recorded[-1].seq >= lines:
                break
            await asyncio.sleep(0.01)
        assert recorded[-1].seq >= lines


async def test_a_store_that_takes_no_head_is_told_and_stops_no_call(
    partner: Partner, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = partner.gateway.gateway.public.runner.server.request_handler.observers.journal

    async def broken(*_: object, **__: object) -> None:
        raise StoreError("gone")

    monkeypatch.setattr(Chains, "record", broken)
    monkeypatch.setattr("gateway.audit.journal.RECORD_EVERY", 0.01)
    assert (await partner.get("/stock")).status == 200
    await journal.flush()
    await until(lambda: journal.recorder.failing)
    status, part = await ready(partner.gateway, session)
    assert (status, part) == (
        200,
        {"ready": True, "for": ["reads", "bookings"], "head": "not recorded in the store"},
    )
