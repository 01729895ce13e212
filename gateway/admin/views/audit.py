"""Shows the audit: its entries, who has seen a record, deeds, and verification."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from aiohttp import web

from gateway.admin.context import Noted, UnderWay
from gateway.admin.guard import HEADERS
from gateway.admin.visit import Visit, get, number_of, post
from gateway.administrators.administrator import Right
from gateway.administrators.log import DONE
from gateway.audit import chains, entries, index, questions
from gateway.audit.search import EntryFilter, SearchCursor, read_cursor
from gateway.contract.operations import OPERATIONS
from gateway.contract.resources import GOVERNED
from gateway.identity import reason_of
from gateway.inquiries import audit as inquiries
from gateway.inquiries.keys import Which
from gateway.keys.secret import PREFIX, hint
from gateway.policy.masks import read_mask
from gateway.policy.telling.sheets import csv_of

NAMES = ("key", "operation", "record", "outcome", "request", "from", "to")
CHOICES = {
    "operation": tuple(operation.id for operation in OPERATIONS),
    "outcome": (entries.ANSWERED, entries.REFUSED, entries.FAILED, entries.UNKNOWN, entries.BEGUN),
}
# Keys of one name that are searched for at most.
MOST_KEYS = 20
PAGE = 50
# The most lines of an exported file, and of one piece of it.
MOST, PIECE = 100_000, 1_000
# Seconds of reading for a piece, and of rest after it, in which others are answered.
BUDGET, REST = 0.25, 0.01
COLUMNS = (
    "time", "key", "key_id", "operation", "level", "outcome", "reason", "records", "record_ids",
    "request", "policy",
)  # fmt: skip
# Tells a spreadsheet that the file is UTF-8.
MARK = "\ufeff"
NONE = "\N{EN DASH}"
# Operation -> the resource whose records an owner may ask about.
_RESOURCES = {call.id: call.returns.name for call in OPERATIONS if call.returns.governed}
_GOVERNED = {resource.name: resource for resource in GOVERNED}
# Seconds that a page updates the index for, which the gateway does each minute too; and the most
# readers of a record that are shown.
WITHIN, MOST_READERS = 0.25, 200
VERIFIED = "audit verified"
# Messages that are kept of a verification; attempts that are searched for the last finished one.
MOST_TOLD, _ATTEMPTS = 20, 20


@dataclass(frozen=True, slots=True)
class EntryFilters:
    """What a form asks for: `given` are its texts, `errors` say what is wrong with one.

    `too_many` says whether more keys have that name than are searched for.
    """

    given: Mapping[str, str]
    errors: Mapping[str, str]
    filter: EntryFilter
    too_many: bool


async def read_filters(visit: Visit, data: Mapping[str, object]) -> EntryFilters:
    """Reads the filters of an address or a form; raises StoreError."""
    given = {name: text for name in NAMES if (text := str(data.get(name, "")).strip()[:200])}
    key = given.get("key", "")
    if key.startswith(PREFIX):
        # a whole secret that was pasted is not shown again
        given["key"] = key = hint(key)
    errors = {
        name: visit.words("audit.unknown_choice")
        for name, choices in CHOICES.items()
        if name in given and given[name] not in choices
    }
    moments = dict[str, datetime]()
    for name in given.keys() & {"from", "to"}:
        try:
            moments[name] = _moment(given[name], visit.panel.zone, is_end=name == "to")
        except (ValueError, OverflowError):
            errors[name] = visit.words("audit.bad_time")
    held = (await visit.panel.book.find(key, Which.ALL, visit.now)).keys if key else ()
    keys = [known.key.id for known in held]
    if not keys and index.uuid_key(key):
        # the audit still knows a key that is gone
        keys = [index.record_id(key)]
    if key and not keys:
        errors["key"] = visit.words("audit.no_such_key")
    entry_filter = EntryFilter(
        keys=frozenset(keys[:MOST_KEYS]) if key else None,
        operation=given.get("operation", ""),
        record=index.record_id(given.get("record", "")),
        outcome=given.get("outcome", ""),
        request=given.get("request", ""),
        since=moments.get("from"),
        until=moments.get("to"),
    )
    return EntryFilters(given, errors, entry_filter, len(keys) > MOST_KEYS)


def _moment(text: str, zone: ZoneInfo, *, is_end: bool) -> datetime:
    """Reads a time, in the clinic's zone where it has no offset; raises ValueError, OverflowError.

    Of a time that comes twice, an end is the later one. Without seconds it is that of the minute.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone, fold=int(is_end))
    if is_end and len(text) <= len("2026-11-22T10:04"):
        moment = moment.replace(second=59, microsecond=999_999)
    return moment.astimezone(UTC)


@get("/audit")
async def _entries(visit: Visit) -> web.Response:
    filters, after = await read_filters(visit, visit.request.query), visit.query("after")
    place = None
    with suppress(ValueError):
        place = read_cursor(after)
    return visit.page(
        "audit/list.html",
        errors=filters.errors,
        filters=filters,
        choices=CHOICES,
        names=await visit.panel.book.names(),
        resources=_RESOURCES,
        is_first=not after,
        most_keys=MOST_KEYS,
        most_lines=MOST,
        verification=await _verification(visit),
        **await last_entries(visit, None if filters.errors else filters.filter, PAGE, place),
    )


async def last_entries(
    visit: Visit, entry_filter: EntryFilter | None, most: int, place: SearchCursor | None = None
) -> dict[str, Any]:
    """Returns `rows` of times and entries, the newest first; `unread` tells why there are none.

    `rest` is where to go on, and `in_time` whether there was time for all, as in EntryPage.
    """
    values: dict[str, Any] = {"rows": [], "rest": None, "in_time": True, "unread": ""}
    if entry_filter is None:
        return values
    folder = chains.audit_folder(visit.panel.settings)
    try:
        page = await inquiries.find_entries(visit.store, folder, entry_filter, most, place)
    except OSError as error:
        return values | {"unread": _unreadable(folder, error)}
    rows = [(datetime.fromisoformat(entry.time), entry) for entry in page.entries]
    rows.sort(key=lambda row: row[0], reverse=True)
    return values | {"rows": rows, "rest": page.rest, "in_time": page.in_time}


def _unreadable(folder: Path, error: OSError) -> str:
    return f"{error.filename or folder}: {reason_of(error)}"


@post("/audit/export", Right.READ)
async def _export(visit: Visit) -> web.StreamResponse:
    """Up to MOST entries as a file, the newest first; the export is itself in the audit."""
    filters = await read_filters(visit, visit.form)
    if filters.errors:
        return visit.go(f"/audit?{urlencode(filters.given)}")
    response = web.StreamResponse(
        headers={
            # the stream begins before the guard adds these
            **HEADERS,
            "Cache-Control": "no-store",
            "Content-Disposition": f'attachment; filename="audit-{visit.today.isoformat()}.csv"',
        }
    )
    response.content_type, response.charset = "text/csv", "utf-8"
    details = {f"by_{name}": text for name, text in filters.given.items()}
    try:
        async with visit.deed("audit exported", "", **details) as noted:
            noted["lines"] = await _send(visit, filters.filter, response)
    except Exception as error:
        if not response.prepared:
            raise
        # a file that has begun is cut off, so that it is not taken for the whole
        if visit.request.transport is not None:
            visit.request.transport.abort()
        if not isinstance(error, ConnectionError):
            visit.panel.events.report("export_cut_off", error)
    return response


async def _send(visit: Visit, entries_of: EntryFilter, response: web.StreamResponse) -> int:
    """Sends the file piece by piece; returns the number of its entries."""
    folder, place, lines = chains.audit_folder(visit.panel.settings), None, 0
    while True:
        most = min(PIECE, MOST - lines)
        page = await inquiries.find_entries(visit.store, folder, entries_of, most, place, BUDGET)
        names = await visit.panel.book.names()
        rows = [_cells(visit, entry, names) for entry in page.entries]
        if not response.prepared:
            await response.prepare(visit.request)
            head = [visit.words(f"audit.column_{column}") for column in COLUMNS]
            await response.write(MARK.encode() + csv_of([head]).encode())
        await response.write(csv_of(rows).encode())
        lines, place = lines + len(rows), page.rest
        if place is None:
            break
        if lines >= MOST:
            await response.write(csv_of([[visit.words("audit.export_bounded", MOST)]]).encode())
            break
        await asyncio.sleep(REST)
    await response.write_eof()
    return lines


def _cells(visit: Visit, entry: entries.AuditLine, names: Mapping[str, str]) -> list[str]:
    at = datetime.fromisoformat(entry.time).astimezone(visit.panel.zone)
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


@get("/audit/deeds")
async def _deeds(visit: Visit) -> web.Response:
    """What administrators did, the newest first, a page at a time; of one name, or of all."""
    who, before = visit.query("who")[:60], number_of(visit.query("before"))
    deeds = await visit.panel.deeds.log.last(PAGE + 1, who=who, before=before)
    people = await visit.panel.administrators.list()
    return visit.page(
        "audit/deeds.html",
        keys=await visit.panel.book.names(),
        people={person.id: person.name for person in people},
        written=detail,
        deeds=deeds[:PAGE],
        asked=who,
        next=deeds[PAGE - 1].number if len(deeds) > PAGE else None,
        is_first=before is None,
    )


def detail(value: Any) -> str:
    """Returns a detail as text: several in a row, and a dash for none."""
    if isinstance(value, Mapping):
        return detail([f"{name}: {detail(member)}" for name, member in value.items()])
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(detail, value)) or NONE
    return NONE if value is None or value == "" else str(value)


@get("/audit/who")
async def _record_readers(visit: Visit) -> web.Response:
    """Who has seen a record, as an owner may ask: keys, and administrators in the panel."""
    name, record = visit.query("resource"), index.record_id(visit.query("id")[:200])
    known: dict[str, Any] = {"resource": name, "record": record, "unread": "", "state": None}
    if name in _GOVERNED and record:
        folder = chains.audit_folder(visit.panel.settings)
        try:
            state = await questions.brought_up(visit.store, folder, lambda size: None, WITHIN)
        except OSError as error:
            known["unread"] = _unreadable(folder, error)
        else:
            resource, readers, is_known = _GOVERNED[name], list[inquiries.RecordReader](), True
            looks = await visit.panel.deeds.log.looks(name, record)
            if state.lost is None:
                names = await visit.panel.book.names()
                days = questions.Days()
                readers = await inquiries.readers_of(visit.store, resource, record, days, names)
                is_known = bool(readers or looks) or await inquiries.can_be(
                    visit.store, resource, record
                )
            known |= {
                "state": state,
                "readers": readers[:MOST_READERS],
                "all": len(readers),
                "looks": looks,
                "gaps": [(gap, datetime.fromisoformat(gap.until)) for gap in state.gaps],
                "is_known": is_known,
                "fields": len(resource.paths),
            }
    return visit.page("audit/who.html", most=MOST_READERS, read_mask=read_mask, **known)


async def _verification(visit: Visit) -> dict[str, Any]:
    """Returns the last finished verification of this machine's folder, and a later failure."""
    subject = chains.place_of(chains.audit_folder(visit.panel.settings)) or ""
    # read before the deeds, which then have a run that ends meanwhile
    under_way = visit.panel.verifying.under_way
    deeds = await visit.panel.deeds.log.last(_ATTEMPTS, subject=subject, deeds=(VERIFIED,))
    last = next((deed for deed in deeds if deed.outcome == DONE), None)
    return {
        "under_way": under_way,
        "last": last,
        "failed": deeds[0] if deeds and deeds[0] is not last else None,
        "is_broken": last is not None and bool(last.details["broken"]),
    }


@get("/audit/verification", polled=True)
async def _status(visit: Visit) -> web.Response:
    return visit.page("audit/verification.html", verification=await _verification(visit))


@post("/audit/verify", Right.CHECK)
async def _verify(visit: Visit) -> web.Response:
    panel, progress = visit.panel, inquiries.VerifyProgress()

    async def look(noted: Noted) -> None:
        report = await inquiries.verify_audit(panel.settings, panel.store, progress)
        noted.update(summary_of(report))

    run = UnderWay(visit.who.name, visit.now, progress)
    deed = visit.deed(VERIFIED, chains.place_of(chains.audit_folder(panel.settings)) or "")
    begun = await visit.panel.verifying.begin(run, deed, look)
    return visit.go("/audit", "verification.begun" if begun else "verification.runs_already")


def summary_of(report: inquiries.AuditReport) -> Mapping[str, Any]:
    """Returns what a deed keeps of a verification: its sums, and its first messages."""
    broken = [verdict.broken for verdict in report.verdicts if verdict.broken]
    notes = [note for verdict in report.verdicts for note in verdict.notes]
    return {
        "chains": len({verdict.chain for verdict in report.verdicts if verdict.chain}),
        "files": sum(verdict.files for verdict in report.verdicts),
        "lines": sum(verdict.lines for verdict in report.verdicts),
        "broken": len(broken),
        "where": broken[:MOST_TOLD],
        "notes": len(notes),
        "noted": notes[:MOST_TOLD],
        "elsewhere": sorted({chain.host for chain in report.others})[:MOST_TOLD],
    }
