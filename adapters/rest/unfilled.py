"""Paths of a mapping that lead to nothing in any sampled record: a warning, at start and in checks.

Backends leave out members that have no value, so a sample never proves that a path is wrong.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from adapters.documents.document import Place
from adapters.documents.problems import did_you_mean
from adapters.mapping.models import ListMap, ResourceMap, ValueSource
from adapters.mapping.paths import Steps, heads, path, plain_steps
from adapters.values.convert import Unreadable


@dataclass(frozen=True, slots=True)
class Written:
    """A path of the mapping: its place, what it is called, and the values it is asked of."""

    place: Place
    expression: str
    subject: str
    rows: list[Any]

    def complaints(self) -> Iterator[str]:
        """What is said where no value has what the path names; an expression has several parts."""
        steps = plain_steps(self.expression)
        if steps is not None:
            if steps and (text := ends_early(steps, self.rows)):
                yield f"no record of the backend has {text}: {self.expression} leads to nothing"
            return
        # an expression may do without what only some records have
        for each in heads(self.expression):
            if text := ends_early(each, self.rows):
                said = f"no record of the backend has {text}"
                yield f"{said}: part of the expression leads to nothing"


def written_paths(name: str, resource: ResourceMap, raws: list[Any]) -> Iterator[Written]:
    """Each path of a resource, with the values that `raws`, its records, have for it."""
    place = ("resources", name)
    if resource.where:
        yield Written((*place, "where"), resource.where, f"{name}.where", raws)
    yield from _of(place, name, resource, raws)
    for each, nested in resource.lists.items():
        inner, subject = (*place, "lists", each), f"{name}.{each}"
        yield Written((*inner, "items"), nested.items or "@", subject, raws)
        yield from _of(inner, subject, nested, list(_rows_in(nested, raws)))


def _of(
    place: Place, owner: str, part: ResourceMap | ListMap, rows: list[Any]
) -> Iterator[Written]:
    found: dict[Place, ValueSource] = {} if part.key is None else {(*place, "key"): part.key}
    found |= {(*place, "fields", name): each for name, each in part.fields.items()}
    for at, each in found.items():
        subject = f"{owner}.{at[-1]}"
        yield Written(at, each.text, subject, rows)
        if each.plus is not None:
            yield Written((*at, "plus"), each.plus, subject, rows)


def _rows_in(nested: ListMap, raws: list[Any]) -> Iterator[Any]:
    items = path(nested.items or "@")
    for raw in raws:
        try:
            found = items(raw)
        except Unreadable:
            continue
        if isinstance(found, list):
            yield from found


def ends_early(steps: Steps, rows: list[Any]) -> str:
    """The name that every row lacks on that way, with near ones; "" where some row has it."""
    missing = [_missing(steps, row) for row in rows]
    if not missing or not all(each is not None for each in missing):
        return ""
    return "".join(missing[0] or ())


def _missing(steps: Steps, value: Any) -> tuple[str, str] | None:
    """The name that an object on the way lacks, and a near one; None where nothing is amiss."""
    for step in steps:
        if isinstance(step, int):
            if not isinstance(value, list) or not -len(value) <= step < len(value):
                return None
            value = value[step]
        elif not isinstance(value, dict):
            return None if value is None else (step, "")
        elif step not in value:
            return step, did_you_mean(step, value)
        else:
            value = value[step]
    return None
