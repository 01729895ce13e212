"""Plain paths are walked by ourselves: they must find just what the library finds."""

import re
import timeit
from pathlib import Path
from typing import Any

import jmespath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.mapping.paths import holds, path, path_problem, plain_steps
from adapters.values.convert import Unreadable

PLAIN = ["a", "a.b", "a.b.c", "a[0]", "a[-1].b", "a.b[1].c", "@", '"x-y".a', "[0]", "a[0][1]"]
OTHERS = ["a || b", "a[*].b", "a[?b == 'x'] | [0].c", "length(a)", "{x: a}", "'EUR'", "!a"]
NAMES = st.sampled_from(["a", "b", "c", "x-y"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)


@given(value=VALUES)
def test_a_plain_path_finds_what_the_library_finds(value: Any) -> None:
    for expression in PLAIN:
        assert plain_steps(expression) is not None
        assert path(expression)(value) == jmespath.search(expression, value), expression


@pytest.mark.parametrize("expression", OTHERS)
def test_any_other_path_is_the_librarys(expression: str) -> None:
    value = {"a": [{"b": "x", "c": 1}], "b": 2}
    assert plain_steps(expression) is None
    assert path(expression)(value) == jmespath.search(expression, value)


def test_a_function_that_fails_is_a_value_that_cannot_be_read() -> None:
    for expression in ("join(', ', [a, b])", "ceil(to_number('inf'))", "merge(a, b)"):
        with pytest.raises(Unreadable):
            path(expression)({"a": "x"})


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("sum([a, b])", 0.3),
        ("sum([`1`, `2.0`])", 3),
        ("product([a, b, `100`])", 2),
        ("product([a, missing])", None),
        ("product(`[]`)", 1),
        ("quotient(b, a)", 2),
        ("quotient(a, missing)", None),
        ("quotient(missing, a)", None),
        ("sum(map(&product([n, of]), rows))", 26),
    ],
)
def test_numbers_are_reckoned_with_as_they_are_written(expression: str, found: Any) -> None:
    rows = [{"n": 2, "of": 12}, {"n": 1, "of": 2}]
    made = path(expression)({"a": 0.1, "b": 0.2, "rows": rows})
    assert (made, type(made)) == (found, type(found))


@pytest.mark.parametrize(("rate", "net"), [(20, 10), (0, 12), (None, 12)])
def test_the_net_amount_of_the_reference_is_there_without_a_rate(
    rate: int | None, net: int
) -> None:
    docs = (Path(__file__).parents[3] / "docs" / "mapping.md").read_text()
    [written] = re.findall(r'total: "(quotient\(gross, .*)"', docs)
    assert path(written)({"gross": 12, "rate": rate}) == net


@pytest.mark.parametrize(
    "expression",
    ["quotient(a, `0`)", "product([a, 'x'])", "product([a, `true`])", "quotient('1', a)"],
)
def test_what_is_no_number_cannot_be_reckoned_with(expression: str) -> None:
    with pytest.raises(Unreadable):
        path(expression)({"a": 1})


def test_what_is_no_path_is_said() -> None:
    assert path_problem("a.b[0]") is None
    for expression in ("a.", "a[", "nofunction(a)[", "", "a b"):
        assert path_problem(expression)


def test_a_day_is_that_of_a_known_zone() -> None:
    for known in ("today('Europe/Paris')", "a[?b <= today('UTC')]", "today", "today.a || b"):
        assert path_problem(known) is None
    for unknown in ("'Nowhere/X'", "'../x'", "''", "UTC", "`5`", "'UTC', 'UTC'", ""):
        said = path_problem(f"a || [b, today({unknown})]")
        assert said is not None
        assert "today takes a time zone in quotes, such as 'Europe/Paris'" in said


def test_a_condition_holds_unless_it_is_nothing_or_false() -> None:
    assert all(map(holds, (True, 0, 1, "x", [0])))
    assert not any(map(holds, (None, False, "", [], {})))


def test_walking_is_several_times_faster_than_the_library() -> None:
    value = {"animal": {"owner": {"id": 5}}}
    walked, compiled = path("animal.owner.id"), jmespath.compile("animal.owner.id")
    ours = min(timeit.repeat(lambda: walked(value), number=2000, repeat=5))
    theirs = min(timeit.repeat(lambda: compiled.search(value), number=2000, repeat=5))
    assert theirs > 3 * ours
