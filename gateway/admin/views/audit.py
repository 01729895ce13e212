"""The audit: its entries as pages and as a file, who has seen a record, deeds, verification."""

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
# A text may be the name of so many keys.
MOST_KEYS = 20
_LONGEST = 200
PAGE = 50
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
_GOVERNED = {resource.name: resource for resource in GOVERNED}
# Seconds that the index is brought up for: the gateway does it each minute anyhow. Keys that are
# shown of those that have seen a record.
WITHIN, MOST_READERS = 0.25, 200
VERIFIED = "audit verified"
# What is kept of what is to be said; attempts that are looked through for one that came to its end.
MOST_TOLD, _ATTEMPTS = 20, 20


@dataclass(frozen=True, slots=True)
class EntryFilters:
    """`given` are the texts that are not empty; `errors` say what is wrong with one.

    `too_many` is whether more keys have that name than are searched for.
    """

    given: Mapping[str, str]
    errors: Mapping[str, str]
    wanted: EntryFilter
    too_many: bool


async def read_filters(visit: Visit, told: Mapping[str, object]) -> EntryFilters:
    """Returns those of an address or of a form; StoreError."""
    given = {name: text for name in NAMES if (text := str(told.get(name, "")).strip()[:_LONGEST])}
    key = given.get("key", "")
    if key.startswith(PREFIX):
        # somebody may have pasted a whole secret: it is not shown again
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
    found = (await visit.panel.book.find(key, Which.ALL, visit.now)).keys if key else ()
    keys = [each.key.id for each in found]
    if not keys and index.uuid_key(key):
        # of a key that is gone the audit tells nevertheless
        keys = [index.record_id(key)]
    if key and not keys:
        errors["key"] = visit.words("audit.no_such_key")
    wanted = EntryFilter(
        keys=frozenset(keys[:MOST_KEYS]) if key else None,
        operation=given.get("operation", ""),
        record=index.record_id(given.get("record", "")),
        outcome=given.get("outcome", ""),
        request=given.get("request", ""),
        since=moments.get("from"),
        until=moments.get("to"),
    )
    return EntryFilters(given, errors, wanted, len(keys) > MOST_KEYS)


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


@get("/audit")
async def _entries(visit: Visit) -> web.Response:
    filters, after = await read_filters(visit, visit.request.query), visit.asked("after")
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
        **await last_entries(visit, None if filters.errors else filters.wanted, PAGE, place),
    )


async def last_entries(
    visit: Visit, wanted: EntryFilter | None, most: int, place: SearchCursor | None = None
) -> dict[str, Any]:
    """Returns `rows` of times and entries, the newest first; and `unread`, why they cannot be read.

    `rest` is where to go on, and `in_time` whether there was time for all, as in EntryPage.
    """
    told: dict[str, Any] = {"rows": [], "rest": None, "in_time": True, "unread": ""}
    if wanted is None:
        return told
    folder = chains.audit_folder(visit.panel.settings)
    try:
        found = await inquiries.find_entries(visit.store, folder, wanted, most, place)
    except OSError as error:
        return told | {"unread": _unreadable(folder, error)}
    rows = [(datetime.fromisoformat(entry.time), entry) for entry in found.entries]
    rows.sort(key=lambda row: row[0], reverse=True)
    return told | {"rows": rows, "rest": found.rest, "in_time": found.in_time}


def _unreadable(folder: Path, error: OSError) -> str:
    return f"{error.filename or folder}: {reason_of(error)}"


@post("/audit/export", Right.READ)
async def _export(visit: Visit) -> web.StreamResponse:
    """The newest entries first, as many as there may be; who took them is in the audit."""
    filters = await read_filters(visit, visit.form)
    if filters.errors:
        return visit.go(f"/audit?{urlencode(filters.given)}")
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
            noted["lines"] = await _send(visit, filters.wanted, response)
    except Exception as error:
        if not response.prepared:
            raise
        # what has begun can only be cut off, so that nobody takes it for the whole
        if visit.request.transport is not None:
            visit.request.transport.abort()
        if not isinstance(error, ConnectionError):
            visit.panel.events.report("export_cut_off", error)
    return response


async def _send(visit: Visit, wanted: EntryFilter, response: web.StreamResponse) -> int:
    """Sends the file a piece at a time; returns how many entries it has."""
    folder, place, lines = chains.audit_folder(visit.panel.settings), None, 0
    while True:
        most = min(PIECE, MOST - lines)
        found = await inquiries.find_entries(visit.store, folder, wanted, most, place, BUDGET)
        names = await visit.panel.book.names()
        rows = [_cells(visit, entry, names) for entry in found.entries]
        if not response.prepared:
            await response.prepare(visit.request)
            head = [visit.words(f"audit.column_{column}") for column in COLUMNS]
            await response.write(MARK.encode() + csv_of([head]).encode())
        await response.write(csv_of(rows).encode())
        lines, place = lines + len(rows), found.rest
        if place is None:
            break
        if lines >= MOST:
            bounded = visit.words("audit.export_bounded", MOST)
            await response.write(csv_of([[bounded]]).encode())
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
    who, before = visit.asked("who")[:60], number_of(visit.asked("before"))
    found = await visit.panel.deeds.log.last(PAGE + 1, who=who, before=before)
    people = await visit.panel.administrators.list()
    return visit.page(
        "audit/deeds.html",
        keys=await visit.panel.book.names(),
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
        return detail([f"{name}: {detail(member)}" for name, member in value.items()])
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(detail, value)) or NONE
    return NONE if value is None or value == "" else str(value)


@get("/audit/who")
async def _record_readers(visit: Visit) -> web.Response:
    """Who has seen a record, as an owner may ask: keys, and administrators in the panel."""
    name, record = visit.asked("resource"), index.record_id(visit.asked("id")[:200])
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
    """Returns what is known of this machine's folder; StoreError.

    `last` is the last look that came to its end, `failed` a later one that did not.
    """
    subject = chains.place_of(chains.audit_folder(visit.panel.settings)) or ""
    # first: what ends meanwhile is among the deeds then
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
    """The part of the page that says whether the audit is as it was written."""
    return visit.page("audit/verification.html", verification=await _verification(visit))


@post("/audit/verify", Right.CHECK)
async def _verify(visit: Visit) -> web.Response:
    panel, progress = visit.panel, inquiries.VerifyProgress()

    async def look(noted: Noted) -> None:
        noted.update(told(await inquiries.verify_audit(panel.settings, panel.store, progress)))

    run = UnderWay(visit.who.name, visit.now, progress)
    deed = visit.deed(VERIFIED, chains.place_of(chains.audit_folder(panel.settings)) or "")
    begun = await visit.panel.verifying.begin(run, deed, look)
    return visit.go("/audit", "verification.begun" if begun else "verification.runs_already")


def told(found: inquiries.AuditReport) -> Mapping[str, Any]:
    """Returns what is kept: the sums, and the first of what is to be said."""
    broken = [verdict.broken for verdict in found.verdicts if verdict.broken]
    notes = [note for verdict in found.verdicts for note in verdict.notes]
    return {
        "chains": len({verdict.chain for verdict in found.verdicts if verdict.chain}),
        "files": sum(verdict.files for verdict in found.verdicts),
        "lines": sum(verdict.lines for verdict in found.verdicts),
        "broken": len(broken),
        "where": broken[:MOST_TOLD],
        "notes": len(notes),
        "noted": notes[:MOST_TOLD],
        "elsewhere": sorted({chain.host for chain in found.others})[:MOST_TOLD],
    }
