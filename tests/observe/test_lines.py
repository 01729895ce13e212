import asyncio
import io
import os
from pathlib import Path

import msgspec
import pytest

from gateway.observe.event_log import EventLog
from gateway.observe.lines import MOST_WAITING, TOGETHER, AccessLog, Outbox
from gateway.observe.metrics import Metrics, exposition
from tests.heard import Heard


class Line(msgspec.Struct):
    text: str
    ids: list[str] = []


async def test_lines_are_whole_json_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = AccessLog(path, Heard())
    lines.add(Line("é\n"))
    lines.add(Line("\udcff", ["a\udcfe"]))
    assert path.read_bytes() == b""
    lines.close()
    read = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    assert [line["text"] for line in read] == ["é\n", "\\udcff"]
    assert read[1]["ids"] == ["a\\udcfe"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_outbox_knows_the_bytes_that_wait() -> None:
    outbox = Outbox(Heard())
    for number in range(3):
        outbox.add(Line("x" * number))
    outbox.encode()
    outbox.remove(1)
    assert outbox.size == sum(map(len, outbox.texts)) > 0
    outbox.remove(2)
    assert (outbox.size, outbox.texts) == (0, [])


async def test_a_line_that_cannot_be_written_is_missing_and_takes_no_other_with_it(
    tmp_path: Path,
) -> None:
    path, heard, unwritable = tmp_path / "a.jsonl", Heard(), Line("odd")
    unwritable.text = object()  # type: ignore[assignment]
    lines = AccessLog(path, heard)
    for number in range(2 * TOGETHER):
        lines.add(Line(str(number)) if number != 7 else unwritable)
    lines.close()
    read = [msgspec.json.decode(line)["text"] for line in path.read_bytes().splitlines()]
    assert read == [str(number) for number in range(2 * TOGETHER) if number != 7]
    assert heard.counted["log_lines_dropped"] == 1
    assert heard.said == ["log_lines_lost: a.jsonl, 1"]


async def test_lines_wait_while_the_disk_is_full_and_one_complaint_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    lines = AccessLog(tmp_path / "a.jsonl", heard)
    write = os.write

    def full(file: int, data: bytes) -> int:
        return write(file, data[:5])

    monkeypatch.setattr(os, "write", full)
    for number in range(MOST_WAITING + 3):
        lines.add(Line(str(number)))
    lines.flush()
    lines.flush()
    assert (heard.counted["log_lines_dropped"], heard.events) == (3, ["logs_unwritable"])
    assert (tmp_path / "a.jsonl").read_bytes() == b""
    monkeypatch.setattr(os, "write", write)
    lines.flush()
    lines.add(Line("after"))
    lines.close()
    assert heard.said[1:] == ["log_lines_lost: a.jsonl, 3"]
    kept = (tmp_path / "a.jsonl").read_bytes().splitlines()
    assert len(kept) == MOST_WAITING + 1
    assert msgspec.json.decode(kept[0])["text"] == "3"


async def test_what_waits_is_tried_again_without_another_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.observe.lines.EVERY", 0.001)
    tries = 0
    written = asyncio.Event()

    def full_at_first(file: int, data: bytes) -> int:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise OSError("full")
        written.set()
        return write(file, data)

    write = os.write
    monkeypatch.setattr(os, "write", full_at_first)
    lines = AccessLog(tmp_path / "a.jsonl", Heard())
    lines.add(Line("kept"))
    async with asyncio.timeout(10):
        await written.wait()
    assert b"kept" in (tmp_path / "a.jsonl").read_bytes()
    lines.close()


async def test_lines_that_still_wait_at_the_end_are_lost_and_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    lines = AccessLog(tmp_path / "a.jsonl", heard)
    monkeypatch.setattr(os, "write", lambda file, data: 0)
    for number in range(3):
        lines.add(Line(str(number)))
    lines.close()
    assert heard.counted["log_lines_dropped"] == 3
    assert heard.events[:-1] == ["logs_unwritable"]
    assert heard.said[-1] == "log_lines_lost: a.jsonl, 3"


async def test_lost_lines_are_counted_and_said_in_the_event_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, metrics = io.StringIO(), Metrics([])
    lines = AccessLog(tmp_path / "audit.jsonl", EventLog(stream, metrics))
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: 0)
    for number in range(MOST_WAITING + 2):
        lines.add(Line(str(number)))
    lines.flush()
    assert b"gateway_log_lines_lost_total 2.0" in exposition(metrics.snapshot())
    monkeypatch.setattr(os, "write", write)
    lines.close()
    [failed, lost] = map(msgspec.json.decode, stream.getvalue().splitlines())
    assert failed["event"] == "the access log or the audit cannot be written"
    assert (lost["event"], lost["file"], lost["lines"]) == (
        "lines of a log are lost",
        "audit.jsonl",
        2,
    )


async def test_a_file_that_was_moved_away_is_begun_anew_and_no_line_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = AccessLog(path, Heard())
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
