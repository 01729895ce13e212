"""Whatever the rooms, grids, rows and appointments: an offered time is booked just as shown."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.base import SlotTaken
from adapters.sql.adapter import SqlAdapter
from tests.adapters.sql.rooms import BLOCKED, DAY, booked, changed, draft, free, in_rooms, rooms
from tests.races.practice import Practice

# Prepared rows of room 7, several in a row for one visit, beside hours by which times are computed.
ROWS = """\
  slots:
    - {from: appointment f, where: f.state = 'FREE', schedule: f.room, key: f.id, start: f.starts,
       end: f.ends}
  busy:
"""
TAKE = """\
    - update: appointment
      where: id = :slot AND state = 'FREE'
      for: slot
      each: slot
      name: appointment
      values:
        vet: {draft: vetId}
        kind: {draft: appointmentTypeId}
        parent: {sql: "NULLIF(:firstSlot, :slot)"}
        state: BOOKED
        note: {draft: reason}
        urgent: {draft: isUrgent}
        source: gateway
        made: {draft: createdAt}
    - insert: appointment
      for: time
"""
LAST = "SELECT MAX(l.ends) FROM appointment l WHERE a.id IN (l.id, l.parent)"
KEY = ("      key: b.id\n", "      key: COALESCE(b.parent, b.id)\n")
# Rows of ours that another booked row of the vet or of the room lies over.
OVERLAPS = """\
SELECT COUNT(*) FROM appointment o JOIN appointment x ON x.id <> o.id
  AND x.starts < o.ends AND o.starts < x.ends AND (x.vet = o.vet OR x.room = o.room)
  WHERE o.source = 'gateway' AND x.state = 'BOOKED' AND o.state = 'BOOKED'"""


def mapping_of(made: Practice) -> str:
    text = in_rooms(made, (BLOCKED, BLOCKED.replace(*KEY)), ("  busy:\n", ROWS))
    return changed(
        text,
        ("      vet: b.vet\n      key: b.id\n", f"      vet: b.vet\n{KEY[1]}"),
        ("    where: a.state <> 'FREE'\n", "    where: a.state <> 'FREE' AND a.parent IS NULL\n"),
        ("      endTime: a.ends\n", f"      endTime: {LAST}\n"),
        ("    - insert: appointment\n", TAKE),
    )


@pytest.fixture(scope="module")
def practice(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("offers")
    with rooms("sqlite", folder, "ALTER TABLE appointment ADD COLUMN parent INTEGER") as made:
        yield made, folder


def clock(minutes: int) -> str:
    return f"{DAY} {minutes // 60:02d}:{minutes % 60:02d}:00"


MINUTES = st.integers(8 * 60, 13 * 60).map(lambda minutes: minutes // 5 * 5)
LENGTHS = st.sampled_from([5, 10, 15, 20, 30, 45, 60])
SHIFT = st.tuples(st.sampled_from([7, 8]), MINUTES, st.sampled_from([20, 60, 90, 180]))
BUSY = st.tuples(st.sampled_from([1, 2, "NULL"]), st.sampled_from([7, 8, "NULL"]), MINUTES, LENGTHS)
# rows that mostly stand back to back: each begins after a gap behind the one before
SLOTS = st.lists(st.tuples(st.sampled_from([0, 0, 0, 5, -10]), LENGTHS), max_size=8)
GRIDS = st.fixed_dictionaries(
    {
        "step": st.sampled_from(["NULL", "5", "'00:20'", "45", "60"]),
        "lasts": st.sampled_from(["NULL", "10", "'00:25'", "60"]),
        "kind": st.sampled_from(["NULL", "1", "3"]),
    }
)


def rows_of(
    grids: Sequence[dict[str, str]], shifts: Sequence[Any], busy: Sequence[Any],
    slots: Sequence[tuple[int, int]], lengths: Sequence[Any],
) -> list[str]:  # fmt: skip
    """The statements that make the drawn practice of the one before."""
    made = ["DELETE FROM appointment", "DELETE FROM attendance", "DELETE FROM lengths"]
    made.append("DELETE FROM opens")
    for room, grid in zip((7, 8), grids, strict=True):
        values = ", ".join(f"{name} = {value}" for name, value in grid.items())
        made.append(f"UPDATE room SET {values} WHERE id = {room}")
    for room, starts, lasts in shifts:
        span = f"'{clock(starts)[11:16]}', '{clock(starts + lasts)[11:16]}'"
        made.append(f"INSERT INTO opens VALUES ({room}, '1-5', {span})")
    for vet, room, starts, lasts in busy:
        made.append(
            "INSERT INTO appointment (vet, room, starts, ends, state) VALUES"
            f" ({vet}, {room}, '{clock(starts)}', '{clock(starts + lasts)}', 'BOOKED')"
        )
    begins = 9 * 60
    for gap, lasts in slots:
        begins += gap
        made.append(
            "INSERT INTO appointment (room, starts, ends, state) VALUES"
            f" (7, '{clock(begins)}', '{clock(begins + lasts)}', 'FREE')"
        )
        begins += lasts
    for kind, room, minutes in lengths:
        made.append(f"INSERT INTO lengths VALUES ({kind}, {room}, {minutes})")
    return made


LENGTH = st.tuples(
    st.sampled_from([1, 2, 3]), st.sampled_from([7, 8]), st.sampled_from(["NULL", "20", "'00:50'"])
)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(
    grids=st.tuples(GRIDS, GRIDS),
    shifts=st.lists(SHIFT, min_size=1, max_size=4),
    busy=st.lists(BUSY, max_size=5),
    slots=SLOTS,
    lengths=st.lists(LENGTH, min_size=4, max_size=8),
    wanted=st.lists(
        st.tuples(st.sampled_from([1, 2]), st.sampled_from([None, 1, 2, 3]), st.integers(0, 99)),
        min_size=1,
        max_size=4,
    ),
)
def test_an_offered_time_is_booked_with_the_end_that_was_shown_and_over_nothing(
    practice: tuple[Practice, Path],
    grids: Any, shifts: Any, busy: Any, slots: Any, lengths: Any, wanted: Any,
) -> None:  # fmt: skip
    made, folder = practice

    async def tried() -> None:
        await made.run(*rows_of(grids, shifts, busy, slots, lengths))
        adapter = made.open(folder, mapping_of(made))
        try:
            for vet, kind, which in wanted:
                await one_booked(made, adapter, vet, kind, which)
        finally:
            await adapter.aclose()

    asyncio.run(tried())


async def one_booked(
    made: Practice, adapter: SqlAdapter, vet: int, kind: int | None, which: int
) -> None:
    shown = await free(adapter, vet=vet, kind=kind)
    assert len({begins for begins, _ in shown}) == len(shown)
    if not shown:
        return
    begins, minutes = shown[which % len(shown)]
    more = {"vet": vet} if kind is None else {"vet": vet, "kind": kind}
    assert (await booked(adapter, begins, **more))[1] == minutes
    assert await made.run(OVERLAPS) == [(0,)]
    with pytest.raises(SlotTaken):
        await adapter.create_appointment(await draft(adapter, begins, **more))
    start = datetime.combine(DAY, datetime.strptime(begins, "%H:%M").time())  # noqa: DTZ007
    ends = start + timedelta(minutes=minutes)
    for again, lasts in await free(adapter, vet=vet, kind=kind):
        other = datetime.combine(DAY, datetime.strptime(again, "%H:%M").time())  # noqa: DTZ007
        assert other >= ends or other + timedelta(minutes=lasts) <= start
