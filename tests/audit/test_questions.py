"""An answer never rests on less than all lines without saying so; the index is made anew."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import delete, update

from gateway.audit.index import Index, forget, forget_all
from gateway.audit.questions import Days, Gap, IndexState, brought_up, deeds, losses, readers
from gateway.store.tables import (
    audit_calls,
    audit_chains,
    audit_days,
    audit_reads,
    audit_views,
)
from tests.audit.chains import KEY, START, Machine, Process, entry, expire, machine
from tests.audit.stores import postgres, sqlite

ONE = str(uuid4())


@asynccontextmanager
async def filled(folder: Path) -> AsyncIterator[tuple[Machine, Process]]:
    """Three days of one chain, which the index knows."""
    async with machine(folder) as made:
        process = await made.begin()
        for _ in range(3):
            await process.note(*(entry(made.clock.now(), [ONE, str(uuid4())]) for _ in range(5)))
            made.clock.pass_(days=1)
        await process.end()
        await Index(made.store, made.audit).catch_up()
        yield made, process


async def state_of(made: Machine) -> IndexState:
    return await brought_up(made.store, made.audit, lambda size: None)


async def told(made: Machine) -> tuple[dict[Any, int], dict[Any, int]]:
    found = await readers(made.store, ONE, {"get_client"}, Days())
    done = await deeds(made.store, KEY, Days())
    return {view: seen.times for view, seen in found.items()}, {
        what: seen.times for what, seen in done.items()
    }


async def test_a_whole_index_lacks_nothing(tmp_path: Path) -> None:
    async with filled(tmp_path) as (made, _):
        assert await state_of(made) == IndexState(lines=0, gaps=[], lost=None, unknown=0)
        assert await losses(made.store) == []
        await forget(made.store, START.date() + timedelta(days=1))
        assert await state_of(made) == IndexState(lines=0, gaps=[], lost=None, unknown=0)
        assert await losses(made.store) == []


async def test_what_another_takes_meanwhile_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.audit.index.CHUNK", 2_000)
    async with machine(tmp_path) as made:
        process, one, other = await made.begin(), *(Index(made.store, made.audit) for _ in "ab")
        await process.note(*(entry(START, [ONE]) for _ in range(50)))
        taken = one._take

        async def overtaken(*words: Any) -> bool:
            """Another process takes the first lines, and then goes on to something else."""
            monkeypatch.setattr(one, "_take", taken)
            assert await other._take(*words)
            return await taken(*words)

        monkeypatch.setattr(one, "_take", overtaken)
        assert 0 < await one.catch_up() < 51
        assert list((await told(made))[0].values()) == [50]
        process.killed()


@pytest.mark.parametrize("table", [audit_reads, audit_calls, audit_days, audit_views])
async def test_an_index_that_was_deleted_is_noticed_and_made_anew(
    tmp_path: Path, table: Any
) -> None:
    async with filled(tmp_path) as (made, _):
        before = await told(made)
        async with made.store.begin() as connection:
            await connection.execute(delete(table))
        assert (await state_of(made)).lost == START.date()
        await forget_all(made.store)
        assert await state_of(made) == IndexState(lines=20, gaps=[], lost=None, unknown=0)
        assert (await told(made), await losses(made.store)) == (before, [])


async def test_a_row_that_is_gone_or_changed_is_found_by_the_sums(tmp_path: Path) -> None:
    async with filled(tmp_path) as (made, _):
        day, second = START.toordinal() - 719163, START.toordinal() - 719163 + 1
        async with made.store.begin() as connection:
            some = audit_reads.c.day == second
            await connection.execute(update(audit_reads).where(some).values(times=1))
            await connection.execute(delete(audit_calls).where(audit_calls.c.day == day))
        assert [str(each) for each in await losses(made.store)] == ["2026-11-20", "2026-11-21"]


async def test_lines_that_are_not_in_the_folder_are_a_gap(tmp_path: Path) -> None:
    async with filled(tmp_path) as (made, process):
        await forget_all(made.store)
        process.files()[-1].unlink()
        [gap] = (await state_of(made)).gaps
        until = f"{START + timedelta(days=2):%Y-%m-%dT%H:%M:%S}Z"
        assert gap == Gap(host="host", here=True, lines=2, until=until)
        for file in process.files():
            file.unlink()
        await forget_all(made.store)
        [gap] = (await state_of(made)).gaps
        assert gap == replace(gap, lines=20, until=f"{START:%Y-%m-%dT%H:%M:%S}Z")


async def test_days_that_were_dropped_are_no_gap(tmp_path: Path) -> None:
    async with filled(tmp_path) as (made, _):
        await forget_all(made.store)
        assert await expire(made, START.date() + timedelta(days=5)) == 4
        assert await state_of(made) == IndexState(lines=0, gaps=[], lost=None, unknown=0)


async def test_chains_that_a_restored_store_does_not_know_count_and_are_told(
    tmp_path: Path,
) -> None:
    async with filled(tmp_path) as (made, _):
        before = await told(made)
        await forget_all(made.store)
        async with made.store.begin() as connection:
            await connection.execute(delete(audit_chains))
        assert await state_of(made) == IndexState(lines=20, gaps=[], lost=None, unknown=1)
        assert await told(made) == before


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_of_another_machine_it_is_told_what_is_not_in_the_index(
    tmp_path: Path, kind: str
) -> None:
    async with postgres() if kind == "postgres" else sqlite(tmp_path) as opened:
        one, other = Machine(tmp_path / "one", opened()), Machine(tmp_path / "other", opened())
        await one.store.migrate()
        for each in (one, other):
            each.folder.mkdir()
        processes = [await each.begin() for each in (one, other)]
        for process in processes:
            await process.note(entry(START, [ONE]))
        [gap] = (await state_of(one)).gaps
        assert gap == Gap(host="host", here=kind == "sqlite", lines=2, until="2026-11-20T09:00:00Z")
        assert list((await told(one))[0].values()) == [1]
        assert (await state_of(other)).gaps == []
        assert (await state_of(one)).gaps == []
        await forget_all(one.store)
        assert [(await state_of(each)).lines for each in (other, one)] == [2, 2]
        assert await losses(one.store) == []
        assert list((await told(one))[0].values()) == [2]
        for each in (one, other):
            await each.store.aclose()
        for process in processes:
            process.killed()
