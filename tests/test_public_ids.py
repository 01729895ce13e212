"""The store keeps which keys hashed ids stand for, for every process that uses it."""

import asyncio
from pathlib import Path

import pytest

from adapters.base import BackendUnavailable
from gateway.sealing import StoredIds
from gateway.store import Store, open_store


async def test_what_is_kept_is_found_again_by_its_resource(store: Store) -> None:
    ids = StoredIds(store)
    await ids.remember("stock", {"a": '["x"]', "b": '["y"]'})
    await ids.remember("stock", {"b": '["other"]', "c": '["z"]'})
    assert await StoredIds(store).find("stock", ["a", "b", "c", "d"]) == {
        "a": '["x"]',
        "b": '["y"]',
        "c": '["z"]',
    }
    assert await ids.find("clients", ["a"]) == {}


async def test_what_is_spelt_anew_takes_the_place_of_what_was_kept(store: Store) -> None:
    ids = StoredIds(store)
    await ids.remember("stock", {"a": '["x"]', "b": '["y"]'})
    await ids.respell("stock", {"a": '["x"]', "b": '["other"]', "c": '["z"]'})
    assert await StoredIds(store).find("stock", ["a", "b", "c"]) == {
        "a": '["x"]',
        "b": '["other"]',
        "c": '["z"]',
    }


async def test_many_may_keep_the_same_at_once(store: Store) -> None:
    keys = {str(number): f"[{number}]" for number in range(40)}
    await asyncio.gather(*(StoredIds(store).remember("stock", keys) for _ in range(8)))
    assert await StoredIds(store).find("stock", list(keys)) == keys


async def test_many_that_name_them_in_another_order_do_not_stop_each_other(
    store_place: str,
) -> None:
    stores = [open_store(store_place) for _ in range(4)]
    names = [f"{number:03}" for number in range(200)]

    async def keep(store: Store, order: list[str]) -> None:
        for turn in range(5):
            keys = {f"{turn}-{name}": f"[{name}]" for name in order}
            await StoredIds(store).remember("stock", keys)
            await StoredIds(store).respell("stock", dict.fromkeys(keys, "[0]"))

    orders = (names, names[::-1])
    await asyncio.gather(*(keep(each, orders[n % 2]) for n, each in enumerate(stores)))
    found = await StoredIds(stores[0]).find("stock", [f"4-{name}" for name in names])
    for each in stores:
        await each.aclose()
    assert set(found.values()) == {"[0]"}
    assert len(found) == 200


async def test_where_the_store_cannot_be_used_nothing_is_shown(tmp_path: Path) -> None:
    (tmp_path / "gateway.db").write_bytes(b"no database at all" * 100)
    broken = open_store(f"sqlite:///{tmp_path}/gateway.db")
    ids = StoredIds(broken)
    with pytest.raises(BackendUnavailable, match="public ids cannot be looked up"):
        await ids.remember("stock", {"a": "[1]"})
    with pytest.raises(BackendUnavailable, match="public ids cannot be looked up"):
        await ids.find("stock", ["a"])
    await broken.aclose()
