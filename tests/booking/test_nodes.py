"""Two gateways on one ledger: one is killed before it answers, the other tells what it booked."""

import asyncio
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp

from tests.command import serving
from tests.races.practice import ZONE, at, practice, working_days
from tests.races.rush import public_ids, state_folders

# who is silent is taken for dead sooner than in earnest
SOONER = """
import gateway.booking.takeover as owners
owners.SILENCE, owners.BEAT, owners.LOOK = 2.0, 0.2, 0.2
"""
DIES = f"""{SOONER}
import os
from adapters.sql.adapter import SqlAdapter
async def dying(self, draft, book=SqlAdapter.create_appointment, kill=os.kill, me=os.getpid()):
    await book(self, draft)
    kill(me, 9)
SqlAdapter.create_appointment = dying
"""


async def test_what_a_node_booked_before_it_was_killed_another_one_tells(tmp_path: Path) -> None:
    with practice("sqlite", tmp_path) as made:
        secret = await state_folders(made, tmp_path)
        ids = await public_ids(made, tmp_path)
        for name in ("one", "two"):
            file = tmp_path / name / "gateway.yaml"
            shared = f"store: sqlite:///{tmp_path}/one/gateway.db\n"
            file.write_text(shared + file.read_text())
        nodes = [
            serving("serve", "--config", str(tmp_path / name / "gateway.yaml"), spoilt=spoilt)
            for name, spoilt in (("one", DIES), ("two", SOONER))
        ]
        try:
            ports = [json.loads(each.stderr.readline())["port"] for each in nodes]
            headers = {"X-API-Key": secret, "Idempotency-Key": "once"}
            async with aiohttp.ClientSession(headers=headers) as session:
                body = wish(ids)
                assert (await told(session, ports[0], body))[0] is None
                status, replayed, record = await told(session, ports[1], body)
                until = time.monotonic() + 25
                while status == 503 and time.monotonic() < until:
                    await asyncio.sleep(0.5)
                    status, replayed, record = await told(session, ports[1], body)
            assert (status, replayed) == (201, "true")
            [[count]] = await made.run("SELECT COUNT(*) FROM appointment WHERE note = 'node'")
            assert count == 1
            assert record["reason"] == "node"
        finally:
            for each in nodes:
                each.terminate()
            for each in nodes:
                each.communicate()


def wish(ids: dict[tuple[str, int], str]) -> dict[str, Any]:
    day = working_days(1, datetime.now(UTC).date())[0]
    return {
        "clientId": ids["clients", 1],
        "patientId": ids["patients", 1],
        "vetId": ids["vets", 1],
        "appointmentTypeId": ids["appointmentTypes", 1],
        "scheduledAt": at(day, 9).replace(tzinfo=ZONE).isoformat(),
        "reason": "node",
    }


async def told(
    session: aiohttp.ClientSession, port: int, body: dict[str, Any]
) -> tuple[int | None, str | None, Any]:
    """The status, whether it is an old answer, and the record; no status where none came."""
    try:
        url = f"http://127.0.0.1:{port}/api/v1/appointments"
        async with session.post(url, json=body) as response:
            answer = await response.json()
            return response.status, response.headers.get("Idempotent-Replayed"), answer
    except aiohttp.ClientError:
        return None, None, {}
