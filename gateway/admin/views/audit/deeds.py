"""What administrators did in the panel."""

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from gateway.admin.visit import KEYS, Visit, number_of

PAGE = 50
NONE = "\N{EN DASH}"


async def deeds(visit: Visit) -> web.Response:
    """The newest first, a page at a time; of one name where it is given."""
    who, at = visit.asked("who")[:60], number_of(visit.asked("before"))
    found = await visit.administration.log.last(PAGE + 1, who=who, before=at)
    people = await visit.administration.administrators.list()
    return visit.page(
        "audit/deeds.html",
        keys=await visit.request.app[KEYS].names(),
        people={each.id: each.name for each in people},
        written=written,
        deeds=found[:PAGE],
        asked=who,
        next=found[PAGE - 1].number if len(found) > PAGE else None,
        is_first=at is None,
    )


def written(value: Any) -> str:
    """A detail as it is read: several in a row, and a dash for none."""
    if isinstance(value, Mapping):
        return written([f"{name}: {written(each)}" for name, each in value.items()])
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(written, value)) or NONE
    return NONE if value is None or value == "" else str(value)
