"""Keys: secrets that can be checked and are never kept, a store, and a ring that follows it."""

import asyncio
import base64
import time
import zlib
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.contract.access import AccessLevel, Permission
from gateway.keys.key import Key
from gateway.keys.ring import (
    ASK_EVERY,
    BEHIND_AFTER,
    KNOWN_FOR,
    UNKNOWN_FOR,
    KeyRing,
    KeysBehind,
    KeysUnreadable,
)
from gateway.keys.secret import digest, hint, mint, well_formed
from gateway.keys.store import KeyStore, OddKey, UnknownKey
from gateway.store import Store, StoreError, open_store
from tests.heard import Heard

NOW = datetime(2026, 3, 4, 10, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def a_key(**more: Any) -> Key:
    settings: dict[str, Any] = {
        "name": "Insurer X",
        "permissions": frozenset({Permission.CLIENT_READ}),
        "level": AccessLevel.BASIC,
        "created_at": NOW,
    }
    return Key(**settings | more)


def kept_in(folder: Path) -> bytes:
    """Every byte of every file."""
    return b"".join(file.read_bytes() for file in folder.iterdir())


@pytest.fixture
async def file_store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store in a file: it shows from outside that something changed, and takes any value."""
    opened = open_store(f"sqlite:///{tmp_path}/gateway.db")
    await opened.migrate()
    yield opened
    await opened.aclose()


@pytest.fixture
async def ring(store: Store) -> AsyncIterator[KeyRing]:
    watcher = Heard()
    made = KeyRing(KeyStore(store), watcher)
    await made.refresh()
    yield made
    await made.aclose()
    assert watcher.said == []


def test_a_secret_is_32_random_bytes_and_their_checksum() -> None:
    secrets = {mint() for _ in range(200)}
    assert len(secrets) == 200
    for secret in secrets:
        body = base64.urlsafe_b64decode(secret.removeprefix("vk_"))
        assert len(secret) == 51
        assert len(body) == 36
        assert zlib.crc32(body[:32]).to_bytes(4) == body[32:]
        assert well_formed(secret)
        assert hint(secret) == secret[:8]


@given(place=st.integers(3, 50), other=st.characters(codec="ascii"))
def test_a_mistyped_secret_is_told_offline(place: int, other: str) -> None:
    secret = (
        "vk_" + base64.urlsafe_b64encode(bytes(32) + zlib.crc32(bytes(32)).to_bytes(4)).decode()
    )
    typed = secret[:place] + other + secret[place + 1 :]
    assert well_formed(typed) == (typed == secret)


async def test_a_new_key_is_found_by_its_secret_as_it_was_made(store: Store, ring: KeyRing) -> None:
    key = a_key(
        contact="it@example.org",
        scopes={"patients": AccessLevel.FULL},
        limit=7,
        expires_at=NOW + timedelta(days=1),
    )
    secret = await KeyStore(store).add(key)
    assert ring.find(digest(secret), NOW) is None
    await ring.refresh()
    assert ring.find(digest(secret), NOW) == key
    assert ring.find(digest(secret + "x"), NOW) is None
    assert key.level_for("patients") is AccessLevel.FULL
    assert key.level_for("clients") is AccessLevel.BASIC


async def test_a_change_and_a_revocation_reach_the_ring_with_the_next_refresh(
    store: Store, ring: KeyRing
) -> None:
    keys = KeyStore(store)
    key = a_key()
    secret = await keys.add(key)
    await keys.add(a_key())
    await ring.refresh()
    await keys.update(key.id, limit=5, level=AccessLevel.FULL)
    await ring.refresh()
    found = ring.find(digest(secret), NOW)
    assert found is not None
    assert (found.limit, found.level) == (5, AccessLevel.FULL)
    await keys.revoke(key.id, NOW)
    await ring.refresh()
    assert ring.find(digest(secret), NOW) is None
    assert len(ring) == 1


async def test_a_key_ends_at_its_date_not_after_it(store: Store, ring: KeyRing) -> None:
    secret = await KeyStore(store).add(a_key(expires_at=NOW))
    await ring.refresh()
    assert ring.find(digest(secret), NOW - SECOND) is not None
    assert ring.find(digest(secret), NOW) is None


async def test_a_rotated_key_has_both_secrets_for_the_overlap_and_then_the_new_one(
    store: Store, ring: KeyRing
) -> None:
    keys = KeyStore(store)
    key = a_key()
    old = await keys.add(key)
    new, _ = await keys.rotate(key.id, timedelta(hours=1), NOW)
    await ring.refresh()
    end = NOW + timedelta(hours=1)
    assert ring.find(digest(old), end - SECOND) == ring.find(digest(new), end - SECOND) == key
    assert ring.find(digest(old), end) is None
    assert ring.find(digest(new), end) == key
    newest, _ = await keys.rotate(key.id, timedelta(0), end)
    await ring.refresh()
    assert ring.find(digest(new), end) is None
    assert ring.find(digest(newest), end) == key


async def test_whose_a_secret_was_is_known_when_it_opens_nothing_any_more(
    store: Store, ring: KeyRing, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = KeyStore(store)
    made = [a_key(), a_key(), a_key(expires_at=NOW)]
    revoked, rotated, expired = [await keys.add(each) for each in made]
    await ring.refresh()
    await keys.revoke(made[0].id, NOW)
    await keys.rotate(made[1].id, timedelta(0), NOW)
    await ring.refresh()
    for secret, key in zip((revoked, rotated, expired), made, strict=True):
        assert ring.find(digest(secret), NOW) is None
        assert ring.owner_of(digest(secret)) == key.id
    assert ring.owner_of(digest(mint())) == ""
    begun = KeyRing(keys, Heard())
    await begun.refresh()
    assert begun.owner_of(digest(revoked)) == made[0].id, "after a restart too"
    monkeypatch.setattr("gateway.keys.ring.MOST_FORMER", 2)
    await keys.revoke(made[2].id, NOW)
    await ring.refresh()
    assert [ring.owner_of(digest(each)) for each in (revoked, expired)] == ["", made[2].id]
    assert len(ring._former) == 2


async def test_a_second_rotation_does_not_lengthen_the_life_of_the_first_secret(
    store: Store, ring: KeyRing
) -> None:
    keys = KeyStore(store)
    key = a_key()
    first = await keys.add(key)
    await keys.rotate(key.id, timedelta(hours=1), NOW)
    await keys.rotate(key.id, timedelta(days=1), NOW)
    await ring.refresh()
    assert ring.find(digest(first), NOW + timedelta(minutes=59)) == key
    assert ring.find(digest(first), NOW + timedelta(hours=1)) is None


async def test_a_secret_that_could_not_be_told_is_not_made(
    store: Store, ring: KeyRing, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = KeyStore(store)
    key = a_key()
    old = await keys.add(key)
    with monkeypatch.context() as broken:
        broken.setattr("gateway.keys.store._add_secret", None)
        with pytest.raises(TypeError):
            await keys.rotate(key.id, timedelta(0), NOW)
    await ring.refresh()
    assert ring.find(digest(old), NOW + timedelta(days=1)) is not None


async def test_what_nobody_knows_is_said(store: Store) -> None:
    keys = KeyStore(store)
    for work in (keys.show("x"), keys.update("x", limit=1), keys.revoke("x", NOW)):
        with pytest.raises(UnknownKey):
            await work
    with pytest.raises(UnknownKey):
        await keys.rotate("x", timedelta(0), NOW)


async def test_the_time_of_last_use_is_written_and_is_no_change_to_follow(
    store: Store, ring: KeyRing
) -> None:
    keys = KeyStore(store)
    key = a_key()
    await keys.add(key)
    before = (await keys.changes(0))[0]
    ring.touch(key.id, NOW)
    await ring.save()
    assert (await keys.show(key.id)).key.last_used_at == NOW
    assert await keys.changes(before) == (before, {})


async def test_a_ring_that_follows_writes_the_times_of_last_use_now_and_then(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.keys.ring.POLL", 0.001)
    monkeypatch.setattr("gateway.keys.ring.SAVE_EVERY", 3)
    writes: list[dict[str, datetime]] = []
    written = asyncio.Event()

    class Watched(KeyStore):
        async def save_last_used(self, used: Mapping[str, datetime]) -> None:
            writes.append(dict(used))
            written.set()
            await super().save_last_used(used)

    keys = Watched(store)
    key = a_key()
    await keys.add(key)
    ring = KeyRing(keys, Heard())
    await ring.start()
    ring.touch(key.id, NOW)
    async with asyncio.timeout(10):
        await written.wait()
    await ring.aclose()
    assert writes[0] == {key.id: NOW}
    assert (await keys.show(key.id)).key.last_used_at == NOW


async def test_no_secret_rests_in_the_store(tmp_path: Path) -> None:
    opened = open_store(f"sqlite:///{tmp_path}/gateway.db")
    await opened.migrate()
    keys = KeyStore(opened)
    key = a_key()
    secrets = [await keys.add(key), (await keys.rotate(key.id, timedelta(hours=1), NOW))[0]]
    await opened.aclose()
    kept = kept_in(tmp_path)
    for secret in secrets:
        assert secret.encode() not in kept
        assert secret[3:].encode() not in kept
        assert base64.urlsafe_b64decode(secret[3:])[:32] not in kept
        assert digest(secret) in kept


async def test_a_look_up_asks_no_database_and_costs_the_same_for_many_keys(
    store: Store, ring: KeyRing
) -> None:
    keys = KeyStore(store)
    secret = await keys.add(a_key())
    await ring.refresh()
    await store.aclose()
    assert ring.find(digest(secret), NOW) is not None
    assert time.monotonic() > 0


async def test_while_the_store_cannot_be_read_only_known_keys_go_on_and_for_a_minute(
    store: Store,
) -> None:
    clock = [0.0]
    keys = KeyStore(store)
    known, revoked = await keys.add(a_key()), a_key()
    gone = await keys.add(revoked)
    await keys.revoke(revoked.id, NOW)
    ring = KeyRing(keys, Heard(), lambda: clock[0])
    await ring.refresh()
    strangers = [digest(gone), digest(mint())]
    clock[0] = UNKNOWN_FOR
    assert [ring.find(each, NOW, settled=True) for each in strangers] == [None, None]
    clock[0] += 0.1
    for each in strangers:
        with pytest.raises(KeysUnreadable):
            ring.find(each, NOW, settled=True)
    assert ring.find(digest(known), NOW, settled=True) is not None
    clock[0] = KNOWN_FOR + 0.1
    with pytest.raises(KeysUnreadable):
        ring.find(digest(known), NOW, settled=True)
    await ring.refresh()
    assert ring.age == 0
    assert ring.find(digest(mint()), NOW, settled=True) is None


async def test_a_store_that_looks_untouched_is_asked_now_and_then_and_a_change_seen_at_once(
    file_store: Store,
) -> None:
    asked = 0

    class Counted(KeyStore):
        async def changes(self, since: int) -> Any:
            nonlocal asked
            asked += 1
            return await super().changes(since)

    clock = [0.0]
    keys = Counted(file_store)
    ring = KeyRing(keys, Heard(), lambda: clock[0])
    await ring.refresh()
    for turn in range(1, 10):
        clock[0] = float(turn)
        await ring._follow()
        assert ring.age == 0  # it is known to be as the store is
    assert asked == 2 + 9 // ASK_EVERY  # the first time nothing was known of the file
    key = a_key()
    secret = await keys.add(key)
    await ring._follow()
    assert ring.find(digest(secret), NOW) == key
    await ring.aclose()


async def test_an_outage_is_said_once_and_so_is_its_end(
    file_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.keys.ring.POLL", 0.001)
    asked = asyncio.Event()
    broken = True

    class Flaky(KeyStore):
        async def changes(self, since: int) -> Any:
            asked.set()
            if broken and since >= 0 and started:
                raise StoreError("away")
            return await super().changes(since)

    started = False
    watcher = Heard()
    ring = KeyRing(Flaky(file_store), watcher)
    await ring.start()
    while ring._mark is None:  # noqa: ASYNC110 - the file looks untouched from here on
        await asyncio.sleep(0.001)
    started = True
    async with asyncio.timeout(10):
        await watcher.more.wait()
        for _ in range(20):
            asked.clear()
            await asked.wait()
        assert watcher.said == ["keys_unreadable: away"]
        watcher.more.clear()
        broken = False
        await watcher.more.wait()
        for _ in range(5):
            asked.clear()
            await asked.wait()
    await ring.aclose()
    assert watcher.said == ["keys_unreadable: away", "keys_readable"]


@pytest.mark.parametrize(
    "damage",
    [
        "hourly_limit = 'abc'",
        "hourly_limit = -5",
        "hourly_limit = 3.5",
        "name = X'00FF'",
        "contact = X'00FF'",
        """scopes = '{"clints": "BASIC"}'""",
        "scopes = '[1]'",
        """permissions = '["record:burn"]'""",
        "permissions = 'x'",
        "level = 'GODLIKE'",
        "created_at = 'then'",
        "expires_at = '2127-01-01'",
    ],
)
async def test_a_key_that_makes_no_sense_counts_as_revoked_and_stops_no_other(
    file_store: Store, damage: str
) -> None:
    keys = KeyStore(file_store)
    odd, good = a_key(), a_key()
    secrets = [await keys.add(odd), await keys.add(good)]
    watcher = Heard()
    ring = KeyRing(keys, watcher)
    await ring.refresh()
    async with file_store.begin() as connection:
        await connection.exec_driver_sql(f"UPDATE keys SET {damage} WHERE id = '{odd.id}'")
        await connection.exec_driver_sql("UPDATE keys SET revision = revision + 9999")
        await connection.exec_driver_sql("UPDATE revisions SET value = value + 9999")
    await ring.refresh()
    assert [ring.find(digest(each), NOW) for each in secrets] == [None, good]
    assert watcher.said == [f"key_nonsense: {odd.id}"]
    listing = await keys.list()
    assert ([key.id for key, _ in listing.keys], listing.odd) == ([good.id], [odd.id])
    for work in (keys.show(odd.id), keys.update(odd.id, limit=1), keys.revoke(odd.id, NOW)):
        with pytest.raises(OddKey):
            await work


@pytest.mark.parametrize("until", ["then", "2127-01-01", 5])
async def test_a_secret_whose_end_makes_no_sense_opens_nothing_and_stops_no_other(
    file_store: Store, until: object
) -> None:
    keys = KeyStore(file_store)
    odd, good = a_key(), a_key()
    secrets = [await keys.add(odd), await keys.add(good)]
    async with file_store.begin() as connection:
        await connection.exec_driver_sql(
            "UPDATE secrets SET expires_at = ? WHERE key_id = ?", (until, odd.id)
        )
    watcher = Heard()
    ring = KeyRing(keys, watcher)
    await ring.refresh()
    assert [ring.find(digest(each), NOW) for each in secrets] == [None, good]
    assert watcher.said == [f"key_nonsense: {odd.id}"]
    assert list((await keys.list()).odd) == [odd.id]
    with pytest.raises(OddKey):
        await keys.show(odd.id)


async def test_after_a_pause_the_store_is_read_before_anybody_is_answered(store: Store) -> None:
    clock = [0.0]
    keys = KeyStore(store)
    key = a_key()
    secret = await keys.add(key)
    ring = KeyRing(keys, Heard(), lambda: clock[0])
    await ring.refresh()
    await keys.revoke(key.id, NOW)
    clock[0] = BEHIND_AFTER
    assert ring.find(digest(secret), NOW) == key
    clock[0] += 0.1
    with pytest.raises(KeysBehind):
        ring.find(digest(secret), NOW)
    await asyncio.gather(*(ring.catch_up() for _ in range(5)))
    assert ring.find(digest(secret), NOW) is None
    await ring.aclose()


async def test_a_store_that_hangs_or_fails_holds_up_nobody_for_long(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.keys.ring.CATCH_UP", 0.01)
    reading = 0

    class Hanging(KeyStore):
        async def changes(self, since: int) -> Any:
            nonlocal reading
            reading += 1
            await asyncio.Event().wait()

    ring = KeyRing(Hanging(store), Heard())
    await asyncio.gather(*(ring.catch_up() for _ in range(5)))
    assert reading == 1
    await ring.aclose()


async def test_a_store_that_cannot_be_written_is_read_on_and_said_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.keys.ring.POLL", 0.001)
    monkeypatch.setattr("gateway.keys.ring.SAVE_EVERY", 0.001)
    tries, go = asyncio.Semaphore(0), asyncio.Event()

    class Full(KeyStore):
        async def save_last_used(self, used: Mapping[str, datetime]) -> None:
            tries.release()
            if not go.is_set():
                await asyncio.sleep(0)
                raise StoreError("full")

    watcher = Heard()
    keys = Full(store)
    ring = KeyRing(keys, watcher)
    await ring.start()
    ring.touch("somebody", NOW)
    async with asyncio.timeout(10):
        for _ in range(4):
            await tries.acquire()
        key = a_key()
        secret = await keys.add(key)
        while ring.find(digest(secret), NOW) is None:  # noqa: ASYNC110 - the ring goes on
            await asyncio.sleep(0.001)
        go.set()
    await ring.aclose()
    assert watcher.said == ["last_use_unwritten: full"]


async def test_a_store_that_was_put_back_and_changed_as_often_is_not_taken_for_itself(
    store: Store, ring: KeyRing
) -> None:
    steps = set()
    for _ in range(20):
        before = (await KeyStore(store).changes(-1))[0]
        await KeyStore(store).add(a_key())
        steps.add((await KeyStore(store).changes(-1))[0] - before)
    assert len(steps) > 5
    assert min(steps) > 0


async def test_a_store_that_was_put_back_is_read_anew(store: Store, ring: KeyRing) -> None:
    keys = KeyStore(store)
    old, new = a_key(), a_key()
    kept = await keys.add(old)
    lost = await keys.add(new)
    await ring.refresh()
    async with store.begin() as connection:  # as a backup of yesterday would be
        await connection.exec_driver_sql(f"DELETE FROM secrets WHERE key_id = '{new.id}'")
        await connection.exec_driver_sql(f"DELETE FROM keys WHERE id = '{new.id}'")
        await connection.exec_driver_sql("UPDATE revisions SET value = 0")
    await ring.refresh()
    assert [ring.find(digest(each), NOW) for each in (kept, lost)] == [old, None]
    assert len(ring) == 1
