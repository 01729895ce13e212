"""The usage of the keys that call a running gateway."""

import asyncio
import json
import shutil
import socket
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from adapters.base import BackendUnavailable, Query, Record
from gateway.keys.secret import digest, mint
from gateway.store import open_store
from gateway.usage import CallSums, answered
from tests.conftest import Begin, RunningGateway
from tests.partner import Partner
from tests.usage.test_usage import EVER, by_minute
from tests.waiting import until
from tests.web.test_observers import flush
from tests.world import SOME_ID, World, nobody


async def used(folder: Path, key_id: str) -> dict[str, CallSums]:
    """Operation -> a key's calls without their times, as another process reads them in a folder."""
    store = open_store(folder / "gateway.db")
    found: dict[str, CallSums] = {}
    for (_, operation), sums in (await by_minute(store, key_id)).items():
        assert sums.micros > 0, "each call takes its time"
        sums.micros = 0
        found.setdefault(operation, CallSums()).add(sums)
    await store.aclose()
    return found


def fails(query: Query) -> Record:
    raise BackendUnavailable("down")


async def test_each_call_of_a_key_is_counted_by_how_it_ended(partner_of: Begin) -> None:
    world = World()
    partner = await partner_of(world)
    narrow = await partner.with_key(permissions=["CLIENT_READ"])
    limited = await partner.with_key(limit=1)
    statuses = []

    async def call(who: Partner, path: str, one: Callable[[Query], Record] | None = None) -> None:
        world.one = one
        statuses.append((await who.get(path)).status)

    for _ in range(3):
        await call(partner, f"/clients/{SOME_ID}")
    await call(partner, f"/clients/{SOME_ID}", nobody)
    await call(partner, f"/clients/{SOME_ID}", fails)
    await call(partner, "/clients?limit=none")
    await call(partner, "/nowhere")
    await call(narrow, f"/clients/{SOME_ID}")
    await call(narrow, "/stock")
    await call(limited, "/stock")
    await call(limited, "/stock")
    await call(partner.anonymous(), "/stock")
    await call(partner.as_key("vk_none"), "/stock")
    assert statuses == [200, 200, 200, 404, 503, 400, 404, 200, 403, 200, 429, 401, 401]
    running = partner.gateway.gateway
    await running.usage.turn()
    folder = partner.gateway.folder
    assert await used(folder, partner._key_id) == {
        "get_client": CallSums(answered=3, refused=1, failed=1),
        "list_clients": CallSums(refused=1),
        "other": CallSums(refused=1),
    }
    assert await used(folder, narrow._key_id) == {
        "get_client": CallSums(answered=1), "list_stock": CallSums(forbidden=1)
    }  # fmt: skip
    assert await used(folder, limited._key_id) == {"list_stock": CallSums(answered=1, limited=1)}
    assert dict(await answered(running.store, EVER)) == {
        (partner._key_id, "get_client"): 3,
        (narrow._key_id, "get_client"): 1,
        (limited._key_id, "list_stock"): 1,
    }


async def test_a_kill_loses_the_last_minute_at_most(partner: Partner, tmp_path: Path) -> None:
    await partner.get("/stock")
    await partner.gateway.gateway.usage.turn()
    await partner.get("/stock")
    # what lies on the disk at this moment is what a kill leaves
    left = Path(shutil.copytree(partner.gateway.folder, tmp_path / "left"))
    assert await used(left, partner._key_id) == {"list_stock": CallSums(answered=1)}


async def test_a_restart_goes_on_with_what_was_counted(partner: Partner) -> None:
    gateway = partner.gateway
    for _ in range(2):
        await partner.get("/stock")
    await gateway.gateway.aclose()
    assert await used(gateway.folder, partner._key_id) == {"list_stock": CallSums(answered=2)}


async def test_a_store_that_others_write_holds_up_no_call_and_loses_none(
    partner: Partner, running_gateway: RunningGateway
) -> None:
    await partner.get("/stock")
    usage = running_gateway.gateway.usage
    with closing(sqlite3.connect(running_gateway.folder / "gateway.db")) as other:
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        turning = asyncio.create_task(usage.turn())
        for _ in range(5):
            assert (await partner.get("/stock")).status == 200
        assert not turning.done()
    await turning
    await usage.turn()
    used_now = await used(running_gateway.folder, partner._key_id)
    assert used_now == {"list_stock": CallSums(answered=6)}


async def test_a_secret_that_opens_nothing_any_more_counts_for_its_key_and_is_told_like_any_other(
    partner: Partner,
) -> None:
    gateway = partner.gateway.gateway
    revoked, rotated = await partner.with_key(), await partner.with_key()
    soon = datetime.now(UTC) + timedelta(seconds=0.2)
    expired = await partner.with_key(expires=soon.isoformat())
    await gateway.keys.revoke(revoked._key_id, datetime.now(UTC))
    await gateway.keys.rotate(rotated._key_id, timedelta(0), datetime.now(UTC))
    await gateway.ring.refresh()
    await asyncio.sleep((soon - datetime.now(UTC)).total_seconds())
    told = {}
    for name, caller in (
        ("unknown", partner.as_key(mint())),
        ("revoked", revoked),
        ("rotated", rotated),
        ("expired", expired),
    ):
        answer = await caller.send("GET", "/stock", headers={"X-Request-Id": "the-same"})
        headers = sorted(each for each in answer.headers.items() if each[0] != "Date")
        told[name] = (answer.status, answer.text, headers)
    assert set(map(repr, told.values())) == {repr(told["unknown"])}
    assert told["unknown"][0] == 401
    await flush(partner)
    await gateway.usage.turn()
    for each in (revoked, rotated, expired):
        found = await used(partner.gateway.folder, each._key_id)
        assert found == {"list_stock": CallSums(unauthorized=1)}
    logged = [json.loads(line) for line in partner.gateway.lines("access.jsonl")]
    said = [*logged, *partner.gateway.entries()]
    assert len(said) == 8
    assert {each["keyId"] for each in said} == {None}


async def test_whose_secret_it_was_is_looked_up_once_the_answer_has_gone(partner: Partner) -> None:
    observers = partner.gateway.gateway.public.runner.server.request_handler.observers
    looked = []

    def slowly(secret: bytes) -> str:
        time.sleep(0.5)
        looked.append(secret)
        return ""

    observers.owner_of = slowly

    def ask() -> float:
        with socket.create_connection(("127.0.0.1", partner.gateway.gateway.public.port)) as raw:
            began = time.monotonic()
            raw.sendall(b"GET /api/v1/stock HTTP/1.1\r\nHost: x\r\nX-API-Key: vk_none\r\n\r\n")
            assert raw.recv(20).startswith(b"HTTP/1.1 401")
            return time.monotonic() - began

    assert await asyncio.to_thread(ask) < 0.4
    await until(lambda: looked)
    assert looked == [digest("vk_none")]
