"""Veterinarians and types of appointment, with the public ids that partners book by."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from aiohttp import web

from adapters.base import AdapterError, Record
from gateway.admin.views.directory.checking import kept
from gateway.admin.visit import Visit
from gateway.contract.operations import BASE_PATH, OPERATIONS
from gateway.inquiries.directory import first

# Records of each kind at most; with more than a few there is a search.
MOST, MANY = 500, 20
# Seconds that the practice system has for both.
PATIENCE = 3.0
_SLOTS = next(each for each in OPERATIONS if each.id == "list_available_slots")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """What was read of one kind; `all` are as many as there were before the search."""

    records: Sequence[Record]
    all: int

    @property
    def is_cut(self) -> bool:
        """Whether there may be more than were read."""
        return self.all >= MOST


async def directory(visit: Visit) -> web.Response:
    """Both, and what the last look at the practice system found."""
    asked = visit.asked("q")[:100]
    vets = types = None
    why = ""
    try:
        async with asyncio.timeout(PATIENCE):
            vets, types = await _read(visit, "vets"), await _read(visit, "appointmentTypes")
    except TimeoutError:
        why = visit.words("directory.slow")
    except AdapterError as error:
        why = " ".join(str(error).split())
    return visit.page(
        "directory/directory.html",
        vets=_found(vets, asked),
        types=_found(types, asked),
        asked=asked,
        is_long=any(len(each or ()) > MANY for each in (vets, types)),
        most=MOST,
        is_down=vets is None or types is None,
        why=why,
        example=_example(visit, vets, types),
        check=await kept(visit),
    )


async def _read(visit: Visit, resource: str) -> list[Record]:
    return await first(visit.parts.adapter, resource, MOST, visit.parts.now())


def _found(records: Sequence[Record] | None, asked: str) -> Ids:
    """Those whose name or id has what is asked for."""
    wanted = asked.casefold()
    every = records or []
    some = [
        each
        for each in every
        if wanted in str(each.get("name") or "").casefold() or wanted in str(each["id"])
    ]
    return Ids(records=some, all=len(every))


def _example(visit: Visit, vets: Sequence[Record] | None, types: Sequence[Record] | None) -> str:
    """A call that a partner can try: free times of the first veterinarian, tomorrow."""
    if not vets:
        return ""
    day = visit.parts.now().astimezone(visit.parts.zone).date() + timedelta(days=1)
    query = f"vetId={vets[0]['id']}&date={day}"
    if types:
        query += f"&appointmentTypeId={types[0]['id']}"
    address = f"{visit.parts.public_url}{BASE_PATH}{_SLOTS.path}?{query}"
    return f'curl -H "X-API-Key: $KEY" "{address}"'
