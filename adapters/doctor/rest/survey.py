"""Members of the backend's records that no field is made of: they never get out."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import jmespath

from adapters.documents.document import Document
from adapters.examination import LeftOut, Survey
from adapters.mapping.filled import filled_fields
from adapters.mapping.models import ListMap, ResourceMap, ValueSource
from adapters.mapping.paths import plain_steps
from adapters.rest.adapter import RestAdapter

SAMPLE, MOST_NAMES, DEEPEST = 200, 60, 6
# Other names may be somebody's own, as keys of an object often are.
_NAME = re.compile(r"[^\W\d]\w{0,40}").fullmatch


async def left_out(adapter: RestAdapter) -> Survey:
    """What the records of a sample have; AdapterErrors."""
    found = []
    for name, reader in adapter.readers.items():
        resource = adapter.core.mapping.resources[name]
        used = _Used(resource)
        seen: dict[str, None] = {}
        for record in await reader.sample(SAMPLE):
            seen |= dict.fromkeys(_unused(record, (), used))
        if seen:
            found.append(_left_out(name, [*seen][:MOST_NAMES], adapter.core.document))
    return Survey(left_out=tuple(found), filled=filled_fields(adapter.core.mapping.resources))


def _left_out(name: str, names: Iterable[str], document: Document) -> LeftOut:
    place = document.problem(("resources", name), "", at_key=True)
    return LeftOut(
        resource=name,
        source=f"the records of {name}",
        names=tuple(names),
        file=place.file,
        line=place.line,
        column=place.column,
    )


class _Used:
    """The ways into a record by which fields are read.

    `ways` are the plain ones; of any other expression every name counts as used, wherever it is.
    """

    def __init__(self, resource: ResourceMap) -> None:
        self.ways: set[tuple[str, ...]] = set()
        self.names: set[str] = set()
        self._part(resource, ())
        for nested in resource.lists.values():
            within = self._expression(nested.items or "@", ())
            self._part(nested, within or ())

    def _part(self, part: ResourceMap | ListMap, within: tuple[str, ...]) -> None:
        found: list[ValueSource] = [*part.fields.values(), *([part.key] if part.key else [])]
        for each in found:
            self._expression(each.text, within)
            if each.plus is not None:
                self._expression(each.plus, within)

    def _expression(self, expression: str, within: tuple[str, ...]) -> tuple[str, ...] | None:
        steps = plain_steps(expression)
        if steps is None:
            self.names |= set(_fields(jmespath.compile(expression).parsed))
            return None
        way = (*within, *(step for step in steps if isinstance(step, str)))
        self.ways.add(way)
        return way

    def takes(self, way: tuple[str, ...]) -> bool:
        """Whether the whole of what stands there is read."""
        return way[-1] in self.names or any(way[: len(each)] == each for each in self.ways if each)

    def passes(self, way: tuple[str, ...]) -> bool:
        """Whether something inside of it is read."""
        return any(each[: len(way)] == way and len(each) > len(way) for each in self.ways)


def _fields(node: Any) -> Iterator[str]:
    """All names in an expression."""
    if node["type"] == "field":
        yield node["value"]
    for child in node["children"]:
        yield from _fields(child)


def _unused(value: Any, way: tuple[str, ...], used: _Used) -> Iterator[str]:
    """The ways to what is not read, as far down as something beside it is."""
    if isinstance(value, list):
        for each in value:
            yield from _unused(each, way, used)
    if not isinstance(value, dict) or len(way) > DEEPEST:
        return
    for name, inner in value.items():
        here = (*way, name)
        if used.passes(here):
            yield from _unused(inner, here, used)
        elif not used.takes(here) and _NAME(name):
            yield ".".join(here)
