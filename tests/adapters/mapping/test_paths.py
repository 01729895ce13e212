"""Plain paths are walked by ourselves: they must find just what the library finds."""

import timeit
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


def test_what_is_no_path_is_said() -> None:
    assert path_problem("a.b[0]") is None
    for expression in ("a.", "a[", "nofunction(a)[", "", "a b"):
        assert path_problem(expression)


def test_a_condition_holds_unless_it_is_nothing_or_false() -> None:
    assert all(map(holds, (True, 0, 1, "x", [0])))
    assert not any(map(holds, (None, False, "", [], {})))


def test_walking_is_several_times_faster_than_the_library() -> None:
    value = {"animal": {"owner": {"id": 5}}}
    walked, compiled = path("animal.owner.id"), jmespath.compile("animal.owner.id")
    ours = min(timeit.repeat(lambda: walked(value), number=2000, repeat=5))
    theirs = min(timeit.repeat(lambda: compiled.search(value), number=2000, repeat=5))
    assert theirs > 3 * ours
