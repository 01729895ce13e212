"""Drafts a mapping from a practice database: looks at it, guesses, and writes the file's text.

The door of the room; nothing is ever written to the database.
"""

from dataclasses import dataclass
from typing import Any

from adapters.base import Shapes
from adapters.draft.database import read_database
from adapters.draft.diary import guess_diary
from adapters.draft.document import RowsGuess, text_of
from adapters.draft.records import SPECIAL
from adapters.draft.resource import ResourceGuess
from adapters.draft.tables import Catalog

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
    catalog = Catalog(await read_database(url))
    found: dict[str, RowsGuess | None] = {}
    guesses: dict[str, Any] = {}
    for resource in shapes:
        if resource in catalog.chosen:
            rows = ResourceGuess(catalog, resource, shapes).guessed(SPECIAL.get(resource))
            known = {*rows.fields, "id"}
            missing = [path for path in shapes[resource] if path not in known and "[]." not in path]
            found[resource] = rows
            guesses[resource] = _as_data(rows) | {"missing": missing}
        elif resource != "slots":
            found[resource] = guesses[resource] = None
    rest = guess_diary(catalog, found.get("appointments"))
    return DraftedMapping(text_of(found, rest, shapes, zone, said), guesses)


def _as_data(rows: RowsGuess) -> dict[str, Any]:
    """What was guessed of rows; no value of the database is in it."""
    fields = {
        name: {
            "column": guess.column,
            "score": round(guess.score, 2),
            "why": guess.why,
            "others": list(guess.others),
        }
        for name, guess in rows.fields.items()
    }
    lists = {name: _as_data(inner) for name, inner in rows.lists.items()}
    found = {"table": rows.table, "score": round(rows.score, 2), "fields": fields}
    return {**found, "lists": lists} if lists else found
