"""The audit: entries that are looked for, as pages and as a file, and what administrators did."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from aiohttp import web

from gateway.admin.guard import HEADERS
from gateway.admin.views import record_readers, verification
from gateway.admin.visit import Visit, get, number_of, post
from gateway.administrators.administrator import Right
from gateway.audit.chains import audit_folder
from gateway.audit.entries import ANSWERED, BEGUN, FAILED, REFUSED, UNKNOWN, AuditLine
from gateway.audit.index import record_id, uuid_key
from gateway.audit.search import EntryFilter, SearchCursor, read_cursor
from gateway.contract.operations import OPERATIONS
from gateway.inquiries.audit import EntryPage, find_entries
from gateway.inquiries.keys import Which
from gateway.keys.secret import PREFIX, hint
from gateway.policy.telling.sheets import plain

NAMES = ("key", "operation", "record", "outcome", "request", "from", "to")
IDS = tuple(each.id for each in OPERATIONS)
OUTCOMES = (ANSWERED, REFUSED, FAILED, UNKNOWN, BEGUN)
# A text may be the name of so many keys.
MOST_KEYS = 20
_LONGEST = 200
PAGE, MOST_RECORDS = 50, 3
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
NONE = "\N{EN DASH}"
# Operation -> the resource whose records an owner may ask about.
_RESOURCES = {each.id: each.returns.name for each in OPERATIONS if each.returns.governed}


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilters:
    """`given` are the texts that are not empty; `errors` say what is wrong with one.

    `too_many` is whether more keys have that name than are searched for.
    """

    given: Mapping[str, str]
    errors: Mapping[str, str]
    wanted: EntryFilter
    too_many: bool = False

    def query(self, **more: str) -> str:
        """Returns the same for an address."""
        return urlencode({**self.given, **more})


async def read_filters(visit: Visit, told: Mapping[str, object]) -> EntryFilters:
    """Returns those of an address or of a form; StoreError."""
    given = {name: text for name in NAMES if (text := str(told.get(name, "")).strip()[:_LONGEST])}
    if given.get("key", "").startswith(PREFIX):
        # somebody may have pasted a whole secret: it is not shown again
        given["key"] = hint(given["key"])
    errors = {
        name: visit.words("audit.unknown_choice")
        for name, choices in (("operation", IDS), ("outcome", OUTCOMES))
        if given.get(name, choices[0]) not in choices
    }
    moments: dict[str, datetime | None] = {}
    for name in ("from", "to"):
        try:
            text, zone = given.get(name, ""), visit.context.zone
            moments[name] = _moment(text, zone, is_end=name == "to") if text else None
        except (ValueError, OverflowError):
            moments[name] = None
            errors[name] = visit.words("audit.bad_time")
    keys = await _keys(visit, given["key"]) if "key" in given else None
    if keys is not None and not keys:
        errors["key"] = visit.words("audit.no_such_key")
    wanted = EntryFilter(
        keys=None if keys is None else frozenset(keys[:MOST_KEYS]),
        operation=given.get("operation", ""),
        record=record_id(given.get("record", "")),
        outcome=given.get("outcome", ""),
        request=given.get("request", ""),
        since=moments["from"],
        until=moments["to"],
    )
    too_many = len(keys or ()) > MOST_KEYS
    return EntryFilters(given=given, errors=errors, wanted=wanted, too_many=too_many)


async def _keys(visit: Visit, text: str) -> Sequence[str]:
    """Returns the ids of the keys that are meant."""
    found = [each.key.id for each in (await visit.keys.find(text, Which.ALL, visit.now)).keys]
    if not found and uuid_key(text):
        # of a key that is gone the audit tells nevertheless
        return [record_id(text)]
    return found


def _moment(text: str, zone: ZoneInfo, *, is_end: bool) -> datetime:
    """Returns a time on the clinic's wall clock; where that shows it twice, all of both.

    Without seconds an end is that of the minute. ValueError, OverflowError.
    """
    read = datetime.fromisoformat(text)
    if read.tzinfo is None:
        read = read.replace(tzinfo=zone, fold=int(is_end))
    if is_end and len(text) <= len("2026-11-22T10:04"):
        read = read.replace(second=59, microsecond=999_999)
    return read.astimezone(UTC)


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An entry as it is shown; `name` is "" of a key that is gone."""

    entry: AuditLine
    at: datetime
    name: str
    resource: str
    records: Sequence[str]
    more: int


async def _entries(visit: Visit) -> web.Response:
    """A page of entries, the newest first."""
    filters = await read_filters(visit, visit.request.query)
    found, unread = await _found(visit, filters, visit.asked("after"))
    names = await visit.keys.names()
    rows = [_row(entry, names) for entry in found.entries]
    return visit.page(
        "audit/list.html",
        422 if filters.errors else 200,
        filters=filters,
        operations=IDS,
        outcomes=OUTCOMES,
        rows=sorted(rows, key=lambda row: row.at, reverse=True),
        rest=found.rest,
        in_time=found.in_time,
        is_first=not visit.asked("after"),
        unread=unread,
        most_keys=MOST_KEYS,
        most_lines=MOST,
        verification=await verification.audit_status(visit),
    )


def _row(entry: AuditLine, names: Mapping[str, str]) -> EntryRow:
    at, name = datetime.fromisoformat(entry.time), names.get(entry.key_id or "", "")
    records, more = entry.record_ids[:MOST_RECORDS], len(entry.record_ids[MOST_RECORDS:])
    return EntryRow(entry, at, name, _RESOURCES.get(entry.operation, ""), records, more)


async def _found(visit: Visit, filters: EntryFilters, after: str) -> tuple[EntryPage, str]:
    """Returns what there is after a place, and why the folder cannot be read where that is so."""
    nothing = EntryPage(entries=[], rest=None, in_time=True)
    if filters.errors:
        return nothing, ""
    try:
        place = read_cursor(after) if after else None
    except ValueError:
        place = None
    folder = audit_folder(visit.context.settings)
    try:
        return await find_entries(visit.store, folder, filters.wanted, PAGE, place), ""
    except OSError as error:
        return nothing, verification.unreadable(folder, error)


async def _export(visit: Visit) -> web.StreamResponse:
    """The newest entries first, as many as there may be; who took them is in the audit."""
    filters = await read_filters(visit, visit.form)
    if filters.errors:
        return visit.go(f"/audit?{filters.query()}")
    response = web.StreamResponse(
        headers={
            # they are sent before whoever adds them to other answers could
            **HEADERS,
            "Cache-Control": "no-store",
            "Content-Disposition": f'attachment; filename="audit-{visit.today.isoformat()}.csv"',
        }
    )
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
            visit.context.events.fault("an export of the audit was cut off", error)
    return response


async def _send(visit: Visit, filters: EntryFilters, response: web.StreamResponse) -> int:
    """Sends the file; returns how many entries it has."""
    words, lines = visit.words, 0
    pieces = _pieces(visit, filters)
    rows, rest = await anext(pieces)
    await response.prepare(visit.request)
    head = [words(f"audit.column_{name}") for name in COLUMNS]
    await response.write((MARK + _csv([head])).encode())
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
    visit: Visit, filters: EntryFilters
) -> AsyncIterator[tuple[list[list[str]], SearchCursor | None]]:
    """Yields some rows at a time, and whether there is more."""
    place, left, folder = None, MOST, audit_folder(visit.context.settings)
    while True:
        most = min(PIECE, left)
        found = await find_entries(visit.store, folder, filters.wanted, most, place, BUDGET)
        names = await visit.keys.names()
        left, place = left - len(found.entries), found.rest
        yield [_cells(visit, entry, names) for entry in found.entries], place


def _cells(visit: Visit, entry: AuditLine, names: Mapping[str, str]) -> list[str]:
    at = datetime.fromisoformat(entry.time).astimezone(visit.context.zone)
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
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerows(map(plain, row) for row in rows)
    return text.getvalue()


async def _deeds(visit: Visit) -> web.Response:
    """What administrators did, the newest first, a page at a time; of one name, or of all."""
    who, before = visit.asked("who")[:60], number_of(visit.asked("before"))
    found = await visit.administration.log.last(PAGE + 1, who=who, before=before)
    people = await visit.administration.administrators.list()
    return visit.page(
        "audit/deeds.html",
        keys=await visit.keys.names(),
        people={each.id: each.name for each in people},
        written=detail,
        deeds=found[:PAGE],
        asked=who,
        next=found[PAGE - 1].number if len(found) > PAGE else None,
        is_first=before is None,
    )


def detail(value: Any) -> str:
    """Returns a detail as it is read: several in a row, and a dash for none."""
    if isinstance(value, Mapping):
        return detail([f"{name}: {detail(each)}" for name, each in value.items()])
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(detail, value)) or NONE
    return NONE if value is None or value == "" else str(value)


PAGES = (
    get("/audit", _entries),
    get("/audit/who", record_readers.record_readers),
    get("/audit/deeds", _deeds),
    get("/audit/verification", verification.status, polled=True),
    post("/audit/export", _export, Right.READ),
    post("/audit/verify", verification.verify, Right.CHECK),
)
