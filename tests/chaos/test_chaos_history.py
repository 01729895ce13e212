"""The checker itself: it passes what is well, and finds each thing that may be wrong."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.chaos.history import LOST, WHOLE, Attempt, Row, Wish, faults

NINE = datetime(2026, 3, 5, 9)  # noqa: DTZ001 - by the clock on the wall
HALF = timedelta(minutes=30)
WISH = Wish(note="a", vet=1, start=NINE, end=NINE + HALF, key=None)
KEYED = replace(WISH, key="k")
LATE = {"start": NINE + HALF / 2, "end": NINE + 3 * HALF / 2}
NEXT = {"start": NINE + HALF, "end": NINE + 2 * HALF}


def told(status: int | None = 201, wish: Wish = WISH, **more: Any) -> Attempt:
    made = Attempt(wish=wish, sent=1.0, ended=2.0, status=status, body=b"{}")
    return replace(made, **more)


def row(note: str = "a", **more: Any) -> Row:
    made = Row(note=note, vet=1, start=NINE, end=NINE + HALF, parts=WHOLE)
    return replace(made, **more)


B = replace(WISH, note="b")
AGAIN = {"sent": 3.0, "ended": 4.0}
LAST = {"sent": 1_000.0, "ended": 1_001.0}


@pytest.mark.parametrize(
    ("attempts", "rows"),
    [
        ([told()], [row()]),
        ([told(LOST)], [row()]),
        ([told(504)], []),
        ([told(503), told(**AGAIN)], [row()]),
        ([told(), told(409, B)], [row()]),
        ([told(LOST), told(503, B)], []),
        ([told(LOST), told(409, B)], [row()]),
        ([told(), told(wish=replace(B, vet=2))], [row(), row("b", vet=2)]),
        ([told(), told(wish=replace(B, **NEXT))], [row(), row("b", **NEXT)]),
        ([told(wish=KEYED), told(wish=KEYED, replayed=True, **AGAIN)], [row()]),
        # two that asked at once: whichever came first, the other is told as an earlier one or not
        ([told(wish=KEYED), told(wish=KEYED)], [row()]),
        ([told(LOST, KEYED), told(wish=KEYED, replayed=True, **AGAIN)], [row()]),
        # what stands is in the way for ever, whether anybody was told of it or not
        ([told(LOST, B), told(409, **LAST)], [row("b")]),
        ([told(503)] * 600 + [told(LOST, replace(B, vet=3))] * 400, []),
        # its own booking, whose answer was lost, is in the way of one without a key
        ([told(LOST), told(409, **AGAIN)], [row()]),
    ],
)
def test_what_is_well_has_no_faults(attempts: list[Attempt], rows: list[Row]) -> None:
    assert faults(attempts, rows) == []


@pytest.mark.parametrize(
    ("attempts", "rows", "said"),
    [
        ([told(500)], [], "a was answered 500: {}"),
        ([told(), told(wish=replace(B, **LATE))], [row(), row("b", **LATE)], "a and b overlap"),
        ([told()], [], "a was acknowledged and has 0 rows"),
        ([told()], [row(vet=2)], "a was acknowledged and stands elsewhere"),
        ([told()], [row(**LATE)], "a was acknowledged and stands elsewhere"),
        ([told()], [row(parts=(1, 0))], "a is not whole: (1, 0)"),
        ([told(LOST)], [row(), row(vet=2)], "a was booked 2 times"),
        ([told(), told(409, B)], [row(), row("b", vet=2)],
         "b stands there and was answered ['409']"),
        ([told(503)], [row()], "a stands there and was answered ['503']"),
        ([told()], [row(), row("c", vet=2)], "c stands there and was answered []"),
        ([told(409)], [], "a was refused and nothing was in its way"),
        ([told(409), told(wish=B, **AGAIN)], [row("b")],
         "a was refused and nothing was in its way"),
        ([told(409), told(wish=replace(B, vet=2))], [row("b", vet=2)],
         "a was refused and nothing was in its way"),
        ([told(wish=KEYED), told(wish=KEYED, body=b"[]", replayed=True, **AGAIN)], [row()],
         "the key k was answered 2 ways"),
        ([told(wish=KEYED), told(409, KEYED, replayed=True, **AGAIN)], [row()],
         "the key k was answered 2 ways"),
        ([told(LOST, KEYED), told(409, KEYED, **AGAIN)], [row()],
         "a has a key, was answered 409, and stands there"),
        ([told(LOST, B), told(409, **LAST)], [], "a was refused and nothing was in its way"),
        ([told(LOST), told(409, B)], [], "b was refused and nothing was in its way"),
        ([told(504, B), told(409, KEYED)], [], "a was refused and nothing was in its way"),
        ([told(LOST, B), told(409, KEYED), told(wish=KEYED, **AGAIN)], [row()],
         "the key k was answered 2 ways"),
        ([told(LOST, B), told(wish=KEYED), told(409, KEYED, **AGAIN)], [row()],
         "the key k was answered 2 ways"),
        ([told(LOST, B), told(LOST, KEYED), told(409, KEYED, **AGAIN)], [row()],
         "a has a key, was answered 409, and stands there"),
        ([told(503)] * 601 + [told(LOST, replace(B, vet=3))] * 399, [],
         "601 of 1000 attempts were answered 503"),
        ([told(wish=KEYED), told(wish=KEYED, **AGAIN)], [row()],
         "a was booked anew with the key of an answered one"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found(attempts: list[Attempt], rows: list[Row], said: str) -> None:
    assert any(each.startswith(said) for each in faults(attempts, rows))


def test_rows_that_belong_to_nothing_are_found() -> None:
    assert faults([told()], [row()], strays=2) == ["2 rows belong to no appointment"]
