"""What workers have counted: once, whoever hears of it when, and whatever is started again."""

import itertools
import re
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
from msgspec import structs

from gateway.observe.metrics import Series, exposition
from gateway.processes import reports
from gateway.processes.reports import Report, Workers
from gateway.purposes import NotReady


def figures(calls: float) -> dict[str, tuple[Series, ...]]:
    return {
        "gateway_limit_hits_total": (Series((), calls),),
        "gateway_connections": (Series((), calls),),
    }


def report(pid: int, calls: float) -> Report:
    more = {"stopping": False, "policy": "x", "parts": {}}
    return Report(worker=1, pid=pid, figures=figures(calls), **more)  # type: ignore[arg-type]


def of_all(made: Workers, *living: Report, name: str = "gateway_limit_hits_total") -> float:
    text = exposition(made.snapshot([(each, True) for each in living])).decode()
    [told] = re.findall(rf"^{name} (.*)$", text, re.MULTILINE)
    return float(told)


def workers(folder: Path, own: float) -> Workers:
    """Of an operations process that has counted so much itself."""
    file = folder / "sums.json"
    return Workers(folder / "reports.sock", file, lambda: figures(own), 3)


def test_a_worker_that_tells_a_last_time_on_another_line_counts_once(tmp_path: Path) -> None:
    made = workers(tmp_path, 0)
    made.ended(report(7, 5))
    assert of_all(made, report(7, 6)) == 6, "it was away for a moment only"
    made.ended(report(7, 8))
    made.ended(report(8, 1))
    assert of_all(made) == 9
    assert of_all(made, name="gateway_connections") == 0


def test_of_many_that_are_gone_the_sum_stays(tmp_path: Path) -> None:
    made = workers(tmp_path, 0)
    for pid in range(3 * reports.MOST_GONE):
        made.ended(report(pid, 1))
    assert of_all(made) == 3 * reports.MOST_GONE


async def test_the_operations_process_that_comes_next_counts_on(tmp_path: Path) -> None:
    before = workers(tmp_path, 100)
    before.ended(report(6, 10))
    await before.keep([(report(7, 5), True), (report(8, 3), True)])
    after = workers(tmp_path, 1)
    assert of_all(after) == 119, "also before a worker has called"
    assert of_all(after, report(7, 6)) == 120
    after.ended(report(7, 9))
    assert of_all(after, report(9, 1)) == 124, "and what died with the one before stays"


async def test_no_figure_falls_below_what_was_shown_before_the_next_process(tmp_path: Path) -> None:
    counted = itertools.count(100)
    folder, file = tmp_path / "reports.sock", tmp_path / "sums.json"
    made = Workers(folder, file, lambda: figures(next(counted)), 3)  # it counts on meanwhile
    shown = await made.figures()
    [hits] = shown["gateway_limit_hits_total"]
    assert of_all(workers(tmp_path, 0)) >= hits.value


async def test_sums_that_cannot_be_kept_or_read_are_none(tmp_path: Path) -> None:
    file = tmp_path / "sums.json"
    file.with_suffix(".new").mkdir()
    made = workers(tmp_path, 4)
    await made.keep([])
    assert not file.exists()
    file.write_bytes(b"{")
    assert of_all(workers(tmp_path, 4)) == 4


async def test_what_ails_all_workers_is_told_once_with_their_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = workers(tmp_path, 0)
    ill = {"store": {"ready": False, "reason": "it is gone", "stops": ["bookings"]}}
    first = structs.replace(report(1, 0), parts=ill)
    second, third = (structs.replace(first, worker=number) for number in (2, 3))
    answers = [(first, True), (second, True), (third, False)]
    monkeypatch.setattr(made, "ask", AsyncMock(return_value=answers))
    with pytest.raises(NotReady, match=r"^workers 1, 2: store: it is gone; worker 3: it does not"):
        await made.probe()
