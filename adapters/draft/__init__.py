"""Drafts a mapping from a practice database: looks at it, guesses, and writes the file's text.

The door of the room; nothing is ever written to the database.
"""

from dataclasses import dataclass
from typing import Any

from adapters.base import Shapes
from adapters.draft.guess import guess, unmapped
from adapters.draft.guesses import RowsGuess
from adapters.draft.reflect import reflect
from adapters.draft.write import write

__all__ = ["DraftedMapping", "draft_mapping"]


@dataclass(frozen=True, slots=True)
class DraftedMapping:
    """The text of the file; what was guessed, with scores from 0 to 1, as JSON has it."""

    text: str
    guesses: dict[str, Any]


async def draft_mapping(url: str, shapes: Shapes, zone: str, said: str) -> DraftedMapping:
    """A mapping of the database at that address.

    `zone` is that of the clinic's clock, and `said` its comment. BackendUnavailable where the
    database cannot be had; ValueError, in a sentence, for what is no address of one.
    """
    draft = guess(await reflect(url), shapes)
    told = {
        resource: None
        if rows is None
        else _told(rows) | {"missing": unmapped(rows, shapes[resource])}
        for resource, rows in draft.resources.items()
    }
    return DraftedMapping(write(draft, shapes, zone, said), told)


def _told(rows: RowsGuess) -> dict[str, Any]:
    """What was guessed of rows; no value of the database is in it."""
    fields = {
        name: {
            "column": each.column,
            "score": round(each.score, 2),
            "why": each.why,
            "others": list(each.others),
        }
        for name, each in rows.fields.items()
    }
    lists = {name: _told(each) for name, each in rows.lists.items()}
    found = {"table": rows.table, "score": round(rows.score, 2), "fields": fields}
    return {**found, "lists": lists} if lists else found
