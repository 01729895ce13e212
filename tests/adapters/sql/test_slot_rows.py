"""Prepared rows that stand back to back are one time for a longer visit, taken whole or not."""

import asyncio
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from adapters.base import BackendNonsense, SlotTaken
from adapters.doctor.sql import examine
from adapters.documents.problems import DocumentErrors
from adapters.examination import Examination, Verdict
from tests.adapters.sql.rooms import DAY, EVERY_KIND, NOW, booked, changed, draft, free, ids
from tests.races.practice import Practice, practice

kinds = pytest.mark.parametrize("kind", EVERY_KIND)
# Rows of 20 minutes in the morning, with a gap at 10:00; one of 30 minutes at noon.
ROWS = (
    "ALTER TABLE appointment ADD COLUMN parent INTEGER",
    "DELETE FROM appointment WHERE state = 'FREE'",
    *(
        "INSERT INTO appointment (vet, starts, ends, state, made) VALUES"
        f" (1, '{DAY} {starts}:00', '{DAY} {ends}:00', 'FREE', '2026-01-02 03:04:05')"
        for starts, ends in (
            ("09:00", "09:20"), ("09:20", "09:40"), ("09:40", "10:00"),
            ("10:20", "10:40"), ("10:40", "11:00"), ("12:00", "12:30"),
        )
    ),
)  # fmt: skip
EACH = (
    ("      for: slot\n", "      for: slot\n      each: slot\n"),
    ("        made: {draft: createdAt}",
     "        made: {draft: createdAt}\n        vet: {draft: vetId}\n"
     "        parent: {sql: \"NULLIF(:firstSlot, :slot)\"}"),
    ("    where: a.state <> 'FREE'\n", "    where: a.state <> 'FREE' AND a.parent IS NULL\n"),
    ("      endTime: a.ends\n",
     "      endTime: SELECT MAX(l.ends) FROM appointment l WHERE a.id IN (l.id, l.parent)\n"),
    ("      key: b.id\n", "      key: COALESCE(b.parent, b.id)\n"),
)  # fmt: skip
TAKEN = "SELECT id, parent, state FROM appointment WHERE state <> 'FREE' AND id > 1 ORDER BY id"


def of_rows(made: Practice, *pairs: tuple[str, str]) -> str:
    return changed(made.mapping, *EACH, *pairs)


@kinds
async def test_fact_25_rows_back_to_back_are_one_time_for_a_longer_type(
    kind: str, tmp_path: Path
) -> None:
    with practice(kind, tmp_path, *ROWS, slots_on=(DAY,)) as made:
        adapter = made.open(tmp_path, of_rows(made))
        # the types last 15, 30 and 45 minutes; none ends before its last row
        assert await free(adapter, kind=1) == [
            ("09:00", 20), ("09:20", 20), ("09:40", 20), ("10:20", 20), ("10:40", 20), ("12:00", 30)
        ]  # fmt: skip
        shown = [("09:00", 40), ("09:20", 40), ("10:20", 40), ("12:00", 30)]
        assert await free(adapter, kind=2) == shown
        assert await free(adapter, kind=3) == [("09:00", 60)]
        types = await ids(adapter, "appointmentTypes")
        assert await booked(adapter, "09:20", kind=2) == (types[1], 40)
        rows = await made.run(TAKEN)
        first = rows[0][0]
        assert rows == [(first, None, "BOOKED"), (first + 1, first, "BOOKED")]
        assert await free(adapter, kind=2) == shown[2:]
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(await draft(adapter, "09:00", kind=2))
        await adapter.aclose()


@kinds
async def test_fact_25_the_moment_of_the_booking_is_written_over_that_of_the_row(
    kind: str, tmp_path: Path
) -> None:
    with practice(kind, tmp_path, *ROWS, slots_on=(DAY,)) as made:
        adapter = made.open(tmp_path, of_rows(made))
        record = await adapter.create_appointment(await draft(adapter, "09:00", kind=3))
        assert record["createdAt"] == f"{NOW:%Y-%m-%dT%H:%M:%S}Z"
        await adapter.aclose()


@kinds
async def test_fact_25_rows_are_taken_all_or_none(kind: str, tmp_path: Path) -> None:
    with practice(kind, tmp_path, *ROWS, slots_on=(DAY,)) as made:
        # the row at 09:40 looks free, and is not by the condition of the update
        where = (
            "id = :slot AND state = 'FREE'",
            "id = :slot AND state = 'FREE' AND urgent IS NULL",
        )
        await made.run(f"UPDATE appointment SET urgent = FALSE WHERE starts = '{DAY} 09:40:00'")
        adapter = made.open(tmp_path, of_rows(made, where))
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(await draft(adapter, "09:00", kind=3))
        assert await made.run(TAKEN) == []
        assert (await booked(adapter, "09:00", kind=2))[1] == 40
        await adapter.aclose()


@kinds
async def test_of_bookings_at_once_each_row_goes_to_one(kind: str, tmp_path: Path) -> None:
    with practice(kind, tmp_path, *ROWS, slots_on=(DAY,)) as made:
        adapter = made.open(tmp_path, of_rows(made))
        wanted = [
            await draft(adapter, begins, kind=kind_)
            for begins, kind_ in (("09:00", 3), ("09:20", 2), ("09:00", 2), ("09:40", 1)) * 2
        ]
        outcomes = await asyncio.gather(
            *map(adapter.create_appointment, wanted), return_exceptions=True
        )
        spans = sorted(
            tuple(datetime.fromisoformat(each[name]) for name in ("scheduledAt", "endTime"))
            for each in outcomes
            if isinstance(each, dict)
        )
        assert spans
        assert all(isinstance(each, dict | SlotTaken) for each in outcomes)
        assert all(one[1] <= two[0] for one, two in pairwise(spans))
        await adapter.aclose()


async def test_a_time_of_several_rows_breaks_no_law_of_its_parts(tmp_path: Path) -> None:
    with practice("sqlite", tmp_path, *ROWS, slots_on=(DAY,)) as made:
        others = EACH[3][1].replace("a.id IN (l.id, l.parent)", "l.vet = a.vet AND l.id <> a.id")
        told = []
        for text in (of_rows(made), of_rows(made, (EACH[3][1], others))):
            adapter = made.open(tmp_path, text)
            if not told:
                assert (await booked(adapter, "09:20", kind=2))[1] == 40
            found = [each async for each in examine(adapter, Examination(now=NOW))]
            await adapter.aclose()
            laws = ("busy-as-appointments", "kinds-told-apart")
            told.append({each.subject: each.verdict for each in found if each.subject in laws})
    assert told[0] == {"busy-as-appointments": Verdict.OK, "kinds-told-apart": Verdict.OK}
    assert told[1] == {
        "busy-as-appointments": Verdict.FAILED,
        "kinds-told-apart": Verdict.WARNING,
    }


async def test_without_each_a_longer_type_needs_a_longer_row(tmp_path: Path) -> None:
    with practice("sqlite", tmp_path, *ROWS, slots_on=(DAY,)) as made:
        adapter = made.open(tmp_path)
        assert await free(adapter, kind=2) == [("12:00", 30)]
        await adapter.aclose()


async def test_a_list_in_each_makes_no_time_of_several_rows(tmp_path: Path) -> None:
    acts = (
        "values: {appointment: {made: appointment}, action: book, ",
        "each: [{deed: book}]\n"
        "      values: {appointment: {made: appointment}, action: {each: deed}, ",
    )
    with practice("sqlite", tmp_path, *ROWS, slots_on=(DAY,)) as made:
        adapter = made.open(tmp_path, changed(made.mapping, acts))
        assert await free(adapter, kind=2) == [("12:00", 30)]
        assert (await booked(adapter, "09:00", kind=1))[1] == 20
        await adapter.aclose()


async def test_rows_of_which_a_booking_writes_the_end_are_offered_as_long_as_the_type(
    tmp_path: Path,
) -> None:
    with practice("sqlite", tmp_path, *ROWS, slots_on=(DAY,)) as made:
        ends = (
            "        state: BOOKED\n",
            "        state: BOOKED\n        ends: {draft: endTime}\n",
        )
        adapter = made.open(tmp_path, changed(made.mapping, ends))
        assert (await free(adapter, kind=1))[0] == ("09:00", 15)
        assert (await booked(adapter, "09:00", kind=1))[1] == 15
        await adapter.aclose()


async def test_an_end_that_reads_back_otherwise_than_offered_is_undone(tmp_path: Path) -> None:
    with practice("sqlite", tmp_path, *ROWS, slots_on=(DAY,)) as made:
        whole = EACH[3][1].replace("MAX(l.ends)", "MIN(l.ends)")
        adapter = made.open(tmp_path, of_rows(made, (EACH[3][1], whole)))
        with pytest.raises(BackendNonsense, match="another endTime"):
            await adapter.create_appointment(await draft(adapter, "09:00", kind=2))
        assert await made.run(TAKEN) == []
        await adapter.aclose()


WRONG = [
    (("      for: slot\n", "      each: slot\n"), "each: slot needs for: slot"),
    (("      for: slot\n", "      for: slot\n      each: row\n"), "each"),
    (
        ("    - insert: journal", "    - {counter: c, column: n, name: x, for: slot, each: slot}\n"
         "    - insert: journal"),
        "each does not go with counter",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("pair", "said"), WRONG)
async def test_a_wrong_each_is_refused_at_its_line(
    pair: tuple[str, str], said: str, tmp_path: Path
) -> None:
    with practice("sqlite", tmp_path, *ROWS, slots_on=(DAY,)) as made:
        with pytest.raises(DocumentErrors) as caught:
            made.open(tmp_path, changed(made.mapping, pair))
        assert said in str(caught.value.problems[0].text)


@kinds
async def test_fact_25_a_rehearsal_takes_one_row_and_several_and_sees_the_row_s_old_moment(
    kind: str, tmp_path: Path
) -> None:
    with practice(kind, tmp_path, *ROWS, slots_on=(DAY,)) as made:
        moment = ("        made: {draft: createdAt}\n        vet", "        vet")
        before = await made.run(TAKEN)
        for text, wrong in ((of_rows(made), ""), (of_rows(made, moment), "createdAt")):
            adapter = made.open(tmp_path, text)
            found = [each async for each in examine(adapter, Examination(now=NOW, booking=True))]
            await adapter.aclose()
            rehearsed = [each for each in found if each.subject == "rehearsal"]
            failed = [each.text for each in rehearsed if each.verdict is Verdict.FAILED]
            assert bool(failed) is bool(wrong)
            assert all(wrong in each and "{draft: createdAt}" in each for each in failed)
            words = " ".join(each.text for each in rehearsed)
            assert "a slot row, no type" in words
            assert "several slot rows, no type" in words
            assert await made.run(TAKEN) == before
