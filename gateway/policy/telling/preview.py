"""Shows a record as a level sees it, beside the whole one. Makes specimens, which are such records.

Specimens are always the same, valid by the contract, and have a value in every field.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import msgspec

from adapters.base import Record, Report
from adapters.documents.document import read_document
from gateway.contract import fields as formats
from gateway.contract.access import AccessLevel
from gateway.contract.fields import Field, Resource
from gateway.policy.policy import HIDDEN, Policy, Sight
from gateway.policy.redactor import Redactor
from gateway.policy.telling.wording import conditions
from gateway.policy.values import at

_NAMESPACE = UUID("6f1a7c52-3d0e-5b8a-9c41-2e7d8f6b0a13")
# The number of items in a list of objects of a specimen.
ITEMS = 2
# The value of a field that an answer does not hold.
ABSENT: Any = object()


@dataclass(frozen=True, slots=True)
class SeenField:
    """A field with its whole value and the one that is shown, or ABSENT; in a list those of all."""

    path: str
    sight: Sight
    whole: Any
    shown: Any


@dataclass(frozen=True, slots=True)
class Preview:
    """A record as a level sees it.

    `answer` is what the level would see without row conditions, `body` the same as bytes. `exists`:
    the record meets the row conditions, which `condition` has in words, "" where there are none.
    """

    whole: Record
    answer: Record
    body: bytes
    fields: tuple[SeenField, ...]
    exists: bool
    condition: str


def preview(
    policy: Policy, resource: Resource, level: AccessLevel, record: Record, report: Report
) -> Preview:
    """Returns how a level sees a record of a governed resource; raises NoUsableId."""
    redactor, rules = policy.redactor(resource.name, level), policy.rules[resource.name]
    whole = msgspec.json.decode(Redactor(resource, resource.paths, report).one(record))
    body = redactor.one(record)
    answer = msgspec.json.decode(body)
    fields = tuple(
        SeenField(path, sight, at(whole, path), ABSENT if sight is HIDDEN else at(answer, path))
        for path, sight in rules.sights(level).items()
    )
    condition = conditions(resource, rules.rows_of(level))
    return Preview(whole, answer, body, fields, redactor.admits(record), condition)


def specimen(resource: Resource) -> Record:
    """Returns a made-up record as answers carry it. Its ids refer to other specimens."""
    return {field.name: _value(resource, field, field.name) for field in resource.fields}


def _value(resource: Resource, field: Field, path: str, number: int = 0) -> Any:
    if field.fields:
        members = [(inner, f"{path}[].{inner.name}") for inner in field.fields]
        return [
            {inner.name: _value(resource, inner, place, item) for inner, place in members}
            for item in range(ITEMS)
        ]
    if field.format is formats.UUID:
        named = f"{field.refers}.id" if field.refers else f"{resource.name}.{path}"
        return str(uuid5(_NAMESPACE, f"{named}.{number}" if number and not field.refers else named))
    known = _values().get(resource.name, {})
    if path in known:
        return known[path][number] if "[]." in path else known[path]
    value = field.values[0] if field.values else _values()["formats"][field.format.name]
    return [value] if field.many else value


@cache
def _values() -> Any:
    """Reads resource -> path -> value; `formats` -> name -> value."""
    return read_document(Path(__file__).with_name("specimens.yaml")).data
