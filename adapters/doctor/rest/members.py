"""Finds the members of records that no field of a mapping is made of."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from adapters.doctor import surveyed
from adapters.doctor.case import Look
from adapters.doctor.laws.voids import is_mark, mark_judged, marks_told
from adapters.doctor.rest.case import RestCase
from adapters.examination import Survey
from adapters.mapping.models import ResourceMap
from adapters.mapping.paths import names_in, plain_steps
from adapters.rest.adapter import RestAdapter
from adapters.rest.checks import written_paths

# The limits of a survey: records, names that are told, and levels of nesting.
SAMPLE, MOST_NAMES, DEEPEST = 200, 60, 6
# Other names, such as keys of an object, may belong to somebody.
_NAME = re.compile(r"[^\W\d]\w{0,40}").fullmatch
# A way into a record, by the names of members.
Way = tuple[str, ...]


async def survey(adapter: RestAdapter) -> Survey:
    """Returns the members of a sample of records that no field is made of; raises AdapterError."""
    omitted = []
    for name, reader in adapter.readers.items():
        ways, names = _read_in(name, adapter.mapping.resources[name])
        records = (await reader.sample(SAMPLE)).records
        unused = dict.fromkeys(_unused(records, (), ways, names))
        omitted.append((("resources", name), f"the records of {name}", [*unused][:MOST_NAMES]))
    return surveyed(adapter, omitted)


def _read_in(name: str, resource: ResourceMap) -> tuple[set[Way], set[str]]:
    """Returns the plain ways by which fields are read, and every name in other expressions."""
    ways, names = set[Way](), set[str]()
    for place, expression, _, _ in written_paths(name, resource, []):
        _, _, part, *inner = place
        if part == "where":
            continue
        steps, within = plain_steps(expression), None
        if part == "lists" and inner[1:] != ["items"]:
            within = plain_steps(resource.lists[str(inner[0])].items or "@")
        if steps is None:
            names.update(names_in(expression))
        else:
            ways.add(tuple(step for step in (*(within or ()), *steps) if isinstance(step, str)))
    return ways - {()}, names


def _unused(value: Any, way: Way, ways: set[Way], names: set[str]) -> Iterator[str]:
    """Yields the ways to what is not read, as far down as something beside it is read."""
    if isinstance(value, list):
        for member in value:
            yield from _unused(member, way, ways, names)
    if not isinstance(value, dict) or len(way) > DEEPEST:
        return
    for name, inner in value.items():
        here = (*way, name)
        if any(used[: len(here)] == here and used != here for used in ways):
            yield from _unused(inner, here, ways, names)
            continue
        is_read = name in names or any(here[: len(used)] == used for used in ways)
        if not is_read and _NAME(name):
            yield ".".join(here)


def void_laws(case: RestCase) -> Iterator[Look]:
    """Yields a look at the marks of void records of which nothing is read."""
    yield case.look("laws", "voids", _marks, "resources")


async def _marks(case: RestCase, look: Look) -> None:
    for name, raws in case.raws.items():
        place = ("resources", name, "where")
        part = case.law("void-rows-hidden", look, *place)
        if part is None:
            return
        for member, codes in _unread(name, raws, case).items():
            mark_judged(
                part, member, codes, at_key=case.adapter.mapping.resources[name].where is None
            )
    if part := case.law("void-rows-hidden", look):
        marks_told(part, len(case.raws))


def _unread(name: str, raws: list[Any], case: RestCase) -> dict[str, Counter[str]]:
    """Returns the values of marks that no expression of the resource reads."""
    written = written_paths(name, case.adapter.mapping.resources[name], [])
    read = {word for each in written for word in names_in(each.expression)}
    marks: dict[str, Counter[str]] = defaultdict(Counter)
    for raw in raws:
        for member, value in raw.items() if isinstance(raw, dict) else ():
            if isinstance(value, bool | int | str | None) and member not in read:
                marks[member].update(["" if value is None else str(value)])
    return {member: codes for member, codes in marks.items() if is_mark(member)}
