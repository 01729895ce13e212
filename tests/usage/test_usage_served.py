"""The usage of the keys that call a running gateway."""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from adapters.base import BackendUnavailable, Query, Record
from gateway.store import open_store
from gateway.usage.store import Sums, answered, by_minute
from tests.conftest import Begin, RunningGateway
from tests.partner import Partner
from tests.usage.test_usage import EVER
from tests.world import SOME_ID, World, nobody


async def used(folder: Path, key_id: str) -> dict[str, Sums]:
    """Operation -> a key's calls, as another process reads them in a state folder."""
    store = open_store(folder / "gateway.db")
    found: dict[str, Sums] = {}
    for (_, operation), sums in (await by_minute(store, key_id, EVER)).items():
        found.setdefault(operation, Sums()).add(sums)
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
        "get_client": Sums(answered=3, refused=1, failed=1),
        "list_clients": Sums(refused=1),
        "other": Sums(refused=1),
    }
    assert await used(folder, narrow._key_id) == {
        "get_client": Sums(answered=1), "list_stock": Sums(forbidden=1)
    }  # fmt: skip
    assert await used(folder, limited._key_id) == {"list_stock": Sums(answered=1, limited=1)}
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
    assert await used(left, partner._key_id) == {"list_stock": Sums(answered=1)}


async def test_a_restart_goes_on_with_what_was_counted(partner: Partner) -> None:
    gateway = partner.gateway
    for _ in range(2):
        await partner.get("/stock")
    await gateway.gateway.aclose()
    assert await used(gateway.folder, partner._key_id) == {"list_stock": Sums(answered=2)}


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
    assert used_now == {"list_stock": Sums(answered=6)}
