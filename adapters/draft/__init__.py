"""Drafts the text of a mapping from a practice database, to which nothing is ever written."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from adapters.base import Shapes, inside
from adapters.copies.addresses import is_copied
from adapters.draft.clocks import set_clocks
from adapters.draft.database import opened, read_database
from adapters.draft.decisions import Doubt, Judge, decide
from adapters.draft.diary import guess_diary
from adapters.draft.document import Members, text_of
from adapters.draft.laws import prove
from adapters.draft.probe import DatabaseProbe
from adapters.draft.records import SPECIAL
from adapters.draft.resource import fill
from adapters.draft.tables import Catalog, Rows

__all__ = ["Doubt", "Judge", "draft_mapping"]


async def draft_mapping(
    url: str,
    shapes: Shapes,
    zone: str,
    said: str,
    *,
    judge: Judge | None = None,
    accept: bool = False,
) -> tuple[str, dict[str, Any]]:
    """Returns the text of a mapping for the database at the address, and the guesses as JSON data.

    Scores are from 0 to 1. `zone` is that of the clinic's clock, and `said` its comment. What the
    data do not prove is written where the `judge` confirms it, or else where it is accepted. Raises
    BackendUnavailable where the database cannot be read, and ValueError, with a sentence, for a
    wrong address.
    """
    async with opened(url) as engine:
        database = await read_database(engine)
        probe = DatabaseProbe(engine, asyncio.get_running_loop())
        # it looks at the database while it is made, and so waits for the loop in a thread
        make = partial(Catalog, database, shapes, probe, ZoneInfo(zone))
        decided = partial(_drafted, judge=judge, accept=accept, is_copy=is_copied(url))
        return await asyncio.to_thread(decided, make, shapes, said)


def _drafted(
    make: Callable[[], Catalog],
    shapes: Shapes,
    said: str,
    *,
    judge: Judge | None,
    accept: bool,
    is_copy: bool,
) -> tuple[str, dict[str, Any]]:
    catalog, now = make(), datetime.now(UTC)
    for resource, rows in catalog.chosen.items():
        fill(rows, SPECIAL.get(resource))
    catalog.is_utc = set_clocks(catalog.chosen, catalog.zone, now)
    prove(catalog.chosen, now)
    decide(catalog, judge, accept=accept)
    guesses: dict[str, Any] = dict.fromkeys(name for name in shapes if name != "slots")
    for resource, rows in catalog.chosen.items():
        own = inside(rows.shapes)
        missing = [name for name in own if name != "id" and name not in rows.fields]
        guesses[resource] = _as_data(rows) | {"missing": missing}
    diary, booking = guess_diary(catalog, judge, accept=accept)
    if is_copy:
        booking = Members()
        booking.remark("files are read by a copy, and take no bookings")
    return text_of(catalog.chosen, (diary, booking), shapes, catalog.zone.key, said), guesses


def _as_data(rows: Rows) -> dict[str, Any]:
    """Returns the guesses about rows as JSON data, without any value of the database."""
    fields = {
        name: {
            "column": guess.column,
            "score": round(guess.score, 2),
            "why": guess.why,
            "proof": guess.proof,
            "others": list(guess.others),
            "written": guess.is_written,
        }
        for name, guess in rows.fields.items()
    }
    data = {
        "table": rows.source.table.name,
        "score": round(rows.score, 2),
        "proof": rows.proof,
        "written": rows.is_written,
        "fields": fields,
    }
    lists = {name: _as_data(inner) for name, inner in rows.lists.items()}
    return {**data, "lists": lists} if lists else data
