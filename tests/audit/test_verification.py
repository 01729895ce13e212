"""What was done to the audit is found, and nothing is taken for it that was not done."""

import fcntl
import os
from datetime import date
from pathlib import Path
from random import Random
from threading import Timer

import pytest

from gateway.audit.buffer import Writer
from gateway.audit.chains import Chains, day_files, is_open, place_of
from gateway.audit.entries import AuditSecret, read_secrets, rotate
from gateway.audit.verification import CUT_OFF, ENDED, RUNS, elsewhere, is_foreign
from gateway.store.tables import audit_chains
from tests.audit.chains import KEY, START, Machine, Process, entry, expire, machine
from tests.audit.mutations import MUTATIONS
from tests.heard import Heard

TURNS = int(os.environ.get("AUDIT_MUTATIONS", "200"))


async def fill(process: Process, entries: int) -> None:
    """That many, in writes of a few, a second apart."""
    clock = process.machine.clock
    for number in range(0, entries, 3):
        some = (entry(clock.now(), [f"record-{number}"]) for _ in range(min(3, entries - number)))
        await process.note(*some)
        clock.pass_(seconds=1)


async def a_week(made: Machine) -> Process:
    """All that happens to an audit in order: what comes back still runs."""
    first, second = await made.begin(), await made.begin()
    await fill(first, 12)
    made.clock.pass_(hours=14, minutes=59, seconds=50)
    await fill(second, 15)  # over midnight
    await fill(first, 9)
    rotate(made.key)
    await fill(first, 6)
    made.clock.set(hours=-3)
    await fill(second, 6)
    await first.end()
    made.clock.set(hours=3)
    killed = await made.begin()
    await fill(killed, 8)
    killed.killed()
    made.clock.pass_(days=1)
    await fill(second, 8)
    rotate(made.key)
    made.clock.set(hours=40)
    await fill(second, 5)
    await second.end()
    last = await made.begin()
    await fill(last, 7)
    return last


async def test_an_audit_that_nobody_touched_raises_no_alarm(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        running = await a_week(made)
        verdicts = await made.verdicts()
        assert [each.broken for each in verdicts] == [""] * 4
        assert sorted(each.state for each in verdicts) == sorted([ENDED, ENDED, CUT_OFF, RUNS])
        assert sum(each.files for each in verdicts) == 7
        text = b"".join(file.read_bytes() for file in made.audit.glob("*.jsonl"))
        assert text.count(b'"kind":"clock"') == 4
        assert b'"seconds":-10800.0' in text
        assert {file.stat().st_mode & 0o777 for file in made.audit.iterdir()} == {0o600}
        assert made.audit.stat().st_mode & 0o777 == 0o700
        running.killed()


@pytest.mark.long
async def test_whatever_is_done_to_the_files_is_found(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        (await a_week(made)).killed()
        assert await expire(made, days(made)[1]) == 2
        whole = {file.name: file.read_bytes() for file in made.audit.glob("*.jsonl")}
        known = await rows_of_chains(made)
        assert await made.alarms() == []
        unnoticed = []
        for turn in range(TURNS):
            random = Random(turn)
            files = dict(whole)
            name = mutated(files, random, made, turn)
            if files == whole:
                continue
            write(made.audit, files)
            if not await made.alarms():
                unnoticed.append((turn, name, "at once"))
            # nor does it pass for old days that went
            await expire(made, random.choice([date(2026, 11, 1), *days(made), date(2027, 12, 31)]))
            if not await made.alarms():
                unnoticed.append((turn, name, "once old days went"))
            await put_back(made, known)
        assert unnoticed == []
        write(made.audit, whole)
        assert await made.alarms() == []


def mutated(files: dict[str, bytes], random: Random, made: Machine, turn: int) -> str:
    name = list(MUTATIONS)[turn % len(MUTATIONS)]
    secrets = [*read_secrets(made.key)[1:], AuditSecret(bytes(32))]
    MUTATIONS[name](files, random, random.choice(secrets))
    return name


async def rows_of_chains(made: Machine) -> list[dict[str, object]]:
    async with made.store.begin() as connection:
        return [dict(row._mapping) for row in await connection.execute(audit_chains.select())]


async def put_back(made: Machine, rows: list[dict[str, object]]) -> None:
    async with made.store.begin() as connection:
        await connection.execute(audit_chains.delete())
        await connection.execute(audit_chains.insert(), rows)


def days(made: Machine) -> list[date]:
    return sorted({each.day for each in day_files(made.audit)})


def write(folder: Path, files: dict[str, bytes]) -> None:
    for file in folder.glob("*.jsonl*"):
        if file.name not in files:
            file.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)


async def test_a_last_line_that_a_kill_cut_off_is_told_and_no_alarm(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        process = await made.begin()
        await fill(process, 4)
        await process.note(entry(made.clock.now()), records=False)
        process.killed()
        [file] = process.files()
        whole = file.read_bytes()
        last = whole.rfind(b"\n", 0, -1) + 1
        for end in range(last, len(whole)):
            file.write_bytes(whole[:end])
            [verdict] = await made.verdicts()
            assert (verdict.broken, verdict.state) == ("", CUT_OFF)
            assert ("was cut off" in "".join(verdict.notes)) == (end != last)
        # what the store had heard of is no loss of a moment
        for end in range(last - 300, last):
            file.write_bytes(whole[:end])
            assert await made.alarms() != []


async def test_the_first_line_that_is_not_as_it_was_is_named(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        process = await made.begin()
        await fill(process, 5)
        await process.end()
        [file] = process.files()
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join([*lines[:3], *lines[4:]]))
        assert await made.alarms() == [f"{file}:4: line 4 of its chain is missing here"]
        file.write_bytes(b"".join([*lines[:3], lines[3].replace(b"FULL", b"FULM"), *lines[4:]]))
        assert await made.alarms() == [f"{file}:4: line 4 of its chain is not as it was written"]
        file.unlink()
        said = f"the store recorded {len(lines)} lines, the files end with 0"
        assert await made.alarms() == [f"{made.audit}: chain {process.chain}: {said}"]


async def test_dropped_days_count_as_such_only_with_the_word_of_who_has_the_key(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path) as made:
        running = await a_week(made)
        kept = days(made)[2]
        assert await expire(made, kept) == 4
        assert days(made)[0] == kept
        assert await made.alarms() == []
        # a copy of a dropped day that somebody puts back is neither an alarm nor part of the chain
        await running.note()
        assert await made.alarms() == []
        lie = audit_chains.update().values(
            dropped=str(kept), dropped_seq=audit_chains.c.seq, dropped_mac=audit_chains.c.mac
        )
        for file in day_files(made.audit):
            file.path.unlink()
        assert len(await made.alarms()) == 2
        async with made.store.begin() as connection:
            await connection.execute(lie)
        alarms = await made.alarms()
        assert len(alarms) == 4
        assert all("the audit's key did not say so" in each for each in alarms)
        running.killed()


async def test_a_file_that_is_written_to_is_never_dropped(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        idle = await made.begin()
        await fill(idle, 3)
        gone = await made.begin()
        await fill(gone, 3)
        gone.killed()
        assert await expire(made, date(2027, 12, 31)) == 1
        assert gone.files() == []
        await fill(idle, 3)
        await idle.end()
        assert await made.alarms() == []
        assert await expire(made, date(2027, 12, 31)) == 1
        assert await made.alarms() == []


async def test_who_asks_whether_a_file_is_written_to_keeps_nobody_from_saying_so(
    tmp_path: Path,
) -> None:
    writer = Writer(tmp_path, "chain", lambda: AuditSecret(bytes(32)), START)
    file = tmp_path / f"{START.date()}.chain.jsonl"
    asking = os.open(file, os.O_RDONLY | os.O_CREAT, 0o600)
    fcntl.flock(asking, fcntl.LOCK_SH)  # as is_open does, for an instant
    assert not is_open(file)
    let_go = Timer(0.02, os.close, [asking])
    let_go.start()
    writer.write((), START)
    let_go.join()
    assert is_open(file)
    writer.close()
    assert not is_open(file)


async def test_a_writer_that_could_not_lock_its_file_locks_it_with_a_later_write(
    tmp_path: Path,
) -> None:
    writer = Writer(tmp_path, "chain", lambda: AuditSecret(bytes(32)), START)
    file = tmp_path / f"{START.date()}.chain.jsonl"
    with file.open("xb") as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)  # as an is_open that was stopped meanwhile
        writer.write((), START)
        assert not is_open(file)
    writer.write((), START)
    assert is_open(file)
    writer.close()


async def test_without_the_key_of_a_line_it_cannot_be_verified_and_is_said_so(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path) as made:
        process = await made.begin()
        await fill(process, 3)
        await process.end()
        old = read_secrets(made.key)[0].id
        made.key.unlink()
        rotate(made.key)
        [alarm] = await made.alarms()
        assert f"is sealed with the key {old}, which is not here" in alarm


async def test_chains_of_other_machines_are_verified_there(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        process = await made.begin()
        await process.end()
        known = await Chains(made.store).known()
        here = place_of(made.audit)
        assert elsewhere(known, here, shared=True) == []
        assert elsewhere(known, "another folder", shared=True) == known
        # a store of one machine's own knows no other folder: its chains must be here
        assert elsewhere(known, "another folder", shared=False) == []


async def test_a_folder_whose_name_the_store_does_not_know_is_no_sound_one(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        process = await made.begin()
        await process.end()
        known = await Chains(made.store).known()
        here = place_of(made.audit)
        assert not is_foreign(known, here, shared=True)
        # somebody took the files away and gave the folder another name: all would be elsewhere
        assert is_foreign(known, "another folder", shared=True)
        # then its chains must be here, and are looked for
        assert not is_foreign(known, "another folder", shared=False)
        assert not is_foreign(known, None, shared=True)


async def test_a_file_by_an_old_name_makes_no_deletion_an_old_day_that_went(
    tmp_path: Path,
) -> None:
    """A file's name says nothing; neither does a line that somebody copied into it."""

    async with machine(tmp_path) as made:
        running, ended = await made.begin(), await made.begin()
        for process in (running, ended):
            await fill(process, 6)
        made.clock.pass_(days=1)
        for process in (running, ended):
            await fill(process, 6)
        await ended.end()
        old_of_running, old_of_ended = (
            made.audit / f"2020-01-01.{each.chain}.jsonl" for each in (running, ended)
        )
        whole = {file.name: file.read_bytes() for file in made.audit.glob("*.jsonl")}
        known = await rows_of_chains(made)
        first, second = ended.files()

        def empty() -> None:
            first.unlink()
            second.unlink()
            old_of_ended.touch()

        def renamed() -> None:
            second.rename(old_of_ended)

        def copied() -> None:
            past = running.files()[0]
            old_of_running.write_bytes(past.read_bytes().splitlines(keepends=True)[-1])
            past.unlink()

        for lie in (empty, renamed, copied):
            lie()
            heard = Heard()
            assert await expire(made, date(2021, 1, 1), heard) == 0
            assert heard.events == ["audit_days_kept"], lie
            assert await made.alarms() != [], lie
            await put_back(made, known)
            write(made.audit, whole)
            assert await made.alarms() == []
        running.killed()


async def test_an_empty_file_of_an_old_day_goes_and_changes_nothing(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        process = await made.begin()
        await fill(process, 6)
        empty = made.audit / f"2020-01-01.{process.chain}.jsonl"
        empty.touch()
        assert await expire(made, date(2021, 1, 1)) == 1
        assert not empty.exists()
        await fill(process, 3)
        await process.end()
        assert await made.alarms() == []


async def test_a_file_of_a_chain_that_the_store_does_not_know_goes_only_by_its_own_day(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path) as made:
        process = await made.begin()
        await fill(process, 3)
        await process.end()
        [file] = process.files()
        await put_back(made, [{**each, "id": KEY} for each in await rows_of_chains(made)])
        file.rename(made.audit / f"2020-01-01.{process.chain}.jsonl")
        heard = Heard()
        assert await expire(made, date(2027, 12, 31), heard) == 0
        [why] = heard.said
        assert "does not begin as the file of that day and chain" in why
        process.files()[0].rename(file)
        assert await expire(made, date(2027, 12, 31)) == 1
