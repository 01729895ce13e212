"""What a process wrote last before it died is verified, and the store is told of it."""

from pathlib import Path

from gateway.audit.chains import Chains, Known
from gateway.audit.entries import rotate
from gateway.audit.verification import CUT_OFF, RUNS
from tests.audit.chains import Machine, Process, machine, upkeep_of


async def record(made: Machine) -> None:
    await upkeep_of(made).record_ends()


async def known(made: Machine) -> Known:
    [chain] = await Chains(made.store).known()
    return chain


async def killed(made: Machine, *, told: bool) -> Process:
    """Over midnight and another key; the store knows of none of its lines, or just of some."""
    process = await made.begin()
    await process.note(records=told)
    await process.note(records=told)
    await process.note(records=False)
    made.clock.pass_(days=1)
    await process.note(records=False)
    rotate(made.key)
    for _ in range(5):
        await process.note(records=False)
    process.killed()
    return process


async def test_what_a_killed_process_wrote_last_cannot_be_cut_off_unnoticed(
    tmp_path: Path,
) -> None:
    for told in (False, True):
        (folder := tmp_path / str(told)).mkdir()
        async with machine(folder) as made:
            process = await killed(made, told=told)
            last = process.files()[-1]
            whole = last.read_bytes()
            [verdict] = await made.verdicts()
            beyond = verdict.lines - (await known(made)).head.seq
            said = f"{last}: the files go {beyond} lines beyond what the store recorded"
            assert (verdict.broken, verdict.notes) == ("", [said])
            await record(made)
            assert (await known(made)).head.seq == verdict.lines
            [verdict] = await made.verdicts()
            assert (verdict.broken, verdict.notes, verdict.state) == ("", [], CUT_OFF)
            last.write_bytes(b"".join(whole.splitlines(keepends=True)[:-5]))
            assert len(await made.alarms()) == 1


async def test_an_end_that_the_store_was_not_told_of_is_one(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        process = await made.begin()
        await process.note()
        process.writer.end(made.clock.now())
        process.killed()
        await record(made)
        assert (await known(made)).ended
        assert await made.alarms() == []


async def test_lines_that_no_process_of_ours_wrote_are_not_taken_for_an_end(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path) as made:
        process = await killed(made, told=True)
        [first, last] = process.files()
        before = (await known(made)).head
        whole = {file: file.read_bytes() for file in (first, last)}
        lies = [
            (last, whole[last].replace(b"FULL", b"FULM")),
            (last, whole[last][:-200] + whole[last][-199:]),
            (first, b"".join(whole[first].splitlines(keepends=True)[:-1])),
            (first, whole[first].replace(b"FULL", b"FULM")),
            (first, b""),
            (last, whole[last] + b"x\n"),
        ]
        for file, lie in lies:
            file.write_bytes(lie)
            await record(made)
            assert (await known(made)).head == before
            assert len(await made.alarms()) == 1
            file.write_bytes(whole[file])


async def test_a_chain_that_runs_tells_of_itself(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        process = await made.begin()
        await process.note(records=False)
        await record(made)
        assert (await known(made)).head.seq == 0
        [verdict] = await made.verdicts()
        assert (verdict.state, verdict.notes) == (RUNS, [])
        process.killed()
