"""What is counted of a day's file does not hang on how it is read."""

from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from gateway.audit.entries import ANSWERED, REFUSED, AuditSecret, ChainHead, Entry, seal
from gateway.audit.index import CallView, Counted, DaySpan, count
from gateway.observe.lines import texts
from tests.audit.chains import KEY, OTHER_KEY, START

Sums = dict[tuple[str, str, str], tuple[int, int, int]]


def lines(number: int) -> list[Entry]:
    random = Random(number)
    return [
        Entry(
            START.replace(second=at * 59 // number),
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
    data, _ = seal(texts(entries), ChainHead(), AuditSecret(bytes(32)))
    path.write_bytes(data)
    return data


def added(sums: Sums, counted: Counted) -> None:
    parts = [(view, spans) for (view, _), spans in counted.reads.items()]
    for view, spans in parts:
        for record, span in spans.items():
            add(sums, (view.key_id, view.operation, record), span)
    for (view, _), ends in counted.calls.items():
        for (outcome, reason), span in ends.items():
            add(sums, (view.key_id, view.operation, outcome + reason), span)


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
    assert (start, seen) == (len(data), 300)
    assert (steps == 1) == (chunk > 2_000 and rows > 3)
    assert sums == modelled(entries)


def test_lines_that_are_none_are_passed_over_and_half_a_line_waits(tmp_path: Path) -> None:
    entries, path = lines(40), tmp_path / "day"
    parts = written(path, entries).splitlines(keepends=True)
    odd = [b"spoilt\n", b"{}\n", b"\n", b'{"seq":1}{"seq":2}\n', b'{"seq":9,"time":"some day"}\n']
    half = parts[-1][:-20]
    path.write_bytes(b"".join([*parts[:20], *odd, *parts[20:-1], half]))
    counted = count(path, 0)
    assert counted.end == path.stat().st_size - len(half)
    assert counted.lines == 39 + len(odd)
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
    [(view, _)] = count(tmp_path / "day", 0).calls
    assert view == CallView("", "", "", "")
