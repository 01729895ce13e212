"""Where a policy file says what: the line and column of each decision."""

from dataclasses import dataclass

from adapters.documents.document import parse_document
from gateway.contract.access import LEVELS, AccessLevel
from gateway.policy.reading.document import Reading
from gateway.policy.reading.notes import Notes
from gateway.policy.reading.only import ONLY

Spot = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Spots:
    """Where a policy file decides: lines and columns, counted from 1.

    `opened` and `masked` by resource and field, `only` by resource and level.
    """

    opened: dict[tuple[str, str], Spot]
    masked: dict[tuple[str, str], Spot]
    only: dict[tuple[str, AccessLevel], Spot]


def spots_of(content: bytes, file: str) -> Spots:
    """Where a sound policy file says what; DocumentErrors of one that cannot be read."""
    document = parse_document(content, file)
    reading = Reading(Notes(document))
    marks, keys = document.marks, document.keys
    spots = Spots({}, {}, {})
    for name, lists in reading.lists.items():
        for path, (_, place) in lists.opens.items():
            spots.opened[name, path] = marks[place]
        for path, (_, _, place) in lists.masks.items():
            spots.masked[name, path] = keys[place]
        for level in LEVELS:
            place = (name, ONLY, level.value)
            if (name, ONLY) in keys:
                spots.only[name, level] = keys.get(place, keys[name, ONLY])
    return spots
