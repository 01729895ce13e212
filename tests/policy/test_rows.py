"""Row conditions let be what they say, judged by what a record shows; a null never meets one."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.base import Condition
from adapters.documents.document import ProblemList, parse_document
from gateway.contract.access import LEVELS
from gateway.contract.fields import Field, Resource
from gateway.contract.resources import CLIENT, CONSULTATION, GOVERNED, INVOICE, PATIENT, STOCK_ITEM
from gateway.policy.reading.resource import RulesReader
from gateway.policy.rows import (
    EVERY,
    Bound,
    RowFilter,
    ValueTest,
    comparable,
    conditions_in_file,
    in_closed,
    is_ordered,
    shown,
)
from tests.policy.decisions import closed
from tests.policy.records import JUNK, good, records

PLAIN = [
    (resource, path)
    for resource in GOVERNED
    for path in resource.paths
    if "[]" not in path and not resource.at(path).many
]


@st.composite
def wanted_of(draw: st.DrawFn, field: Field) -> ValueTest:
    """What may be let be of a field, as the language can say it."""
    value = good(field).map(lambda each: comparable(field, each))
    few = st.frozensets(value, min_size=1, max_size=3)
    if draw(st.booleans()):
        return in_closed(field, ValueTest(allowed=draw(few)))
    low = high = None
    if is_ordered(field):
        low = draw(st.none() | st.builds(Bound, value, st.sampled_from((0, 1))))
        high = draw(st.none() | st.builds(Bound, value, st.sampled_from((0, -1))))
    return in_closed(field, ValueTest(barred=draw(few), low=low, high=high))


@st.composite
def rows_of(draw: st.DrawFn, resource: Resource) -> RowFilter:
    names = [path for each, path in PLAIN if each is resource]
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    return RowFilter({name: draw(wanted_of(resource.at(name))) for name in chosen})


resources = st.sampled_from(GOVERNED)


def records_for(resource: Resource, *rows: RowFilter, broken: Any = None) -> st.SearchStrategy[Any]:
    """Records of the fields that conditions are about."""
    names = dict.fromkeys(name for each in rows for name in each.tests)
    return records(tuple(map(resource.at, names)), broken)


def meets(condition: Condition, record: Any, resource: Resource) -> bool:
    """What base.Condition promises, in plain words."""
    value = record.get(condition.field)
    if value is None:
        return False
    if condition.test in ("in", "not in"):
        same = comparable(resource.at(condition.field), value) in [
            comparable(resource.at(condition.field), each) for each in condition.value
        ]
        return same is (condition.test == "in")
    value = comparable(resource.at(condition.field), value)
    return bool(
        {
            "min": value >= condition.value,
            "max": value <= condition.value,
            "above": value > condition.value,
            "below": value < condition.value,
        }[condition.test]
    )


@given(st.data())
def test_what_adapters_are_told_is_what_a_record_is_judged_by(data: st.DataObject) -> None:
    resource = data.draw(resources)
    rows = data.draw(rows_of(resource))
    record = data.draw(records_for(resource, rows))
    told = all(meets(each, record, resource) for each in rows.conditions(resource))
    assert rows.admits(resource)(record) is told


@pytest.mark.parametrize(
    ("resource", "name", "never", "near"),
    [
        (STOCK_ITEM, "salePrice", Decimal("10.005"), ("10.00", "10.01")),
        (STOCK_ITEM, "quantity", Decimal("0.1000000000000000000001"), (0.1,)),
        (
            CLIENT,
            "createdAt",
            datetime(2026, 3, 1, 9, 0, 0, 500_000, tzinfo=UTC),
            ("2026-03-01T09:00:00Z", "2026-03-01T09:00:01Z"),
        ),
    ],
)
def test_a_value_that_no_record_can_show_stands_for_no_other(
    resource: Resource, name: str, never: Any, near: tuple[Any, ...]
) -> None:
    for test, exist in ((ValueTest(allowed=frozenset({never})), False),
                        (ValueTest(barred=frozenset({never})), True)):  # fmt: skip
        rows = RowFilter({name: test})
        for each in near:
            record = {name: each}
            assert rows.admits(resource)(record) is exist
            assert all(meets(told, record, resource) for told in rows.conditions(resource)) is exist


@given(st.data())
def test_a_record_without_the_value_or_with_a_broken_one_does_not_exist(
    data: st.DataObject,
) -> None:
    resource = data.draw(resources)
    rows = data.draw(rows_of(resource))
    record = data.draw(records_for(resource, rows, broken=JUNK))
    name = next(iter(rows.tests))
    admits = rows.admits(resource)
    assert admits({**record, name: None}) is False
    assert admits({key: each for key, each in record.items() if key != name}) is False
    assert admits(record) in (True, False)


@given(st.data())
def test_both_is_and_and_within_never_errs_towards_more(data: st.DataObject) -> None:
    resource = data.draw(resources)
    one, other = data.draw(rows_of(resource)), data.draw(rows_of(resource))
    both = one.both(other)
    for record in data.draw(st.lists(records_for(resource, one, other), max_size=3)):
        met = one.admits(resource)(record) and other.admits(resource)(record)
        assert both.admits(resource)(record) is met
        if one.within(other) and one.admits(resource)(record):
            assert other.admits(resource)(record)
    assert both.within(one)
    assert both.within(other)
    assert one.within(one)
    assert one.within(EVERY)
    assert not EVERY.within(one)


@given(st.data())
def test_what_a_file_would_say_is_read_back(data: st.DataObject) -> None:
    resource = data.draw(resources)
    rows = data.draw(rows_of(resource).filter(satisfiable))
    text = f"version: 1\n{resource.name}:\n  only: {conditions_in_file(resource, rows)}\n"
    noted = ProblemList(parse_document(text.encode(), "policy"))
    assert noted.document.data is not None
    only = noted.document.data[resource.name]["only"]
    read = RulesReader(noted, resource).only(only)
    assert noted.problems == []
    found, meant = (each.conditions(resource) for each in (read[LEVELS[0]], rows))
    assert len(found) == len(meant)
    assert set(found) == set(meant)


def satisfiable(rows: RowFilter) -> bool:
    """The language refuses what no record can meet; YAML has no whole numbers beyond 18 digits."""
    return "".join(re.findall(r"[0-9]{17,}", str(rows))) == "" and all(
        (each.allowed is None or any(map(each.admits, each.allowed)))
        and (each.low is None or each.high is None or each.low <= each.high)
        for each in rows.tests.values()
    )


@given(st.sampled_from(PLAIN), st.data())
def test_every_value_has_one_form_in_which_it_is_compared(
    plain: tuple[Resource, str], data: st.DataObject
) -> None:
    field = plain[0].at(plain[1])
    compared = comparable(field, data.draw(good(field)))
    assert comparable(field, shown(field, compared)) == compared
    assert not closed(field) or compared in closed(field)


@pytest.mark.parametrize(
    ("resource", "written", "conditions"),
    [
        (CONSULTATION, "{status: VALIDATED}", [("status", "in", ("VALIDATED",))]),
        (CONSULTATION, "{status: {not: VALIDATED}}", [("status", "in", ("IN_PROGRESS",))]),
        (STOCK_ITEM, "{category: {not: [CONTROLLED]}}", [("category", "not in", ("CONTROLLED",))]),
        (STOCK_ITEM, "{isLow: {not: true}}", [("isLow", "in", (False,))]),
        (
            STOCK_ITEM,
            "{quantity: {min: 1, below: 10.5}}",
            [("quantity", "min", Decimal(1)), ("quantity", "below", Decimal("10.5"))],
        ),
        (INVOICE, "{total: {above: 99.9}}", [("total", "above", Decimal("99.9"))]),
        (PATIENT, "{birthDate: {max: 2020-12-31}}", [("birthDate", "max", date(2020, 12, 31))]),
        (
            CLIENT,
            "{createdAt: {min: 2026-01-01T00:00:00+01:00}}",
            [("createdAt", "min", datetime(2025, 12, 31, 23, tzinfo=UTC))],
        ),
    ],
)
def test_conditions_are_told_to_adapters(
    resource: Resource, written: str, conditions: list[tuple[str, str, Any]]
) -> None:
    document = parse_document(f"x: {written}".encode(), "policy")
    assert document.data is not None
    noted = ProblemList(document)
    read = RulesReader(noted, resource).only(document.data["x"])
    assert noted.problems == []
    told = [(each.field, each.test, each.value) for each in read[LEVELS[0]].conditions(resource)]
    assert told == conditions
