"""What a doctor's findings say of a mapping and of hours, whatever is behind the adapter."""

from datetime import date, time

import pytest

from adapters.document import Document, parse_document
from adapters.examine import Verdict
from adapters.findings.hours import DAYS, hours_read, said
from adapters.findings.links import Leads, led
from adapters.findings.maker import FindingMaker, agreeing
from adapters.findings.todos import todos
from adapters.slots import Shift

MONDAY = date(2026, 3, 2)
MAPPING = """\
resources:
  appointments:
    fields:
      reason: {sql: a.reason, codes: {A: TODO}}
      color: a.TODO_COLOUR
booking:
  writes:
    - insert: visits
      values: {branch: "TODO: which?", state: P}
"""


class Maker(FindingMaker):
    """Makes findings about one mapping."""

    def __init__(self, text: str = "version: 1") -> None:
        self.file = parse_document(text.encode(), "mine.yaml")

    @property
    def document(self) -> Document:
        return self.file


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
    assert said(shifts, MONDAY) == shown


def test_vets_of_the_same_hours_are_told_together_and_many_weeks_are_cut() -> None:
    same = {"a": week("1", "09:00", "17:00"), "b": week("1", "09:00", "17:00"), "c": []}
    [only] = hours_read(Maker(), same, MONDAY)
    assert (only.verdict, only.text, only.ids) == (
        Verdict.OK,
        "2 vets: Mon 09:00-17:00",
        ("a", "b"),
    )
    many = {str(each): week("1", "09:00", f"17:{each}") for each in range(10, 30)}
    *_, last = hours_read(Maker(), many, MONDAY)
    assert last.text == "and 8 other weeks of hours"


def test_a_decision_that_was_left_open_is_named_at_its_place() -> None:
    found = [(each.verdict, each.place, each.subject) for each in todos(Maker(MAPPING))]
    assert found == [
        (Verdict.WARNING, "mine.yaml:4:42", "appointments.reason.codes.A"),
        (Verdict.FAILED, "mine.yaml:9:24", "booking.writes.0.branch"),
    ]
    assert all(each.remedy for each in todos(Maker(MAPPING)))


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
    ("leads", "said"),
    [
        (Leads(count=1), "1 row leads to clients"),
        (Leads(count=2), "2 rows lead to clients"),
        (Leads(count=9, lost=1), "1 row of 9 leads to none of the clients"),
    ],
)
def test_a_finding_about_one_row_speaks_of_one(leads: Leads, said: str) -> None:
    assert led(Maker(), "patients.clientId", (), "clients", leads).text == said
