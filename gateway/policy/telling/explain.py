"""Why a level sees what it sees: each field of a resource, and the line that decides it."""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource
from gateway.policy.masks import Mask
from gateway.policy.reading.document import Spot, Spots
from gateway.policy.rules import HIDDEN, WHOLE, ResourceRules, Sight
from gateway.policy.spelling import conditions_in_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One decision: about a field, or with an empty `path` about the records.

    `sight` is `whole`, `hidden` or the mask; of records it is `all` or their conditions. `spot` is
    the line and column that decide, None where no line is about it.
    """

    path: str
    sight: str
    why: str
    spot: Spot | None


def reasons(
    resource: Resource, rules: ResourceRules, level: AccessLevel, spots: Spots
) -> Iterator[Reason]:
    """The records first, then each field in the order of the answers."""
    yield _of_records(resource, rules, level, spots)
    for path in resource.paths:
        yield _of_field(resource.name, path, rules, level, spots)


def _of_records(
    resource: Resource, rules: ResourceRules, level: AccessLevel, spots: Spots
) -> Reason:
    rows = rules.rows_of(level)
    spot = spots.only.get((resource.name, level)) if rows else None
    words = conditions_in_file(resource, rows) if rows else "all"
    why = f"only these records exist at {level}" if rows else f"every record exists at {level}"
    return Reason(path="", sight=words, why=why, spot=spot)


def _of_field(
    resource: str, path: str, rules: ResourceRules, level: AccessLevel, spots: Spots
) -> Reason:
    sight, first = rules.sight(path, level), rules.opened_at(path)
    opened, masked = spots.opened.get((resource, path)), spots.masked.get((resource, path))
    whole = f"whole from {first} on" if first else "whole at no level"
    if sight is WHOLE:
        return Reason(path=path, sight="whole", why=f"{first} opens it", spot=opened)
    if isinstance(sight, Mask):
        at = rules.first(path, lambda each: each == sight)
        return Reason(path=path, sight=str(sight), why=f"{at} masks it; {whole}", spot=masked)
    lowest = rules.first(path, lambda each: each is not HIDDEN)
    return Reason(path=path, sight="hidden", why=_hidden(rules, path, lowest), spot=opened)


def _hidden(rules: ResourceRules, path: str, lowest: AccessLevel | None) -> str:
    if lowest is None:
        return "no level opens it"
    sight: Sight = rules.fields[path][LEVELS.index(lowest)]
    return f"{lowest} opens it" if sight is WHOLE else f"{lowest} is the first to see it, masked"
