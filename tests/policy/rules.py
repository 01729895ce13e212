"""Any rules at all, made for generated tests: of some files, and of what these both let be seen."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from gateway.contract import fields as formats
from gateway.contract.access import LEVELS
from gateway.contract.fields import Field, Resource
from gateway.contract.resources import GOVERNED
from gateway.policy.masks import Mask, fitting
from gateway.policy.policy import ResourceRules, Rules, Sights
from gateway.policy.rows import (
    Bound,
    RowFilter,
    ValueTest,
    comparable,
    in_closed,
    is_ordered,
    shown,
)
from tests.policy.sights import opening

_LEVELS_OR_NONE = st.sampled_from([*LEVELS, None])


@st.composite
def sights(draw: st.DrawFn, field: Field) -> Sights:
    """What one file may say of a field."""
    first = draw(_LEVELS_OR_NONE)
    kinds = fitting(field)
    lower = LEVELS if first is None else LEVELS[: LEVELS.index(first)]
    if not kinds or not lower or draw(st.booleans()):
        return opening(first)
    kind = draw(st.sampled_from(kinds))
    argument = draw(st.integers(1, min(kind.largest, 12))) if kind.largest else 0
    return opening(first, draw(st.sampled_from(lower)), Mask(kind, argument))


def values(field: Field) -> st.SearchStrategy[Any]:
    """Values of a field as they are compared."""
    if field.values:
        return st.sampled_from(field.values)
    text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=3)
    return _VALUES.get(field.format.name, text)


_AMOUNTS = st.decimals(-9, 9, places=3)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    formats.BOOLEAN.name: st.booleans(),
    formats.NUMBER.name: st.one_of(st.integers(-9, 9), st.floats(-9, 9)).map(
        lambda it: Decimal(str(it))
    ),
    formats.MONEY.name: _AMOUNTS,
    formats.PERCENT.name: _AMOUNTS,
    formats.DAY.name: st.dates(),
    formats.INSTANT.name: st.datetimes(
        min_value=datetime(1000, 1, 1),  # noqa: DTZ001 - the zone is given beside it
        timezones=st.just(UTC),
    ),
}


@st.composite
def wanted(draw: st.DrawFn, field: Field) -> ValueTest:
    """A condition that a file can have, or one that nothing meets."""
    answered = values(field).map(lambda value: comparable(field, shown(field, value)))
    some = st.frozensets(answered, min_size=1, max_size=3)
    if draw(st.booleans()):
        return in_closed(field, ValueTest(allowed=draw(some)))
    bounds: list[Bound | None] = [None, None]
    if is_ordered(field):
        bounds = [
            draw(st.one_of(st.none(), st.builds(Bound, values(field), st.sampled_from((0, edge)))))
            for edge in (1, -1)
        ]
    barred = draw(some) if bounds == [None, None] else draw(st.one_of(st.just(frozenset()), some))
    return in_closed(field, ValueTest(barred=barred, low=bounds[0], high=bounds[1]))


def conditionable(resource: Resource) -> list[str]:
    """Fields that conditions can be of; ids are left out, since their values are long."""
    plain = [each for each in resource.paths if "[]" not in each and not resource.at(each).many]
    return [each for each in plain if resource.at(each).format is not formats.UUID]


@st.composite
def rows(draw: st.DrawFn, resource: Resource) -> RowFilter:
    named = draw(st.lists(st.sampled_from(conditionable(resource)), max_size=2, unique=True))
    return RowFilter({name: draw(wanted(resource.at(name))) for name in named})


@st.composite
def resource_rules(draw: st.DrawFn, resource: Resource) -> ResourceRules:
    chosen = draw(st.lists(st.sampled_from(resource.paths), max_size=3, unique=True))
    fields = {path: opening(LEVELS[0]) for path in resource.paths}
    fields |= {path: draw(sights(resource.at(path))) for path in chosen}
    found = {level: draw(rows(resource)) for level in LEVELS}
    return ResourceRules(fields, {level: each for level, each in found.items() if each})


@st.composite
def any_rules(draw: st.DrawFn, only: tuple[str, ...] = ("patients",)) -> Rules:
    """Rules whose interesting parts are those of a few resources."""
    return {
        each.name: draw(resource_rules(each))
        if each.name in only
        else ResourceRules({path: opening(LEVELS[0]) for path in each.paths}, {})
        for each in GOVERNED
    }
