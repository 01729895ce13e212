"""The entries that are looked for as a file for a spreadsheet; who took it is in the audit."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime

from aiohttp import web

from gateway.admin.access.guard import HEADERS
from gateway.admin.views.audit.filters import Filters, read_filters
from gateway.admin.visit import KEYS, Visit
from gateway.audit.chains import audit_folder
from gateway.audit.entries import AuditLine
from gateway.audit.search import SearchCursor
from gateway.inquiries.entries import find_entries
from gateway.policy.telling.sheets import plain

# Lines of a file at most, and of one piece of it.
MOST, PIECE = 100_000, 1_000
# Seconds of reading for a piece, and of rest behind it: others are answered meanwhile.
BUDGET, REST = 0.25, 0.01
COLUMNS = (
    "time", "key", "key_id", "operation", "level", "outcome", "reason", "records", "record_ids",
    "request", "policy",
)  # fmt: skip
# A spreadsheet that is not told so takes letters with accents for something else.
MARK = "\ufeff"


async def export(visit: Visit) -> web.StreamResponse:
    """The newest first, as many as there may be."""
    filters = await read_filters(visit, visit.form)
    if filters.errors:
        return visit.go(f"/audit?{filters.query()}")
    response = web.StreamResponse(headers=_headers(visit))
    response.content_type, response.charset = "text/csv", "utf-8"
    asked = {f"by_{name}": text for name, text in filters.given.items()}
    try:
        async with visit.deed("audit exported", "", **asked) as noted:
            noted["lines"] = await _send(visit, filters, response)
    except Exception as error:
        if not response.prepared:
            raise
        # what has begun can only be cut off, so that nobody takes it for the whole
        if visit.request.transport is not None:
            visit.request.transport.abort()
        if not isinstance(error, ConnectionError):
            visit.parts.events.fault("an export of the audit was cut off", error)
    return response


async def _send(visit: Visit, filters: Filters, response: web.StreamResponse) -> int:
    """The file; how many entries it has."""
    words, lines = visit.words, 0
    pieces = _pieces(visit, filters)
    first = await anext(pieces)
    await response.prepare(visit.request)
    head = [words(f"audit.column_{name}") for name in COLUMNS]
    await response.write((MARK + _csv([head])).encode())
    rows, rest = first
    while True:
        lines += len(rows)
        await response.write(_csv(rows).encode())
        if rest is None:
            break
        if lines >= MOST:
            await response.write(_csv([[words("audit.export_bounded", MOST)]]).encode())
            break
        await asyncio.sleep(REST)
        rows, rest = await anext(pieces)
    await response.write_eof()
    return lines


async def _pieces(
    visit: Visit, filters: Filters
) -> AsyncIterator[tuple[list[list[str]], SearchCursor | None]]:
    """Some rows at a time, and whether there is more."""
    parts, place, left = visit.parts, None, MOST
    folder = audit_folder(parts.settings)
    while True:
        most = min(PIECE, left)
        found = await find_entries(parts.store, folder, filters.wanted, most, place, BUDGET)
        names = await visit.request.app[KEYS].names()
        left, place = left - len(found.entries), found.rest
        yield [_row(visit, each, names) for each in found.entries], place


def _row(visit: Visit, entry: AuditLine, names: Mapping[str, str]) -> list[str]:
    at = datetime.fromisoformat(entry.time).astimezone(visit.parts.zone)
    return [
        at.isoformat(timespec="seconds"),
        names.get(entry.key_id or "", ""),
        entry.key_id or "",
        entry.operation,
        entry.level or "",
        visit.words(f"audit.outcome_{entry.outcome}"),
        entry.reason or "",
        str(len(entry.record_ids)),
        " ".join(entry.record_ids),
        entry.request_id,
        entry.policy or "",
    ]


def _csv(rows: Iterable[Sequence[str]]) -> str:
    """As RFC 4180 has it; no cell is taken for a formula."""
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerows(map(plain, row) for row in rows)
    return written.getvalue()


def _headers(visit: Visit) -> dict[str, str]:
    day = visit.parts.now().astimezone(visit.parts.zone).date()
    name = f"audit-{day.isoformat()}.csv"
    # they are sent before whoever adds them to other answers could
    return {
        **HEADERS,
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="{name}"',
    }
