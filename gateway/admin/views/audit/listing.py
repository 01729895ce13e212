"""The entries of the audit, the newest first, as far as they are looked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from aiohttp import web

from gateway.admin.views.audit.export import MOST as MOST_LINES
from gateway.admin.views.audit.filters import IDS, MOST_KEYS, OUTCOMES, Filters, read_filters
from gateway.admin.views.audit.verification import standing
from gateway.admin.visit import KEYS, Visit
from gateway.audit.chains import audit_folder
from gateway.audit.entries import AuditLine
from gateway.audit.search import SearchCursor, read_cursor
from gateway.contract.operations import OPERATIONS
from gateway.inquiries.entries import Found, find_entries

PAGE = 50
MOST_RECORDS = 3
# Operation -> the resource whose records an owner may ask about.
_RESOURCES = {each.id: each.returns.name for each in OPERATIONS if each.returns.governed}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An entry as it is shown; `name` is "" of a key that is gone."""

    entry: AuditLine
    at: datetime
    name: str
    resource: str
    records: Sequence[str]
    more: int


async def listing(visit: Visit) -> web.Response:
    """A page of them."""
    filters = await read_filters(visit, visit.request.query)
    found, unread = await _found(visit, filters, _place(visit.asked("after")))
    names = await visit.request.app[KEYS].names()
    rows = [_row(each, names) for each in found.entries]
    return visit.page(
        "audit/list.html",
        422 if filters.errors else 200,
        filters=filters,
        operations=IDS,
        outcomes=OUTCOMES,
        rows=sorted(rows, key=lambda each: each.at, reverse=True),
        rest=found.rest,
        in_time=found.in_time,
        is_first=not visit.asked("after"),
        unread=unread,
        most_keys=MOST_KEYS,
        most_lines=MOST_LINES,
        verification=await standing(visit),
    )


async def _found(visit: Visit, filters: Filters, place: SearchCursor | None) -> tuple[Found, str]:
    """What there is, and why the folder cannot be read where that is so."""
    nothing = Found(entries=[], rest=None, in_time=True)
    if filters.errors:
        return nothing, ""
    folder = audit_folder(visit.parts.settings)
    try:
        found = await find_entries(visit.parts.store, folder, filters.wanted, PAGE, place)
    except OSError as error:
        return nothing, f"{error.filename or folder}: {(error.strerror or str(error)).lower()}"
    return found, ""


def _row(entry: AuditLine, names: Mapping[str, str]) -> Row:
    return Row(
        entry=entry,
        at=datetime.fromisoformat(entry.time),
        name=names.get(entry.key_id or "", ""),
        resource=_RESOURCES.get(entry.operation, ""),
        records=entry.record_ids[:MOST_RECORDS],
        more=len(entry.record_ids[MOST_RECORDS:]),
    )


def _place(text: str) -> SearchCursor | None:
    """Where the page before ended; the beginning, where that is nowhere."""
    try:
        return read_cursor(text) if text else None
    except ValueError:
        return None
