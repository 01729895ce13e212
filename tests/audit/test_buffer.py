"""Entries on their way to the disk: none is acknowledged before it is there, few are ever lost."""

import asyncio
import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from gateway.audit import buffer as buffering
from gateway.audit.buffer import Buffer, Unwritten
from gateway.audit.entries import REFUSED, Entry
from gateway.contract.errors import Unavailable
from gateway.observe.lines import texts
from tests.audit.chains import START, Clock, Machine, entry, machine
from tests.heard import Heard

UNWRITABLE = "audit_unwritable: {}: {}"


class Ears(Heard):
    """Knows how much was lost, too."""

    @property
    def lost(self) -> int:
        """How many entries were said to be lost."""
        return sum(each["lines"] for each in self.details if each.keys() == {"lines"})


class Disk:
    """The writes and syncs of the day's files; `full` says how they fare.

    `sizes` are those of the writes that were wanted; after `room` more of them it is full.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full, self.syncs = False, 0
        self.room: int | None = None
        self.sizes: list[int] = []
        self.free = threading.Event()
        self.free.set()
        self._write, self._sync = os.write, os.fdatasync
        monkeypatch.setattr(os, "write", self.write)
        monkeypatch.setattr(os, "fdatasync", self.sync)

    def write(self, file: int, data: bytes) -> int:
        # the event loop wakes itself by writes of a byte
        if len(data) > 1:
            self.sizes.append(len(data))
            if self.room is not None:
                self.full, self.room = self.room == 0, max(0, self.room - 1)
        if self.full and len(data) > 1:
            if len(data) > 100:
                return self._write(file, data[:100])
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._write(file, data)

    def sync(self, file: int) -> None:
        self.free.wait(10)
        self.syncs += 1
        self._sync(file)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    monkeypatch.setattr(buffering, "EVERY", 0.01)
    made = Disk(monkeypatch)
    yield made
    made.free.set()


async def begun(made: Machine, heard: Ears, **more: Any) -> Buffer:
    process = await made.begin()
    buffer = Buffer(process.writer, heard, made.clock.now, **more)
    buffer.start()
    return buffer


def on_disk(made: Machine) -> bytes:
    return b"".join(file.read_bytes() for file in made.audit.glob("*.jsonl"))


async def test_what_is_committed_is_on_disk_and_many_share_a_write(
    tmp_path: Path, disk: Disk
) -> None:
    async with machine(tmp_path) as made:
        buffer = await begun(made, Ears())
        disk.free.clear()

        async def book() -> None:
            noted = entry(START)
            buffer.note(noted)
            await buffer.commit()
            assert noted.request_id.encode() in on_disk(made)
            assert disk.syncs > 0

        calls = [asyncio.create_task(book()) for _ in range(50)]
        await asyncio.sleep(0.05)
        assert not any(call.done() for call in calls)
        disk.free.set()
        await asyncio.gather(*calls)
        assert disk.syncs <= 3
        await buffer.aclose()
        assert await made.alarms() == []


async def test_a_full_disk_is_said_once_and_what_waits_is_written_when_there_is_room(
    tmp_path: Path, disk: Disk
) -> None:
    async with machine(tmp_path) as made:
        heard = Ears()
        buffer = await begun(made, heard)
        buffer.note(entry(START))
        await buffer.commit()
        before = on_disk(made)
        disk.full = True
        noted = [entry(START) for _ in range(5)]
        for each in noted:
            buffer.note(each)
        for _ in range(2):
            with pytest.raises(Unwritten, match="the disk is full"):
                await buffer.commit()
        assert buffer.broken == "the disk is full"
        assert heard.said == [UNWRITABLE.format(made.audit, "the disk is full, OSError")]
        assert on_disk(made) == before
        with pytest.raises(Unavailable):
            buffer.check(creates=True)
        buffer.check(creates=False)
        disk.full = False
        await buffer.commit()
        assert (buffer.broken, buffer.waiting) == ("", 0)
        assert heard.events[1:] == ["audit_writable"]
        assert all(on_disk(made).count(each.request_id.encode()) == 1 for each in noted)
        await buffer.aclose()
        assert (heard.counted["log_lines_dropped"], heard.lost) == (0, 0)
        assert await made.alarms() == []


async def test_reads_go_on_until_too_many_entries_wait_and_what_was_shown_keeps_its_entry(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffering, "MOST_WAITING", 10)
    monkeypatch.setattr(buffering, "SPARE", 2)
    async with machine(tmp_path) as made:
        heard = Ears()
        buffer = await begun(made, heard)
        disk.full = True
        await fails(buffer)
        shown = [entry(START) for _ in range(13)]
        for number, each in enumerate(shown):
            if number < 10:
                buffer.check(creates=False)
            else:
                with pytest.raises(Unavailable):
                    buffer.check(creates=False)
            buffer.note(each)
        buffer.note(entry(START, outcome=REFUSED))
        assert (buffer.waiting, heard.counted["log_lines_dropped"]) == (12, 2)
        disk.full = False
        await buffer.commit()
        buffer.note(entry(START))
        await buffer.aclose()
        assert heard.lost == 2
        written = on_disk(made)
        assert [each.request_id.encode() in written for each in shown] == [True] * 12 + [False]
        assert b'"kind":"lost"' in written
        assert b'"lines":2' in written
        assert await made.alarms() == []


async def test_entries_of_many_records_take_no_more_memory_than_others(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffering, "MOST_BYTES", 10 * list_bytes())
    monkeypatch.setattr(buffering, "SPARE_BYTES", 2 * list_bytes())
    async with machine(tmp_path) as made:
        heard = Ears()
        buffer = await begun(made, heard)
        disk.full = True
        early = a_list()
        buffer.note(early)
        await fails(buffer)
        for number in range(1, 13):
            if number < 10:
                buffer.check(creates=False)
            else:
                with pytest.raises(Unavailable):
                    buffer.check(creates=False)
            buffer.note(a_list())
        buffer.note(entry(START, outcome=REFUSED))
        assert (buffer.waiting, heard.counted["log_lines_dropped"]) == (12, 2)
        disk.full = False
        await buffer.commit()
        buffer.check(creates=False)
        await buffer.aclose()
        assert early.request_id.encode() in on_disk(made)
        assert await made.alarms() == []


def a_list() -> Entry:
    return entry(START, [str(UUID(int=number)) for number in range(200)])


def list_bytes() -> int:
    return len(texts([a_list()])[0])


async def test_a_disk_that_takes_nothing_is_tried_with_little_and_then_with_pieces(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    little, most = 2 * list_bytes(), 10 * list_bytes()
    monkeypatch.setattr(buffering, "FIRST", little)
    monkeypatch.setattr(buffering, "PIECE", most)
    async with machine(tmp_path) as made:
        heard = Ears()
        buffer = await begun(made, heard)
        disk.full = True
        await fails(buffer)
        noted = [a_list() for _ in range(45)]
        for each in noted:
            buffer.note(each)
        disk.sizes.clear()
        await fails(buffer)
        assert max(disk.sizes) < 1.2 * little
        # it is full again in between: what it took stays, and is not written twice
        disk.room = 3
        await fails(buffer)
        assert buffer.waiting == 45 - 2 - 10 - 10
        assert buffer.writer.head.seq == 1 + 22
        disk.full, disk.room = False, None
        disk.sizes.clear()
        await buffer.commit()
        assert len(disk.sizes) == 4
        assert max(disk.sizes) < 1.2 * most
        await buffer.aclose()
        assert [on_disk(made).count(each.request_id.encode()) for each in noted] == [1] * 45
        assert await made.alarms() == []


async def test_what_is_missing_is_told_once_whatever_went_wrong_when_it_was_to_be_told(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffering, "MOST_WAITING", 1)
    monkeypatch.setattr(buffering, "SPARE", 0)
    async with machine(tmp_path) as made:
        heard = Ears()
        buffer = await begun(made, heard)
        disk.full = True
        await fails(buffer)
        for _ in range(3):
            buffer.note(entry(START))
        with monkeypatch.context() as broken:
            broken.setattr(disk, "_write", None)  # what is no file's fault, but a TypeError
            for _ in range(2):
                await fails(buffer)
        disk.full = False
        await buffer.commit()
        await buffer.aclose()
        assert on_disk(made).count(b'"kind":"lost"') == 1
        assert heard.lost == 2


async def test_a_line_that_cannot_be_written_is_missing_and_takes_no_other_with_it(
    tmp_path: Path, disk: Disk
) -> None:
    unwritable: Any = object()
    async with machine(tmp_path) as made:
        heard = Ears()
        buffer = await begun(made, heard)
        before, after = entry(START), entry(START)
        for each in (before, entry(START, operation=unwritable), after):
            buffer.note(each)
        await buffer.commit()
        with pytest.raises(TypeError):
            await buffer.begin(entry(START, operation=unwritable))
        await buffer.commit()
        written = on_disk(made)
        assert all(each.request_id.encode() in written for each in (before, after))
        assert (heard.counted["log_lines_dropped"], heard.lost) == (1, 1)
        assert written.count(b'"kind":"lost"') == 1
        await buffer.aclose()
        assert heard.events == ["audit_entries_lost"]


async def test_a_fault_behind_a_write_loses_nothing_and_nobody_waits_for_it(
    tmp_path: Path, disk: Disk
) -> None:
    async with machine(tmp_path) as made:
        heard, faults = Ears(), [ValueError("once")]
        buffer = await begun(made, heard)
        tell = buffer._tell

        def told(error: OSError | None, *, has_room: bool) -> None:
            if faults:
                raise faults.pop()
            tell(error, has_room=has_room)

        buffer._tell = told  # type: ignore[method-assign]
        buffer._outbox.missing = 3
        buffer.note(entry(START))
        async with asyncio.timeout(2):
            await buffer.commit()
        await asyncio.sleep(0.05)
        await buffer.commit()
        await buffer.aclose()
        assert on_disk(made).count(b'"kind":"lost"') == 1
        assert heard.events.count("fault_outside_call") == 1


async def fails(buffer: Buffer) -> None:
    with pytest.raises(Unwritten):
        await buffer.commit()


async def test_reads_go_on_for_a_minute_at_most(tmp_path: Path, disk: Disk) -> None:
    async with machine(tmp_path) as made:
        clock = Clock()
        buffer = await begun(made, Ears(), clock=clock.clock)
        disk.full = True
        await fails(buffer)
        clock.ticks += buffering.LONGEST_WAIT - 0.1
        buffer.check(creates=False)
        clock.ticks += 0.1
        with pytest.raises(Unavailable):
            buffer.check(creates=False)
        disk.full = False
        await buffer.aclose()


async def test_while_little_room_is_left_nothing_is_booked_and_reads_are_still_written(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with machine(tmp_path) as made:
        clock, heard = Clock(), Ears()
        buffer = await begun(made, heard, clock=clock.clock)
        monkeypatch.setattr("gateway.audit.buffer.ROOM", 1 << 60)
        with pytest.raises(Unwritten, match="the disk is full"):
            await buffer.begin(entry(START))
        with pytest.raises(Unavailable):
            buffer.check(creates=True)
        shown = entry(START)
        buffer.note(shown)
        await buffer.commit()
        assert shown.request_id.encode() in on_disk(made)
        clock.ticks += 2 * buffering.LONGEST_WAIT
        buffer.check(creates=False)
        monkeypatch.setattr("gateway.audit.buffer.ROOM", 0)
        await buffer.begin(entry(START))
        assert heard.events == ["audit_unwritable", "audit_writable"]
        await buffer.aclose()


async def test_a_disk_that_hangs_is_said_to_and_blocks_nothing_else(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with machine(tmp_path) as made:
        heard = Ears()
        buffer = await begun(made, heard)
        disk.free.clear()
        buffer.note(entry(START))
        with monkeypatch.context() as patched:
            patched.setattr(buffering, "PATIENCE", 0.05)
            with pytest.raises(Unwritten, match="does not answer"):
                await buffer.commit()
        assert buffer.broken == "the disk does not answer"
        disk.free.set()
        await buffer.commit()
        assert heard.events == ["audit_unwritable", "audit_writable"]
        assert "the disk does not answer" in heard.said[0]
        await buffer.aclose()
        assert await made.alarms() == []


async def test_an_entry_that_is_amended_before_it_is_written_says_only_how_it_ended(
    tmp_path: Path, disk: Disk
) -> None:
    async with machine(tmp_path) as made:
        buffer = await begun(made, Ears())
        disk.full = True
        early, late = entry(START), entry(START)
        buffer.note(early)
        await fails(buffer)
        buffer.amend(early, "unknown", "BookingUnknown")
        disk.full = False
        buffer.note(late)
        await buffer.commit()
        buffer.amend(late, "failed", "InternalError")
        await buffer.aclose()
        lines = on_disk(made).splitlines()
        of_early = [each for each in lines if early.request_id.encode() in each]
        of_late = [each for each in lines if late.request_id.encode() in each]
        assert [b'"outcome":"unknown"' in each for each in of_early] == [True]
        assert [b'"outcome":"failed"' in each for each in of_late] == [False, True]


async def test_half_a_write_that_could_not_be_undone_goes_before_the_next_even_over_midnight(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(file: int, size: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    async with machine(tmp_path) as made:
        process = await made.begin()
        await process.note()
        truncate = os.ftruncate
        monkeypatch.setattr(os, "ftruncate", broken)
        disk.full = True
        with pytest.raises(OSError, match="No space"):
            await process.note()
        disk.full = False
        made.clock.pass_(days=1)
        with pytest.raises(OSError, match="Input/output"):
            await process.note()
        assert len(process.files()) == 1
        monkeypatch.setattr(os, "ftruncate", truncate)
        await process.note()
        await process.end()
        assert len(process.files()) == 2
        assert await made.alarms() == []


async def test_a_day_file_that_somebody_moves_away_is_begun_anew_and_the_gap_is_found(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path) as made:
        process = await made.begin()
        await process.note()
        [file] = process.files()
        file.rename(tmp_path / "away")
        await process.note()
        await process.end()
        assert await made.alarms() == [f"{file}:1: the line that begins the file is missing"]


def test_texts_that_are_no_utf_8_are_kept_legible(tmp_path: Path) -> None:
    async def write() -> bytes:
        async with machine(tmp_path) as made:
            process = await made.begin()
            await process.note(entry(START, operation="\udcff"), entry(START))
            await process.end()
            assert await made.alarms() == []
            return on_disk(made)

    assert b"\\\\udcff" in asyncio.run(write())
