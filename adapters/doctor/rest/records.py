"""The paths of the mapping into the records of a backend, and members that no field is made of."""

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import jmespath

from adapters.doctor import Omission
from adapters.doctor.case import Look, counted
from adapters.doctor.rest.calls import RestCase
from adapters.mapping.models import ListMap, ResourceMap
from adapters.mapping.paths import plain_steps
from adapters.rest.adapter import RestAdapter
from adapters.rest.checks import written_paths
from adapters.rest.session import RestSession

# Records in which members are looked for that no field is made of.
SAMPLE, MOST_NAMES, DEEPEST = 200, 60, 6
# Other names may be somebody's own, as keys of an object often are.
_NAME = re.compile(r"[^\W\d]\w{0,40}").fullmatch
# A way into a record, by the names of members.
Way = tuple[str, ...]


async def paths(case: RestCase, look: Look, _: RestSession) -> None:
    """Whether each path of the mapping leads to something in what the backend gives."""
    count = 0
    for name, raws in case.raws.items():
        for written in written_paths(name, case.core.mapping.resources[name], raws):
            count += 1
            for text in written.complaints():
                look.warning(text, place=written.place, subject=written.subject)
    if not look.findings:
        many = counted(sum(map(len, case.raws.values())), "record")
        look.ok(f"all {count} paths lead somewhere in {many}")


async def omissions(adapter: RestAdapter) -> AsyncIterator[Omission]:
    """Members of the records of a sample of which no field is made; AdapterErrors."""
    for name, reader in adapter.readers.items():
        ways, names = _read_in(adapter.core.mapping.resources[name])
        rows = await reader.sample(SAMPLE)
        if unused := dict.fromkeys(_unused(rows, (), ways, names)):
            source = f"the records of {name}"
            yield Omission(source, [*unused][:MOST_NAMES], ("resources", name))


def _read_in(resource: ResourceMap) -> tuple[set[Way], set[str]]:
    """The plain ways by which fields are read, and every name in any other expression."""
    ways, names = set[Way](), set[str]()

    def note(expression: str, within: Way) -> Way:
        steps = plain_steps(expression)
        if steps is None:
            names.update(_names(jmespath.compile(expression).parsed))
            return ()
        way = (*within, *(step for step in steps if isinstance(step, str)))
        ways.add(way)
        return way

    parts: list[ResourceMap | ListMap] = [resource, *resource.lists.values()]
    for part in parts:
        within = note(part.items or "@", ()) if isinstance(part, ListMap) else ()
        for source in (*part.fields.values(), *([part.key] if part.key else [])):
            for expression in source.expressions:
                note(expression, within)
    return ways - {()}, names


def _names(node: Any) -> Iterator[str]:
    """All names in an expression."""
    if node["type"] == "field":
        yield node["value"]
    for child in node["children"]:
        yield from _names(child)


def _unused(value: Any, way: Way, ways: set[Way], names: set[str]) -> Iterator[str]:
    """The ways to what is not read, as far down as something beside it is."""
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
