"""Whether each path of the mapping leads to something in what the backend gives."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from adapters.convert import Unreadable
from adapters.document import Place
from adapters.examine import Finding
from adapters.rest.checks import ends_early, leads_nowhere
from adapters.rest.doctor.case import Case, Step, records
from adapters.rest.mapping import Found, ListOf, ResourceMap
from adapters.rest.paths import heads, path, plain_steps

# A path, where it stands, and what it is called.
Written = tuple[Place, str, str]


def paths(case: Case) -> Iterator[Step]:
    """One look at all of them."""
    yield Step("mapping", "paths", lambda: _paths(case))


async def _paths(case: Case) -> AsyncIterator[Finding]:
    count, bad = 0, 0
    for name, raws in case.raws.items():
        for rows, place, expression, subject in _asked(case.parts.mapping, name, raws):
            count += 1
            for finding in _wrong(case, rows, place, expression, subject):
                bad += 1
                yield finding
    if not bad:
        many = records(sum(map(len, case.raws.values())))
        yield case.ok("mapping", "paths", f"all {count} paths lead somewhere in {many}")


def _asked(mapping: Any, name: str, raws: list[Any]) -> Iterator[tuple[list[Any], Place, str, str]]:
    """Every path of a resource, with the values of which it is asked."""
    resource: ResourceMap = mapping.resources[name]
    place = ("resources", name)
    if resource.where:
        yield raws, (*place, "where"), resource.where, f"{name}.where"
    for written in _of(place, name, resource):
        yield raws, *written
    for each, nested in resource.lists.items():
        inner, subject = (*place, "lists", each), f"{name}.{each}"
        yield raws, (*inner, "items"), nested.items, subject
        rows = list(_rows_in(nested, raws))
        for written in _of(inner, subject, nested):
            yield rows, *written


def _of(place: Place, owner: str, part: ResourceMap | ListOf) -> Iterator[Written]:
    found: dict[Place, Found] = {} if part.key is None else {(*place, "key"): part.key}
    found |= {(*place, "fields", name): each for name, each in part.fields.items()}
    for at, each in found.items():
        subject = f"{owner}.{at[-1]}"
        yield at, each.path, subject
        if each.plus is not None:
            yield (*at, "plus"), each.plus, subject


def _rows_in(nested: ListOf, raws: list[Any]) -> Iterator[Any]:
    items = path(nested.items)
    for raw in raws:
        try:
            found = items(raw)
        except Unreadable:
            continue
        if isinstance(found, list):
            yield from found


def _wrong(
    case: Case, rows: list[Any], place: Place, expression: str, subject: str
) -> Iterator[Finding]:
    if plain_steps(expression) is not None:
        if text := leads_nowhere(expression, rows):
            yield case.failed("mapping", subject, text, place)
        return
    # an expression may do without what only some records have
    for steps in heads(expression):
        if text := ends_early(steps, rows):
            said = f"no record of the backend has {text}: part of the expression leads to nothing"
            yield case.warning("mapping", subject, said, place)
