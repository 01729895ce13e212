"""The checker itself: it passes a history that is well, and finds each thing that may be wrong."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.races.history import Call, History, Row, Stay, faults

NINE = datetime(2026, 3, 5, 9)  # noqa: DTZ001 - by the clock on the wall
HALF = timedelta(minutes=30)


def call(note: str = "a", **more: Any) -> Call:
    """A booking of half an hour from nine on, sent at 100 and answered at 200."""
    made = Call(
        note=note, vet=1, start=NINE, end=NINE + HALF, gateway=0, sent=100, answered=200, status=201
    )
    return replace(made, **more)


def row(note: str | None = "a", **more: Any) -> Row:
    """What it leaves, with its last row written at 150."""
    made = Row(note=note, vet=1, start=NINE, end=NINE + HALF, ours=True, attended=1, marks=(150,))
    return replace(made, **more)


def desk(**more: Any) -> Stay:
    """The same time, taken by the desk before all that."""
    made = Stay(note="d", vet=1, start=NINE, end=NINE + HALF, committing=40, committed=50)
    return replace(made, **more)


def history(**more: Any) -> History:
    """One booking, and nothing else."""
    offered = frozenset({(1, NINE, NINE + HALF), (1, NINE + HALF, NINE + 2 * HALF)})
    made = History(calls=[call()], stays=[], rows=[row()], strays=0, offered=offered, room=1)
    return replace(made, **more)


of_desk = row("d", ours=False, attended=0, marks=())
refused = call("b", status=409)
later = {"start": NINE + HALF, "end": NINE + 2 * HALF}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"calls": [call(), call("b", **later)], "rows": [row(), row("b", **later)]},
        {"calls": [call(), call("b", vet=2)], "rows": [row(), row("b", vet=2)]},
        {"calls": [call(), refused]},
        {"calls": [call(), call("b", status=409, start=NINE - HALF, end=NINE)]},
        {"calls": [call(status=504)]},
        {"calls": [call(status=504)], "rows": []},
        {"calls": [call(), call("b", status=503)]},
        # committed only after the last row of ours: that may have been after the last look
        {"stays": [desk(committing=140, committed=151)], "rows": [row(), of_desk]},
        # perhaps given up before the last look
        {"stays": [desk(leaving=199, left=220)]},
        {"calls": [refused], "rows": [of_desk], "stays": [desk()]},
        {"calls": [refused], "rows": [], "stays": [desk(leaving=60, left=101)]},
        {"rows": [row(), row(None, free=True, ours=False, attended=0, marks=())]},
    ],
)
def test_a_history_that_is_well_has_no_faults(more: dict[str, Any]) -> None:
    assert faults(history(**more)) == []


QUARTER = {"start": NINE + HALF / 2, "end": NINE + 3 * HALF / 2}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"calls": [call(), call("b", **QUARTER)], "rows": [row(), row("b", **QUARTER)]},
            "a and b overlap",
        ),
        ({"stays": [desk()], "rows": [row(), of_desk]}, "a was acknowledged over d"),
        (
            {"stays": [desk(committing=120, committed=149)], "rows": [row(), of_desk]},
            "a was acknowledged over d",
        ),
        ({"stays": [desk(leaving=201, left=220)]}, "a was acknowledged over d"),
        ({"rows": []}, "a was acknowledged and has 0 rows"),
        ({"rows": [row(vet=2)]}, "a was acknowledged and stands elsewhere"),
        ({"rows": [row(**QUARTER)]}, "a was acknowledged and stands elsewhere"),
        ({"rows": [row(marks=())]}, "a is not whole: 1 and 0 rows"),
        ({"rows": [row(attended=2)]}, "a is not whole: 2 and 1 rows"),
        ({"strays": 3}, "3 rows belong to no appointment"),
        (
            {"calls": [call(), refused], "rows": [row(), row("b", vet=2)]},
            "b stands there and was answered 409",
        ),
        ({"rows": [row(), row("c", vet=2)]}, "c stands there and was answered None"),
        ({"calls": [call(status=500)], "rows": []}, "a was answered 500"),
        ({"calls": [call(status=None)]}, "a was answered None"),
        ({"calls": [call(status=503)], "rows": []}, "a was answered 503"),
        (
            {"calls": [call(status=503), call("b", gateway=1, vet=2)], "rows": [row("b", vet=2)]},
            "a was answered 503",
        ),
        ({"calls": [refused], "rows": []}, "b was refused and nothing was in its way"),
        (
            {"calls": [refused], "rows": [of_desk], "stays": [desk(committing=201, committed=9e9)]},
            "b was refused and nothing was in its way",
        ),
        (
            {"calls": [refused], "rows": [], "stays": [desk(leaving=60, left=99)]},
            "b was refused and nothing was in its way",
        ),
        ({"calls": [], "rows": [], "stays": [desk()]}, "d of the desk's is lost"),
        (
            {"rows": [row(), row("z", free=True, ours=False, attended=0, marks=())]},
            "a free row carries what is left of z",
        ),
    ],
)
def test_what_must_not_happen_is_found(more: dict[str, Any], said: str) -> None:
    assert faults(history(**more)) == [said]
