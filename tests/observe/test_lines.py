import os
from pathlib import Path

import msgspec
import pytest

from gateway.observe.lines import MOST_WAITING, Lines


class Line(msgspec.Struct):
    text: str
    ids: list[str] = []


async def test_lines_are_whole_json_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = Lines(path, complain=lambda error: None)
    lines.add(Line("é\n"))
    lines.add(Line("\udcff", ["a\udcfe"]))
    assert path.read_bytes() == b""
    lines.close()
    read = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    assert [line["text"] for line in read] == ["é\n", "\\udcff"]
    assert read[1]["ids"] == ["a\\udcfe"]
    assert path.stat().st_mode & 0o777 == 0o600


async def test_lines_wait_while_the_disk_is_full_and_one_complaint_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    complaints: list[OSError] = []
    lines = Lines(tmp_path / "a.jsonl", complain=complaints.append)
    write = os.write

    def full(file: int, data: bytes) -> int:
        return write(file, data[:5])

    monkeypatch.setattr(os, "write", full)
    for number in range(MOST_WAITING + 1):
        lines.add(Line(str(number)))
    lines.flush()
    lines.flush()
    assert len(complaints) == 1
    assert (tmp_path / "a.jsonl").read_bytes() == b""
    monkeypatch.setattr(os, "write", write)
    lines.close()
    kept = (tmp_path / "a.jsonl").read_bytes().splitlines()
    assert len(kept) == MOST_WAITING
    assert msgspec.json.decode(kept[0])["text"] == "1"


async def test_a_file_that_was_moved_away_is_begun_anew_and_no_line_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = Lines(path, complain=lambda error: None)
    lines.add(Line("first"))
    lines.flush()
    path.rename(tmp_path / "a.jsonl.1")
    lines.add(Line("second"))
    lines.flush()
    path.unlink()
    lines.add(Line("third"))
    lines.close()
    assert b"first" in (tmp_path / "a.jsonl.1").read_bytes()
    assert [msgspec.json.decode(each)["text"] for each in path.read_bytes().splitlines()] == [
        "third"
    ]
