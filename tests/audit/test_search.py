"""Every entry is found once, however it is looked for, whatever clocks and writers did."""

import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

from gateway.audit.entries import ANSWERED, REFUSED, UNKNOWN, AuditLine
from gateway.audit.index import Index
from gateway.audit.search import EntryFilter, SearchCursor, read_cursor
from gateway.inquiries.audit import find_entries
from tests.audit.chains import KEY, OTHER_KEY, Machine, entry, machine

RECORDS = [str(UUID(int=number)) for number in range(100, 112)]
SEEDS = int(os.environ.get("SEARCH_SEEDS", "3"))
OUTCOMES = (ANSWERED, ANSWERED, REFUSED, UNKNOWN)


async def fill(made: Machine, random: Random) -> None:
    """Some days of three processes, of which one ends, one is killed, and clocks are set."""
    processes = [await made.begin() for _ in range(3)]
    for _ in range(90):
        process = random.choice(processes)
        calls = [
            entry(
                made.clock.now() - timedelta(seconds=random.random() * 9),
                random.sample(RECORDS, random.randrange(3)),
                key=random.choice([KEY, OTHER_KEY, None]),
                operation=random.choice(["get_client", "list_clients"]),
                outcome=random.choice(OUTCOMES),
            )
            for _ in range(random.randrange(1, 9))
        ]
        await process.note(*calls)
        made.clock.pass_(minutes=random.random() * 60)
        if random.random() < 0.05:
            made.clock.set(hours=random.choice([-5, 3]))
    await processes[0].end()
    processes[1].killed()


def all_entries(made: Machine) -> list[dict[str, Any]]:
    files = made.audit.glob("*.jsonl")
    lines = [line for file in files for line in file.read_bytes().splitlines()]
    return [each for line in lines if "outcome" in (each := json.loads(line))]


async def pages(
    made: Machine, wanted: EntryFilter, most: int, between: Callable[[], Any] | None = None
) -> list[AuditLine]:
    """All that is found, page by page, without any time to read."""
    found: list[AuditLine] = []
    place: SearchCursor | None = None
    for number in range(3_000):
        page = await find_entries(made.store, made.audit, wanted, most, place, budget=0.0)
        assert len(page.entries) <= most
        found += page.entries
        if page.rest is None:
            return found
        place = read_cursor(str(page.rest))
        assert place == page.rest
        if between is not None and number == 1:
            await between()
    raise AssertionError("it never comes to an end")


def wanted_among(entries: Sequence[dict[str, Any]], random: Random) -> EntryFilter:
    """Something to look for, which one of the entries may be."""
    one = random.choice(entries)
    at = datetime.fromisoformat(one["time"])
    may: dict[str, Any] = {
        "keys": frozenset({one["keyId"]} if one["keyId"] else {KEY, OTHER_KEY}),
        "operation": one["operation"],
        "record": one["recordIds"][0] if one["recordIds"] else RECORDS[0],
        "outcome": one["outcome"],
        "request": one["requestId"],
        "since": at - timedelta(hours=random.randrange(9)),
        "until": at + timedelta(hours=random.randrange(9)),
    }
    return EntryFilter(
        **{name: may[name] for name in random.sample(list(may), random.randrange(4))}
    )


def is_wanted(each: dict[str, Any], wanted: EntryFilter) -> bool:
    at = datetime.fromisoformat(each["time"])
    return (
        (wanted.keys is None or each["keyId"] in wanted.keys)
        and wanted.operation in {"", each["operation"]}
        and wanted.outcome in {"", each["outcome"]}
        and wanted.request in {"", each["requestId"]}
        and (not wanted.record or wanted.record in each["recordIds"])
        and (wanted.since is None or at >= wanted.since)
        and (wanted.until is None or at <= wanted.until)
    )


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_page_by_page_each_entry_that_is_meant_is_found_once(
    tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    async with machine(tmp_path) as made:
        await fill(made, random)
        every = all_entries(made)
        if seed % 4:  # the index may know all, some, or nothing
            await Index(made.store, made.audit).catch_up()
        if seed % 4 == 2:
            await fill(made, random)
            every = all_entries(made)
        for wanted in [EntryFilter(), *(wanted_among(every, random) for _ in range(9))]:
            found = await pages(made, wanted, random.randrange(1, 60))
            expected = sorted(each["requestId"] for each in every if is_wanted(each, wanted))
            assert sorted(each.request_id for each in found) == expected, wanted


async def test_what_is_written_meanwhile_moves_nothing(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        idle, process = await made.begin(), await made.begin()
        for number in range(40):
            await (process if number > 5 else idle).note()
            made.clock.pass_(minutes=7)
        before = [each["requestId"] for each in all_entries(made)]

        async def write() -> None:
            other = await made.begin()
            for one in (process, other, idle):
                await one.note(entry(made.clock.now()))

        found = await pages(made, EntryFilter(), 7, write)
        assert sorted(each.request_id for each in found) == sorted(before)
        idle.killed()
        process.killed()


async def test_what_many_wrote_at_one_moment_comes_once(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        processes = [await made.begin() for _ in range(5)]
        for each in processes:
            await each.note(*(entry(made.clock.now()) for _ in range(3)))
            await each.end()
        expected = sorted(each["requestId"] for each in all_entries(made))
        for most in (1, 2, 4):
            found = await pages(made, EntryFilter(), most)
            assert sorted(each.request_id for each in found) == expected


async def test_a_record_that_a_call_of_unknown_outcome_tells_is_found_by_the_index_too(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path) as made:
        process = await made.begin()
        for outcome in (UNKNOWN, ANSWERED, ANSWERED):
            record = RECORDS[0] if outcome == UNKNOWN else RECORDS[1]
            await process.note(entry(made.clock.now(), [record], outcome=outcome))
            made.clock.pass_(days=2)
        await process.end()
        await Index(made.store, made.audit).catch_up()
        [found] = await pages(made, EntryFilter(record=RECORDS[0]), 5)
        assert found.outcome == UNKNOWN


async def test_the_newest_come_first_over_all_processes(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        one, other = await made.begin(), await made.begin()
        for number in range(30):
            await (one if number % 3 else other).note()
            made.clock.pass_(hours=1)
        found = await pages(made, EntryFilter(), 4)
        times = [each.time for each in found]
        assert times == sorted(times, reverse=True)
        assert len(times) == 30
        one.killed()
        other.killed()


async def test_a_line_that_is_torn_or_longer_than_a_piece_hides_no_other(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        process = await made.begin()
        many = [f"{number:036d}" for number in range(9_000)]
        await process.note(entry(made.clock.now()), entry(made.clock.now(), many))
        await process.note(entry(made.clock.now()))
        process.killed()
        with process.files()[-1].open("ab") as file:
            file.write(b'{"seq":5,"time":"2026-11-20T09')
        assert len(await pages(made, EntryFilter(), 1)) == 3
        [found] = await pages(made, EntryFilter(record=many[-1]), 1)
        assert len(found.record_ids) == 9_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "20261122",
        "20261122_20261122T100000.000000_../../etc-5",
        "20261399_20261122T100000.000000",
    ],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_cursor(text)


def test_a_place_is_written_and_read_alike() -> None:
    moment = datetime(2026, 11, 22, 9, 0, 0, 1, tzinfo=UTC)
    place = SearchCursor(day=moment.date(), until=moment, left={"a" * 12: 77})
    assert read_cursor(str(place)) == place
