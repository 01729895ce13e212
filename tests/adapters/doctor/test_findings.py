"""What a doctor's findings say of a mapping and of hours, whatever is behind the adapter."""

from datetime import date, time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from adapters.doctor.case import MOST_COMMENTS, Look, todos
from adapters.doctor.diary import DAYS, hours_told, week_in_words
from adapters.doctor.sql.joins import joined
from adapters.doctor.values import FieldTally, Leads, fields_judged, leads_judged
from adapters.documents.document import Document, parse_document
from adapters.examination import Verdict, agreeing
from adapters.mapped.generated import RowValue
from adapters.mapping.hours import Shift
from adapters.sample import MAPPING as MAPPING_OF_THE_SAMPLE
from adapters.values.convert import Converter, Text, Unreadable
from adapters.values.times import LocalTime

MONDAY = date(2026, 3, 2)
MAPPING = """\
resources:
  appointments:
    fields:
      reason: {source: a.reason, codes: {A: TODO}}
      color: a.TODO_COLOUR
booking:
  steps:
    - insert: visits
      values: {branch: "TODO: which?", state: P}
"""


def document(text: str) -> Document:
    return parse_document(text.encode(), "mine.yaml")


def look(*place: str) -> Look:
    return Look(document(MAPPING), "values", "appointments", None, place)


def week(days: str, start: str, end: str) -> list[Shift]:
    return [Shift(int(each), time.fromisoformat(start), time.fromisoformat(end)) for each in days]


def on(day: int) -> Shift:
    return Shift(1, time(9), time(12), date(2026, 3, day))


@pytest.mark.parametrize(
    ("shifts", "shown"),
    [
        (
            [*week("12345", "09:00", "17:00"), *week("6", "09:00", "12:00")],
            "Mon-Fri 09:00-17:00; Sat 09:00-12:00",
        ),
        (
            [*week("124", "14:00", "18:00"), *week("124", "09:00", "12:00")],
            "Mon-Tue 09:00-12:00, 14:00-18:00; Thu 09:00-12:00, 14:00-18:00",
        ),
        (week("7", "20:00", "00:00"), "Sun 20:00-24:00"),
        ([on(1), on(3)], "Tue 2026-03-03 09:00-12:00"),
        ([on(1)], "no day from 2026-03-02 on"),
        (
            [on(each) for each in range(2, 11)],
            "; ".join(
                [
                    *(f"{name} 2026-03-{day:02} 09:00-12:00" for day, name in enumerate(DAYS, 2)),
                    "and 2 later days",
                ]
            ),
        ),
    ],
)
def test_hours_are_said_as_a_person_says_them(shifts: list[Shift], shown: str) -> None:
    assert week_in_words(shifts, MONDAY) == shown


def test_vets_of_the_same_hours_are_told_together_and_many_weeks_are_cut() -> None:
    same = {"a": week("1", "09:00", "17:00"), "b": week("1", "09:00", "17:00"), "c": []}
    told = look()
    hours_told(told, same, MONDAY)
    [only] = told.findings
    assert (only.verdict, only.text, only.ids) == (
        Verdict.OK,
        "2 vets: Mon 09:00-17:00",
        ("a", "b"),
    )
    many = {str(each): week("1", "09:00", f"17:{each}") for each in range(10, 30)}
    hours_told(told, many, MONDAY)
    assert told.findings[-1].text == "and 8 other weeks of hours"


def test_a_decision_that_was_left_open_is_named_at_its_place() -> None:
    found = [(each.verdict, each.place, each.subject) for each in todos(document(MAPPING))]
    assert found == [
        (Verdict.WARNING, "mine.yaml:4:45", "appointments.reason.codes.A"),
        (Verdict.FAILED, "mine.yaml:9:24", "booking.steps.0.branch"),
    ]
    assert all(each.remedy for each in todos(document(MAPPING)))


def test_a_comment_with_an_open_decision_is_told_once_for_each_line() -> None:
    text = MAPPING.replace("state: P}", "state: P}  # TODO: which state?")
    text += """\
# TODO: is this all?
diary:  # no TODOS here
  step: 15   # todo, TODO ask, TODO again
  where: >-  # TODO: which of these?
    a = '#TODO' # TODO of the text
  note: "a # TODO"  # TODO
"""
    found = [each for each in todos(document(text)) if each.subject == "comments"]
    assert {each.verdict for each in found} == {Verdict.WARNING}
    assert [(each.place.partition(":")[2], each.text) for each in found] == [
        ("10:3", "TODO in a comment: is this all?"),
        ("12:22", "TODO in a comment: ask, TODO again"),
        ("13:16", "TODO in a comment: which of these?"),
        ("15:23", "TODO in a comment"),
    ]


@pytest.mark.parametrize(("more", "said"), [(1, "1 line more"), (5, "5 lines more")])
def test_of_many_open_comments_the_first_are_told(more: int, said: str) -> None:
    text = "version: 2\n" + "# TODO: this\n" * (MOST_COMMENTS + more)
    *told, last = todos(document(text))
    assert [each.place for each in told] == [
        f"mine.yaml:{line}:3" for line in range(2, MOST_COMMENTS + 2)
    ]
    assert (said in last.text, last.place) == (True, f"mine.yaml:{MOST_COMMENTS + 2}:3")


@pytest.mark.parametrize(
    "file",
    [MAPPING_OF_THE_SAMPLE, *sorted(Path(__file__).parents[3].glob("examples/*/mapping.yaml"))],
    ids=lambda file: file.parent.name,
)
def test_no_mapping_that_is_shipped_leaves_a_decision_open(file: Path) -> None:
    assert "#" in file.read_text("utf-8")
    assert [*todos(document(file.read_text("utf-8")))] == []


@pytest.mark.parametrize(
    ("values", "is_told"),
    [
        (["same"] * 20, True),
        (["same"] * 19, False),
        (["same"] * 20 + ["other"], False),
        (["same"] * 20 + [None], False),
        ([None] * 20, False),
    ],
)
def test_a_value_is_told_to_be_alike_in_all_of_many_rows(
    values: list[str | None], *, is_told: bool
) -> None:
    tally = FieldTally(RowValue(lambda row: row, lambda raw: raw, Text()), is_selected=True)
    for each in values:
        tally.take(each, None)
    told = look("resources", "appointments")
    fields_judged(told, {"reason": tally}, len(values))
    found = [each.place for each in told.findings if "same value" in each.text]
    assert found == ["mine.yaml:4:15"] * is_told


def unreadable(row: object) -> object:
    raise Unreadable


@pytest.mark.parametrize("converter", [Text(), LocalTime(ZoneInfo("Europe/Paris"))])
def test_a_value_that_cannot_even_be_fetched_is_counted_as_unreadable(
    converter: Converter,
) -> None:
    tally = FieldTally(RowValue(unreadable, converter.decode, converter))
    assert tally.take({"time": {}}, "an id") is None
    told = look("resources", "appointments")
    fields_judged(told, {"reason": tally}, 1)
    [found] = told.findings
    assert "1 row of 1 that its converter cannot read" in found.text


@pytest.mark.parametrize(
    ("count", "several", "said"),
    [
        (0, "lead", "lead"),
        (1, "lead", "leads"),
        (2, "lead", "lead"),
        (1, "are", "is"),
        (1, "have", "has"),
        (1, "were", "was"),
        (3, "were", "were"),
    ],
)
def test_a_verb_goes_with_its_count(count: int, several: str, said: str) -> None:
    assert agreeing(count, several) == said


@pytest.mark.parametrize(
    ("count", "lost", "said"),
    [
        (1, 0, "1 row leads to clients"),
        (2, 0, "2 rows lead to clients"),
        (9, 1, "1 row of 9 leads to none of the clients"),
    ],
)
def test_a_finding_about_one_row_speaks_of_one(count: int, lost: int, said: str) -> None:
    told = look()
    leads_judged(told, "clients", Leads(count=count, lost=lost), 0.5, "is it the key?")
    assert [each.text for each in told.findings] == [said]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("LINES l JOIN items AS i ON i.id = l.item", ["items i: i.id = l.item"]),
        ("LINES inner join s.items on s.items.id = LINES.item", []),
        ('"Lines" l JOIN "Items" i ON l."Item" = i."Id"', ['"Items" i: i."Id" = l."Item"']),
        (
            "a JOIN b ON b.id = a.b JOIN c ON c.id = b.c LEFT JOIN d ON d.id = a.d AND d.x = 1",
            ["b b: b.id = a.b"],
        ),
        ("a JOIN b ON b.id = a.b AND b.hidden = 0", []),
        ("a JOIN (SELECT 1 AS id) b ON b.id = a.b", []),
        ("(SELECT 1 AS id) a JOIN b ON b.id = a.b", None),
        ("a, c JOIN b ON b.id = a.b", None),
        ("a RIGHT JOIN c ON c.id = a.c JOIN b ON b.id = a.b", None),
        ("a", None),
    ],
)
def test_a_join_is_taken_apart_where_that_is_sure(rows: str, said: list[str] | None) -> None:
    plain = joined(rows)
    told = plain and [f"{it.table} {it.alias}: {it.theirs} = {it.own}" for it in plain.joins]
    assert told == said
