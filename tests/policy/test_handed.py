"""The policy as it is handed from process to process: also where the disk has become full."""

from datetime import UTC, datetime
from pathlib import Path

from gateway.policy.running.handed import ROOM, Handed, _put, take


def handed(content: bytes) -> Handed:
    return Handed(
        hash="0" * 64,
        content=content,
        file="policies.yaml",
        made_of=None,
        loaded_at=datetime(2026, 1, 1, tzinfo=UTC),
        told={},
        revision=1,
    )


def test_the_next_policy_needs_no_room_that_the_disk_does_not_give(tmp_path: Path) -> None:
    path, spare = tmp_path / "policy.json", tmp_path / "policy.new"
    _put(path, handed(b"first"))
    before = spare.stat()
    assert before.st_size == ROOM
    assert before.st_blocks * 512 >= ROOM
    _put(path, handed(b"second"))
    after = path.stat()
    assert (after.st_ino, after.st_size) == (before.st_ino, ROOM)
    found = take(path)
    assert found is not None
    assert found.content == b"second"


def test_the_largest_policy_has_room(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    _put(path, handed(b"x" * 64 * 1024))
    assert path.stat().st_size == ROOM
    found = take(path)
    assert found is not None
    assert len(found.content) == 64 * 1024
