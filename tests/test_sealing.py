import asyncio
from pathlib import Path

import pytest
from pydantic import SecretStr

from adapters.base import BackendUnavailable
from gateway.sealing import BELIEVED, FILE, META, TOLD, UNASKED, StoredIds, sealing_secret
from gateway.settings import BackendSettings, Settings, StartRefused, load_settings
from gateway.store import Store, StoreError, open_store
from gateway.store.base import BoundedStore


class Shelf:
    """The store's shelf, in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def meta(self, name: str) -> str | None:
        return self.kept.get(name)

    async def set_meta_once(self, name: str, value: str) -> str:
        return self.kept.setdefault(name, value)


def settings(tmp_path: Path, **backend: object) -> Settings:
    loaded = load_settings(None, {})
    return loaded.model_copy(update={"state": tmp_path, "backend": BackendSettings(**backend)})


async def test_it_is_made_once_and_read_by_its_owner_alone(tmp_path: Path) -> None:
    shelf = Shelf()
    first = await sealing_secret(settings(tmp_path), shelf)
    assert len(first) == 32
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    assert await sealing_secret(settings(tmp_path), shelf) == first
    assert first.hex() not in shelf.kept[META]


async def test_another_one_is_refused_since_every_public_id_would_change(tmp_path: Path) -> None:
    shelf = Shelf()
    await sealing_secret(settings(tmp_path), shelf)
    other = settings(tmp_path, secret=SecretStr("ab" * 32))
    with pytest.raises(StartRefused, match="every public id would change"):
        await sealing_secret(other, shelf)


@pytest.mark.parametrize("kept", ["", "0" * 32, "é", "\ud800"])
async def test_a_fingerprint_of_no_secret_is_refused(tmp_path: Path, kept: str) -> None:
    shelf = Shelf()
    await sealing_secret(settings(tmp_path), shelf)
    shelf.kept[META] = kept
    with pytest.raises(StartRefused, match="every public id would change"):
        await sealing_secret(settings(tmp_path), shelf)


async def test_one_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    shelf = Shelf()
    await sealing_secret(settings(tmp_path), shelf)
    (tmp_path / FILE).unlink()
    with pytest.raises(StartRefused, match=r"is gone.*put the file back"):
        await sealing_secret(settings(tmp_path), shelf)
    assert not (tmp_path / FILE).exists()


async def test_the_same_secret_may_come_from_anywhere(tmp_path: Path) -> None:
    shelf = Shelf()
    file = tmp_path / "elsewhere"
    file.touch(mode=0o600)
    file.write_text("AB" * 32 + "\n")
    given = await sealing_secret(settings(tmp_path, secret_file=file), shelf)
    assert given == await sealing_secret(settings(tmp_path, secret=SecretStr("ab" * 32)), shelf)


@pytest.mark.parametrize(
    ("content", "mode", "problem"),
    [
        ("ab" * 32, 0o644, "chmod 600"),
        ("ab" * 32, 0o660, "chmod 600"),
        ("ab" * 31, 0o600, "must be 64 hexadecimal digits"),
        ("é", 0o600, "it is no ascii text"),
        (None, 0o600, "no such file"),
    ],
)
async def test_a_file_that_is_open_or_broken_is_refused(
    tmp_path: Path, content: str | None, mode: int, problem: str
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_text(content)
        file.chmod(mode)
    with pytest.raises(StartRefused, match=problem) as raised:
        await sealing_secret(settings(tmp_path, secret_file=file), Shelf())
    assert str(content) not in str(raised.value)


async def test_its_fingerprint_rests_in_the_store(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/gateway.db")
    await store.migrate()
    await sealing_secret(settings(tmp_path), store)
    assert len(await store.meta(META) or "") == 32
    await store.aclose()


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


async def test_once_ids_are_announced_no_process_believes_that_there_are_none(
    store_place: str,
) -> None:
    stores = [open_store(store_place) for _ in range(2)]
    one, other = map(StoredIds, stores)
    assert not await one.may_hold("clients")
    assert not await other.may_hold("clients")
    before = asyncio.get_running_loop().time()
    await one.announce("clients")
    # not before the other asks anew: until then it believes what it was told
    assert asyncio.get_running_loop().time() - before > BELIEVED
    assert await other.may_hold("clients")
    assert not await other.may_hold("vets")
    before = asyncio.get_running_loop().time()
    await one.announce("clients")
    assert asyncio.get_running_loop().time() - before < BELIEVED
    for each in stores:
        await each.aclose()


async def test_ids_that_an_older_version_kept_count_as_announced(store: Store) -> None:
    await StoredIds(store).remember("clients", {"a": '["x"]'})
    assert await StoredIds(store).may_hold("clients")
    assert await StoredIds(store).may_hold("clients")
    assert not await StoredIds(store).may_hold("patients")


async def test_the_store_is_asked_seldom_whether_ids_are_kept_and_may_fail_for_a_while(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, asked, fails = [0.0], [0], [False]

    async def rows(self: BoundedStore, statement: object) -> object:
        asked[0] += 1
        if fails[0]:
            raise StoreError("the store does not answer")
        return await store.rows(statement)

    monkeypatch.setattr(BoundedStore, "rows", rows)
    ids = StoredIds(store, lambda: now[0])
    assert not await ids.may_hold("clients")
    asked[0] = 0
    for _ in range(50):
        assert not await ids.may_hold("clients")
        now[0] += BELIEVED / 10
    assert asked[0] <= 5
    fails[0], now[0] = True, now[0] + UNASKED / 2
    assert not await ids.may_hold("clients")
    now[0] += UNASKED
    with pytest.raises(BackendUnavailable, match="public ids cannot be looked up"):
        await ids.may_hold("clients")


async def test_who_shows_ids_alone_waits_for_nobody_to_learn_of_them(store: Store) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await StoredIds(store, is_alone=True).announce("clients")
    alone = loop.time() - began
    began = loop.time()
    await StoredIds(store).announce("patients")
    assert loop.time() - began >= TOLD
    assert alone < TOLD
