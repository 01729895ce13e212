"""The policy as it is handed from process to process: also where the disk has become full."""

import io
import json
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from gateway.observe.event_log import EventLog
from gateway.policy.policy import Version
from gateway.policy.running.follower import ROOM, Handover, Taker, put, take
from gateway.policy.running.versions import Presence, Versions
from gateway.store import open_store
from tests.policies import TEXT
from tests.waiting import until


def handed(content: bytes, digest: str = "0" * 64) -> Handover:
    return Handover(
        version=Version(hash=digest, content=content, file="policies.yaml"),
        loaded_at=datetime(2026, 1, 1, tzinfo=UTC),
        status={},
        revision=1,
    )


def test_the_next_policy_needs_no_room_that_the_disk_does_not_give(tmp_path: Path) -> None:
    path, spare = tmp_path / "policy.json", tmp_path / "policy.new"
    put(path, handed(b"first"))
    before = spare.stat()
    assert before.st_size == ROOM
    assert before.st_blocks * 512 >= ROOM
    put(path, handed(b"second"))
    after = path.stat()
    assert (after.st_ino, after.st_size) == (before.st_ino, ROOM)
    found = take(path)
    assert found is not None
    assert found.version.content == b"second"


def test_the_largest_policy_has_room(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    put(path, handed(b"x" * 64 * 1024))
    assert path.stat().st_size == ROOM
    found = take(path)
    assert found is not None
    assert len(found.version.content) == 64 * 1024


def now() -> datetime:
    return datetime.now(UTC)


def version(text: str) -> Handover:
    digest = sha256(text.encode()).hexdigest()
    return handed(text.encode(), digest)


async def test_what_cannot_be_taken_and_a_store_that_is_gone_are_told_apart(
    tmp_path: Path,
) -> None:
    """Each once, with what is wrong, and the policy that runs goes on."""
    path, stream = tmp_path / "policy.json", io.StringIO()
    store = open_store(tmp_path / "nowhere" / "gateway.db")
    taker = Taker(path, lambda _: None, Presence(Versions(store), now), EventLog(stream))

    def told() -> list[Any]:
        return [json.loads(line) for line in stream.getvalue().splitlines()]

    put(path, version(TEXT))
    await taker.begin()
    taker.start()
    await until(lambda: len(told()) == 1)
    put(path, handed(TEXT.encode(), "2" * 64))
    await until(lambda: len(told()) == 2)
    await taker.aclose()
    gone, untaken = told()
    assert gone["event"] == "the store cannot be told which policy runs here"
    assert str(tmp_path / "nowhere") in gone["said"]
    assert "free its disk" in gone["remedy"]
    assert untaken["event"] == "the policy that was handed on cannot be taken; the last one goes on"
    assert "its text has another hash" in untaken["said"]
    assert taker.policy().hash == version(TEXT).version.hash
