"""Drafts the text of a mapping from a practice database, to which nothing is ever written."""

from typing import Any

from adapters.base import Shapes, inside
from adapters.copies.addresses import is_copied
from adapters.draft.database import read_database
from adapters.draft.diary import guess_diary
from adapters.draft.document import Members, text_of
from adapters.draft.records import SPECIAL
from adapters.draft.resource import fill
from adapters.draft.tables import Catalog, Rows

__all__ = ["draft_mapping"]


async def draft_mapping(
    url: str, shapes: Shapes, zone: str, said: str
) -> tuple[str, dict[str, Any]]:
    """Returns the text of a mapping for the database at the address, and the guesses as JSON data.

    Scores are from 0 to 1. `zone` is that of the clinic's clock, and `said` its comment. Raises
    BackendUnavailable where the database cannot be read, and ValueError, with a sentence, for a
    wrong address.
    """
    catalog = Catalog(await read_database(url), shapes)
    guesses: dict[str, Any] = dict.fromkeys(name for name in shapes if name != "slots")
    for resource, rows in catalog.chosen.items():
        fill(rows, SPECIAL.get(resource))
        own = inside(rows.shapes)
        missing = [name for name in own if name != "id" and name not in rows.fields]
        guesses[resource] = _as_data(rows) | {"missing": missing}
    diary, booking = guess_diary(catalog)
    if is_copied(url):
        booking = Members()
        booking.remark("files are read by a copy, and take no bookings")
    return text_of(catalog.chosen, (diary, booking), shapes, zone, said), guesses


def _as_data(rows: Rows) -> dict[str, Any]:
    """Returns the guesses about rows as JSON data, without any value of the database."""
    fields = {
        name: {
            "column": guess.column,
            "score": round(guess.score, 2),
            "why": guess.why,
            "others": list(guess.others),
        }
        for name, guess in rows.fields.items()
    }
    data = {"table": rows.source.table.name, "score": round(rows.score, 2), "fields": fields}
    lists = {name: _as_data(inner) for name, inner in rows.lists.items()}
    return {**data, "lists": lists} if lists else data
