"""The store keeps which keys hashed ids stand for, for every process that uses it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.base import BackendUnavailable
from gateway.public_ids import StoredIds
from gateway.store import Store, open_store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/gateway.db")
    await opened.migrate()
    yield opened
    await opened.aclose()


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


async def test_where_the_store_cannot_be_used_nothing_is_shown(tmp_path: Path) -> None:
    (tmp_path / "gateway.db").write_bytes(b"no database at all" * 100)
    broken = open_store(f"sqlite:///{tmp_path}/gateway.db")
    ids = StoredIds(broken)
    with pytest.raises(BackendUnavailable, match="public ids cannot be looked up"):
        await ids.remember("stock", {"a": "[1]"})
    with pytest.raises(BackendUnavailable, match="public ids cannot be looked up"):
        await ids.find("stock", ["a"])
    await broken.aclose()
