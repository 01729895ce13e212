"""Policies as the language can say them, made at random: whole, masked and hidden fields, rows."""

from typing import Any

from hypothesis import strategies as st

from gateway.contract.access import LEVELS
from gateway.contract.fields import Field, Resource
from gateway.contract.resources import GOVERNED
from gateway.policy.masks import Mask, fitting
from gateway.policy.policy import WHOLE, ResourceRules, Rules, Sights
from gateway.policy.rows import RowFilter, ValueTest, in_closed
from tests.policy.sights import opening

OPEN = {
    resource.name: ResourceRules({path: opening(LEVELS[0]) for path in resource.paths}, {})
    for resource in GOVERNED
}
RANKS = (0, 1, 2, 3)  # of the first level that sees a field whole; 3 is never


def masks(field: Field) -> st.SearchStrategy[Mask]:
    """Masks that fit; a field that none fits is never asked for one."""
    return st.sampled_from(fitting(field)).flatmap(
        lambda kind: st.builds(
            Mask,
            st.just(kind),
            st.integers(1, min(kind.largest, 40)) if kind.largest else st.just(0),
        )
    )


@st.composite
def sights(draw: st.DrawFn, field: Field) -> Sights:
    """One field: where it opens, and perhaps a mask at a lower level."""
    first = draw(st.sampled_from(RANKS))
    opens = LEVELS[first] if first < 3 else None
    if first == 0 or not fitting(field) or draw(st.booleans()):
        return opening(opens)
    masked = LEVELS[draw(st.integers(0, first - 1))]
    return opening(opens, masked, draw(masks(field)))


def closed(field: Field) -> frozenset[Any]:
    """All values that a field may have, where they are few."""
    return in_closed(field, ValueTest()).allowed or frozenset()


@st.composite
def resource_rules(draw: st.DrawFn, resource: Resource) -> ResourceRules:
    """One resource; conditions on fields with a closed list of values, widening by level."""
    fields = {path: draw(sights(resource.at(path))) for path in resource.paths}
    usable = [
        path
        for path in resource.paths
        if "[]" not in path and closed(resource.at(path)) and fields[path][0] is WHOLE
    ]
    rows = {}
    if usable and draw(st.booleans()):
        name = draw(st.sampled_from(usable))
        values = sorted(closed(resource.at(name)))
        shown = draw(st.sets(st.sampled_from(values), min_size=1))
        wanted = in_closed(resource.at(name), ValueTest(allowed=frozenset(shown)))
        levels = LEVELS[: draw(st.integers(1, 3))]
        rows = {level: RowFilter({name: wanted}) for level in levels}
    return ResourceRules(fields, rows)


@st.composite
def rules(draw: st.DrawFn) -> Rules:
    """A whole policy: one resource in every detail, the others open."""
    resource = draw(st.sampled_from(GOVERNED))
    return {**OPEN, resource.name: draw(resource_rules(resource))}
