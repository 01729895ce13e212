"""Drafts a mapping from a practice database: looks at it, guesses, and writes the file's text.

The door of the room; nothing is ever written to the database.
"""

from typing import Any

from adapters.base import Shapes, inside
from adapters.draft.database import read_database
from adapters.draft.diary import guess_diary
from adapters.draft.document import text_of
from adapters.draft.records import SPECIAL
from adapters.draft.resource import fill
from adapters.draft.tables import Catalog, Rows

__all__ = ["draft_mapping"]


async def draft_mapping(
    url: str, shapes: Shapes, zone: str, said: str
) -> tuple[str, dict[str, Any]]:
    """The text of a mapping of the database at that address; what was guessed, as JSON has it.

    Scores are from 0 to 1. `zone` is that of the clinic's clock, and `said` its comment.
    BackendUnavailable where the database cannot be had; ValueError, in a sentence, for what is no
    address of one.
    """
    catalog = Catalog(await read_database(url), shapes)
    guesses: dict[str, Any] = dict.fromkeys(name for name in shapes if name != "slots")
    for resource, rows in catalog.chosen.items():
        fill(rows, SPECIAL.get(resource))
        own = inside(rows.shapes)
        missing = [name for name in own if name != "id" and name not in rows.fields]
        guesses[resource] = _as_data(rows) | {"missing": missing}
    return text_of(catalog.chosen, guess_diary(catalog), shapes, zone, said), guesses


def _as_data(rows: Rows) -> dict[str, Any]:
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
    found = {"table": rows.source.table.name, "score": round(rows.score, 2), "fields": fields}
    lists = {name: _as_data(inner) for name, inner in rows.lists.items()}
    return {**found, "lists": lists} if lists else found
