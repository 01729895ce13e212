"""One record as a level sees it beside the whole one: what a policy does, shown on an example."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from adapters.base import Record, Report
from gateway.contract.access import AccessLevel
from gateway.contract.fields import Resource
from gateway.policy.policy import Policy
from gateway.policy.redactor import Redactor
from gateway.policy.rules import HIDDEN, Sight
from gateway.policy.telling.wording import conditions
from gateway.policy.values import at


class Absent(Enum):
    """The value of a field that an answer does not hold."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class SeenField:
    """A field: how much of it is seen, its whole value, and the one that is shown, or ABSENT.

    Below a list of objects the values of all items.
    """

    path: str
    sight: Sight
    whole: Any
    shown: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A record before a level.

    `answer` is what the level would be shown, were there no row conditions, `body` the same as it
    is sent; `exists` is whether they let it be, `condition` what they ask for, in words, "" for
    nothing.
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
    """How the level sees a record of a governed resource; NoUsableId where it is no answer."""
    redactor = policy.redactor(resource.name, level)
    whole = msgspec.json.decode(Redactor(resource, resource.paths, report).one(record))
    body = redactor.one(record)
    answer = msgspec.json.decode(body)
    rows = policy.rules[resource.name].rows_of(level)
    return Preview(
        whole=whole,
        answer=answer,
        body=body,
        fields=tuple(_fields(policy, resource, level, whole, answer)),
        exists=redactor.admits(record),
        condition=conditions(resource, rows) if rows else "",
    )


def _fields(
    policy: Policy, resource: Resource, level: AccessLevel, whole: Record, answer: Record
) -> Iterator[SeenField]:
    rules = policy.rules[resource.name]
    for path in resource.paths:
        sight = rules.sight(path, level)
        shown = ABSENT if sight is HIDDEN else at(answer, path)
        yield SeenField(path, sight, at(whole, path), shown)
