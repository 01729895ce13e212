"""The index knows each line once, whoever fills it, however it is read, and however often."""

import asyncio
import re
from datetime import date, timedelta
from pathlib import Path
from random import Random
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select

from gateway.audit.chains import Chains, place_of
from gateway.audit.entries import (
    ANSWERED,
    BEGUN,
    CLOCK,
    REFUSED,
    AuditSecret,
    ChainHead,
    DeedLine,
    Entry,
    Mark,
    seal,
)
from gateway.audit.index import CallView, Counted, DaySpan, Index, count, forget, record_key
from gateway.audit.questions import Days, deeds, readers
from gateway.audit.upkeep import EXPIRE_EVERY
from gateway.audit.verification import elsewhere
from gateway.background import RESTS
from gateway.observe.lines import texts
from gateway.store import StoreError
from gateway.store.tables import audit_reads, audit_views
from tests.audit.chains import KEY, OTHER_KEY, START, Machine, entry, machine, upkeep_of
from tests.audit.stores import postgres, sqlite
from tests.heard import Heard

ONE, TWO = str(uuid4()), str(uuid4())
GET, LIST = {"get_client"}, {"get_client", "list_clients"}


async def who(made: Machine, record: str, operations: set[str] = GET, **days: date) -> dict:  # type: ignore[type-arg]
    found = await readers(made.store, record, operations, Days(**days))
    return {view.key_id: seen.times for view, seen in found.items()}


async def test_each_line_counts_once_and_only_what_was_shown(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        process, index = await made.begin(), Index(made.store, made.audit)
        at = made.clock.now()
        await process.note(
            entry(at, [ONE]),
            entry(at, [ONE, TWO], operation="list_clients"),
            entry(at, [ONE], key=OTHER_KEY),
            entry(at, [ONE], outcome=REFUSED),
            entry(at, outcome=BEGUN),
            entry(at, key=None, operation="", outcome=REFUSED),
        )
        assert await index.catch_up() == 7
        assert await index.catch_up() == 0
        assert await Index(made.store, made.audit).catch_up() == 0
        made.clock.pass_(hours=1)
        await process.note(entry(made.clock.now(), [ONE]))
        assert await index.catch_up() == 1
        found = await readers(made.store, ONE, LIST, Days())
        view = CallView(KEY, "get_client", "FULL", "0123456789ab")
        assert found[view].times == 2
        assert (found[view].first, found[view].last) == (START, START + timedelta(hours=1))
        assert found[view._replace(operation="list_clients")].times == 1
        assert await who(made, ONE) == {KEY: 2, OTHER_KEY: 1}
        assert await who(made, TWO, LIST) == {KEY: 1}
        assert await who(made, str(uuid4())) == {}
        done = await deeds(made.store, KEY, Days())
        assert {what: seen.times for what, seen in done.items()} == {
            ("get_client", "answered", ""): 2,
            ("list_clients", "answered", ""): 1,
            ("get_client", REFUSED, "NotFound"): 1,
            ("get_client", BEGUN, "NotFound"): 1,
        }
        process.killed()


async def test_days_are_included_at_both_ends(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        process = await made.begin()
        for _ in range(5):
            await process.note(entry(made.clock.now(), [ONE]))
            made.clock.pass_(days=1)
        await process.end()
        await Index(made.store, made.audit).catch_up()
        first = START.date()
        second, fourth = first + timedelta(days=1), first + timedelta(days=3)
        assert await who(made, ONE) == {KEY: 5}
        assert await who(made, ONE, since=second) == {KEY: 4}
        assert await who(made, ONE, until=second) == {KEY: 2}
        assert await who(made, ONE, since=second, until=fourth) == {KEY: 3}
        done = await deeds(made.store, KEY, Days(since=fourth))
        assert [seen.times for seen in done.values()] == [2]


async def test_half_a_line_waits_and_a_spoilt_one_is_passed_over(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        process = await made.begin()
        await process.note(entry(START, [ONE]))
        await process.note(entry(START, [TWO]))
        process.killed()
        [file] = process.files()
        whole, index = file.read_bytes(), Index(made.store, made.audit)
        file.write_bytes(whole[:-20])
        assert await index.catch_up() == 2
        assert await who(made, TWO) == {}
        file.write_bytes(whole + b"spoilt\n")
        assert await index.catch_up() == 2
        assert await who(made, TWO) == {KEY: 1}


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_several_at_once_count_each_line_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("gateway.audit.index.CHUNK", 2_000)
    async with postgres() if kind == "postgres" else sqlite(tmp_path) as opened:
        one, other = Machine(tmp_path / "one", opened()), Machine(tmp_path / "other", opened())
        await one.store.migrate()
        for each in (one, other):
            each.folder.mkdir()
        processes = [await each.begin() for each in (one, one, other)]
        for _ in range(10):
            for process in processes:
                await process.note(*(entry(START, [ONE]) for _ in range(5)))
        for process in processes:
            await process.end()
        # four processes, two of each machine
        indexes = [Index(each.store, each.audit) for each in (one, one, other, other)]
        lines = await asyncio.gather(*(each.catch_up() for each in indexes))
        lines = [total + await each.catch_up() for total, each in zip(lines, indexes, strict=True)]
        assert sum(lines) == 3 * (10 * 5 + 2)
        assert await who(one, ONE) == {KEY: 150}
        assert await who(other, ONE) == {KEY: 150}
        await forget(one.store, date(2027, 1, 1))
        assert await who(other, ONE) == {}
        known = await Chains(one.store).known()
        others = elsewhere(known, place_of(one.audit), shared=True)
        assert [each.place for each in others] == [place_of(other.audit)]
        for each in (one, other):
            await each.store.aclose()


async def test_what_cannot_be_added_is_added_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with machine(tmp_path) as made:
        process, index = await made.begin(), Index(made.store, made.audit)
        await process.note(entry(START, [ONE]))

        async def breaks(*_: object) -> None:
            raise StoreError("gone")

        with monkeypatch.context() as patched:
            patched.setattr("gateway.store.tables.add_sums", breaks)
            with pytest.raises(StoreError):
                await index.catch_up()
        async with made.store.begin() as connection:
            views = await connection.execute(select(func.count()).select_from(audit_views))
            assert views.scalar_one() == 0
        assert await index.catch_up() == 2
        assert await who(made, ONE) == {KEY: 1}
        process.killed()


async def test_old_days_are_forgotten(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        process = await made.begin()
        for _ in range(3):
            await process.note(*(entry(made.clock.now(), [str(uuid4()), ONE]) for _ in range(20)))
            made.clock.pass_(days=1)
        await process.end()
        await Index(made.store, made.audit).catch_up()
        last = START.date() + timedelta(days=2)
        await forget(made.store, last)
        assert await who(made, ONE) == {KEY: 20}
        async with made.store.begin() as connection:
            rows = await connection.execute(select(func.count()).select_from(audit_reads))
            assert rows.scalar_one() == 21
        done = await deeds(made.store, KEY, Days())
        assert [seen.times for seen in done.values()] == [20]


def test_ids_of_any_form_have_a_key_of_16_bytes() -> None:
    assert record_key(ONE) == bytes.fromhex(ONE.replace("-", ""))
    others = [record_key(each) for each in ("7", "A-7", "é", "ab" * 20, "")]
    assert {len(each) for each in others} == {16}
    assert len(set(others)) == len(others)


async def test_the_upkeep_indexes_and_drops_what_is_old(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        told, process = Heard(), await made.begin()
        await process.note(entry(made.clock.now(), [ONE]))
        await process.end()
        upkeep = upkeep_of(made, told)
        await upkeep.turn()
        assert await who(made, ONE) == {KEY: 1}
        made.clock.pass_(days=2)
        await upkeep.turn()
        assert len(process.files()) == 1
        made.clock.pass_(days=1)
        await upkeep.turn()
        assert (process.files(), await who(made, ONE), told.said) == (
            [],
            {},
            ["audit_days_dropped: 1"],
        )
        assert await made.alarms() == []


async def test_a_gateway_that_starts_tells_the_store_what_a_killed_one_wrote_last(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path) as made:
        process = await made.begin()
        await process.note(records=False)
        process.killed()
        upkeep = upkeep_of(made, Heard())
        upkeep.start()
        for _ in range(500):
            [known] = await Chains(made.store).known()
            if known.head.seq:
                break
            await asyncio.sleep(0.01)
        assert known.head.seq == 2
        await upkeep.aclose()


async def test_a_clock_that_jumps_ahead_drops_nothing_for_a_day(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        told, process = Heard(), await made.begin()
        await process.note()
        await process.end()
        upkeep = upkeep_of(made, told)
        made.clock.set(days=400)
        await upkeep.turn()
        made.clock.pass_(seconds=EXPIRE_EVERY + 1)
        await upkeep.turn()
        assert told.said == []
        made.clock.pass_(seconds=RESTS)
        await upkeep.turn()
        assert told.said == ["audit_days_dropped: 1"]


async def test_an_upkeep_that_fails_is_said_once_and_goes_on(tmp_path: Path) -> None:
    async with machine(tmp_path) as made:
        told = Heard()
        process = await made.begin()
        await process.note()
        upkeep = upkeep_of(made, told)
        key = made.key.read_bytes()
        made.key.unlink()
        for _ in range(2):
            await upkeep.turn()
            made.clock.pass_(seconds=EXPIRE_EVERY)
        made.key.write_bytes(key)
        made.key.chmod(0o600)
        await upkeep.turn()
        assert told.events == ["audit_upkeep_failed", "audit_upkeep_back"]
        process.killed()


async def test_old_days_that_are_not_as_they_were_written_stay_and_it_is_said_once(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path) as made:
        told, process = Heard(), await made.begin()
        await process.note()
        await process.end()
        [file] = process.files()
        file.write_bytes(file.read_bytes().replace(b"FULL", b"FULM"))
        upkeep = upkeep_of(made, told)
        made.clock.pass_(days=3)
        for _ in range(2):
            await upkeep.turn()
            made.clock.pass_(seconds=EXPIRE_EVERY + 1)
        assert told.said == [
            f"audit_days_kept: {file}:2: line 2 of its chain is not as it was written"
        ]
        assert process.files() == [file]


Sums = dict[tuple[str, str, str], tuple[int, int, int]]


def lines(number: int) -> list[Entry]:
    random = Random(number)
    return [
        Entry(
            # now and then the clock is set back
            START.replace(second=random.choice([at * 59 // number, random.randrange(60)])),
            f"{at:032x}",
            random.choice([KEY, OTHER_KEY, None]),
            random.choice(["get_client", "list_clients"]),
            [str(UUID(int=random.randrange(9))) for _ in range(random.randrange(4))],
            "FULL",
            "0123456789ab",
            *random.choice([(ANSWERED, None), (REFUSED, "NotFound")]),
        )
        for at in range(number)
    ]


def written(path: Path, entries: list[Entry]) -> bytes:
    """Writes the entries among a mark and a deed, which count as no calls."""
    mark, deed = Mark(CLOCK, START, seconds=3), DeedLine(START, "ann", "key made", "k", "done", {})
    lines = texts([mark, *entries[:7], deed, *entries[7:]])
    data, _ = seal(lines, ChainHead(), AuditSecret(bytes(32)))
    path.write_bytes(data)
    return data


def added(sums: Sums, counted: Counted) -> None:
    for _, view, outcome, reason, made, shown in counted.kinds():
        of = (view.key_id, view.operation)
        add(sums, (*of, outcome + reason), made)
        for record, span in shown.items():
            add(sums, (*of, record), span)


def add(sums: Sums, name: tuple[str, str, str], span: DaySpan) -> None:
    times, first, last = sums.get(name, (0, span.first, span.last))
    sums[name] = (times + span.times, min(first, span.first), max(last, span.last))


def modelled(entries: list[Entry]) -> Sums:
    """The same, entry by entry."""
    sums: Sums = {}
    for each in entries:
        second = each.time.hour * 3600 + each.time.minute * 60 + each.time.second
        names = [each.outcome + (each.reason or "")]
        names += each.record_ids if each.outcome == ANSWERED else []
        for name in names:
            add(sums, (each.key_id or "", each.operation, name), DaySpan(1, second, second))
    return sums


@pytest.mark.parametrize(
    ("piece", "chunk", "rows"),
    [(1 << 20, 1 << 25, 4_000), (700, 1 << 25, 4_000), (700, 2_000, 4_000), (700, 1 << 25, 3)],
)
def test_each_line_counts_once_however_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int, chunk: int, rows: int
) -> None:
    for name, value in (("PIECE", piece), ("CHUNK", chunk), ("ROWS", rows)):
        monkeypatch.setattr(f"gateway.audit.index.{name}", value)
    entries, path = lines(300), tmp_path / "day"
    data = written(path, entries)
    sums: Sums = {}
    start = steps = seen = 0
    while (counted := count(path, start)).end > start:
        added(sums, counted)
        start, steps, seen = counted.end, steps + 1, seen + counted.lines
    assert (start, seen) == (len(data), 302)
    assert (steps == 1) == (chunk > 2_000 and rows > 3)
    assert sums == modelled(entries)


def test_lines_that_are_none_are_passed_over_and_half_a_line_waits(tmp_path: Path) -> None:
    entries, path = lines(40), tmp_path / "day"
    parts = written(path, entries).splitlines(keepends=True)
    odd = [
        b"spoilt\n",
        b'{"time":"\xa4"}\n',
        b"{}\n",
        b"\n",
        b'{"seq":1}{"seq":2}\n',
        b'{"seq":9,"time":"some day"}\n',
    ]
    # the kind and day of a line that counts, but at no time of that day
    timeless = re.sub(rb"T[0-9]{2}:", b"Txx:", texts([entries[0]])[0]) + b"\n"
    odd += [timeless, timeless]
    half = parts[-1][:-20]
    path.write_bytes(b"".join([timeless, *parts[:20], *odd, *parts[20:-1], half]))
    counted = count(path, 0)
    assert counted.end == path.stat().st_size - len(half)
    assert counted.lines == 42 + len(odd)
    sums: Sums = {}
    added(sums, counted)
    assert sums == modelled(entries[:-1])
    assert count(path, counted.end).end == counted.end
    path.write_bytes(b"\n" + half)
    assert (count(path, 0).end, count(path, 0).lines) == (1, 1)
    assert count(tmp_path / "gone", 7).end == 7


def test_nobodys_calls_have_a_view_of_their_own(tmp_path: Path) -> None:
    nobody = Entry(START, "0" * 32, None, "", (), None, None, REFUSED, "KeyMissing")
    written(tmp_path / "day", [nobody])
    [(_, view, *_)] = count(tmp_path / "day", 0).kinds()
    assert view == CallView("", "", "", "")
