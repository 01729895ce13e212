"""Records as practice systems give them, sound and broken, made at random."""

from datetime import UTC
from typing import Any

from hypothesis import strategies as st

from gateway.contract.fields import Field, write_instant

MONEY = st.decimals(-(10**9), 10**9, places=2, allow_nan=False).map(lambda each: f"{each:.2f}")
GOOD: dict[str, st.SearchStrategy[Any]] = {
    "uuid": st.uuids().map(str),
    "text": st.text(st.characters(exclude_categories=["Cs"])),
    "email": st.emails(),
    "boolean": st.booleans(),
    "integer": st.integers(-(2**53), 2**53),
    "number": st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False),
    "date-time": st.datetimes(timezones=st.just(UTC)).map(write_instant),
    "date": st.dates().map(str),
    "money": MONEY,
    "percent": MONEY,
    "color": st.from_regex(r"#[0-9A-Fa-f]{6}", fullmatch=True),
}
# Anything that a driver may hand over instead of what the mapping promised.
JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())  # lone surrogates too
    | st.binary()
    | st.decimals()
    | st.datetimes()
    | st.sampled_from(["45.0", "2026-02-30", "2026-03-01T09:00:00+01:00", "SCHEDULED\n", "a@b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=3)
    ),
    max_leaves=5,
)


def good(field: Field) -> st.SearchStrategy[Any]:
    if field.fields:
        return st.lists(records(field.fields), max_size=3)
    value = st.sampled_from(field.values) if field.values else GOOD[field.format.name]
    return st.lists(value, max_size=3) if field.many else value


def records(
    fields: tuple[Field, ...], broken: st.SearchStrategy[Any] | None = None
) -> st.SearchStrategy[dict[str, Any]]:
    """Records that have some of the members; with `broken` some of the values are such."""
    members = {}
    for field in fields:
        value = good(field) if broken is None else good(field) | broken
        members[field.name] = value | st.none() if field.nullable else value
    needed = {name: value for name, value in members.items() if name == "id"}
    others = {name: value for name, value in members.items() if name != "id"}
    return st.fixed_dictionaries(needed, optional=others)
