"""Each group with a condition is a branch of its own, of which rehearsals take both sides."""

from pathlib import Path

from adapters.examination import UNREHEARSED, Verdict
from tests.adapters.doctor.test_learning import rehearsed
from tests.races.practice import practice

TABLE = "CREATE TABLE part (visit INTEGER, role VARCHAR(9), who INTEGER)"
STEP = """\
    - insert: part
      each:
        - {role: VET, who: {draft: vetId}}
        - {role: KIND, who: {draft: appointmentTypeId}, if: appointmentTypeId}
        - {role: LONG, who: 1, if: {sql: ":minutes > 40"}}
        - {role: ROOM, who: 1, if: schedule}
        - {role: LONGEST, who: 1, if: {sql: ":minutes > 600"}}
        - {role: ALWAYS, who: 1, if: vetId}
      values: {visit: {made: appointment}, role: {each: role}, who: {each: who}}
"""
NEVER = Verdict.FAILED, "no booking that was rehearsed writes this group"
ALWAYS = (
    Verdict.NOTE,
    ("every booking that was rehearsed writes this group: not rehearsed is a booking without it"),
)


async def test_what_no_booking_writes_or_leaves_out_is_told_at_its_group(tmp_path: Path) -> None:
    with practice("sqlite", tmp_path, TABLE) as made:
        mapping = made.mapping.replace("    - insert: journal\n", f"{STEP}    - insert: journal\n")
        found = await rehearsed(made, tmp_path, mapping)
    lines = mapping.splitlines()
    of_groups = [each for each in found if "this group" in each.text]
    told = [(lines[int(each.place.split(":")[-2]) - 1].split()[2], each) for each in of_groups]
    assert {role: (each.verdict, each.text) for role, each in told} == {
        "ROOM,": NEVER,
        "LONGEST,": NEVER,
        "ALWAYS,": ALWAYS,
    }
    assert [role for role, each in told if each.code == UNREHEARSED] == ["ALWAYS,"]
