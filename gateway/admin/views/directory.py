"""The directory: public ids that partners need, and how the practice system is connected."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from aiohttp import web

from adapters.base import AdapterError, Record
from adapters.examination import Examination, Finding, Verdict
from gateway.admin.chores import EXAMINING, Noted, UnderWay
from gateway.admin.visit import Visit, get, post
from gateway.administrators.administrator import Right
from gateway.administrators.log import DONE, Deed
from gateway.contract.operations import BASE_PATH, OPERATIONS
from gateway.inquiries.practice import examine, first

# Records of each kind at most; with more than a few there is a search.
MOST, MANY = 500, 20
# Seconds that the practice system has for both.
PATIENCE = 3.0
DEED, KEPT = "practice system checked", "practice system checked"
# Findings that are kept: those that matter most.
MOST_FINDINGS = 300
_ORDER = (Verdict.FAILED, Verdict.WARNING, Verdict.OK)
_SLOTS = next(each for each in OPERATIONS if each.id == "list_available_slots")


async def _directory(visit: Visit) -> web.Response:
    """The ids of both kinds, and what the last look at the practice system found."""
    asked, why = visit.asked("q")[:100], ""
    vets = types = None
    try:
        async with asyncio.timeout(PATIENCE):
            adapter = visit.context.adapter
            vets = await first(adapter, "vets", MOST, visit.now)
            types = await first(adapter, "appointmentTypes", MOST, visit.now)
    except TimeoutError:
        why = visit.words("directory.slow")
    except AdapterError as error:
        why = " ".join(str(error).split())
    return visit.page(
        "directory/directory.html",
        vets=_ids(vets or (), asked),
        types=_ids(types or (), asked),
        asked=asked,
        is_long=any(len(records or ()) > MANY for records in (vets, types)),
        most=MOST,
        is_down=vets is None or types is None,
        why=why,
        example=_example(visit, vets or (), types or ()),
        check=await _last_check(visit),
    )


def _ids(records: Sequence[Record], asked: str) -> Mapping[str, Any]:
    """Returns those whose name or id has what is asked for; how many there are; whether all."""
    wanted = asked.casefold()
    found = [
        record
        for record in records
        if wanted in str(record.get("name") or "").casefold() or wanted in str(record["id"])
    ]
    return {"records": found, "all": len(records), "is_cut": len(records) >= MOST}


def _example(visit: Visit, vets: Sequence[Record], types: Sequence[Record]) -> str:
    """Returns a call that a partner can try: free times of the first veterinarian, tomorrow."""
    if not vets:
        return ""
    query = f"vetId={vets[0]['id']}&date={visit.today + timedelta(days=1)}"
    if types:
        query += f"&appointmentTypeId={types[0]['id']}"
    address = f"{visit.context.public_url}{BASE_PATH}{_SLOTS.path}?{query}"
    return f'curl -H "X-API-Key: $KEY" "{address}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCheck:
    """What is known: `at` is None where nobody has looked yet; `failed` is a later attempt."""

    under_way: UnderWay[list[Finding]] | None
    failed: Deed | None = None
    at: datetime | None = None
    who: str = ""
    seconds: float = 0.0
    counts: Mapping[str, int] | None = None
    groups: Sequence[tuple[str, Sequence[Mapping[str, Any]]]] = ()
    left_out: int = 0


async def _last_check(visit: Visit) -> LastCheck:
    """Returns what the last look found; StoreError."""
    under_way = visit.request.app[EXAMINING].under_way
    deeds = await visit.administration.log.last(1, deeds=(DEED,))
    failed = deeds[0] if deeds and deeds[0].outcome != DONE else None
    text = await visit.store.meta(KEPT)
    if text is None:
        return LastCheck(under_way=under_way, failed=failed)
    told = json.loads(text)
    by_verdict: dict[str, list[Mapping[str, Any]]] = {}
    for finding in told.pop("findings"):  # they are kept in order
        by_verdict.setdefault(finding["verdict"], []).append(finding)
    told |= {"at": datetime.fromisoformat(told["at"]), "groups": list(by_verdict.items())}
    return LastCheck(under_way=under_way, failed=failed, **told)


async def _checked(visit: Visit) -> web.Response:
    return visit.page("directory/checked.html", check=await _last_check(visit))


async def _check(visit: Visit) -> web.Response:
    """Looks, in the background; nothing is booked."""
    context, who = visit.context, visit.who.name
    found: list[Finding] = []

    async def look(noted: Noted) -> None:
        began = time.monotonic()
        examination = Examination(now=context.now())
        async with aclosing(examine(context.settings, context.store, examination)) as findings:
            async for finding in findings:
                found.append(finding)  # noqa: PERF401 - pages tell meanwhile how many there are
        told = told_of(found) | {"who": who, "at": context.now().isoformat()}
        told["seconds"] = round(time.monotonic() - began, 1)
        await context.store.set_meta(KEPT, json.dumps(told))
        noted.update(told["counts"])

    run = UnderWay(who, visit.now, found)
    begun = await visit.request.app[EXAMINING].begin(run, visit.deed(DEED), look)
    return visit.go("/directory", "directory.begun" if begun else "directory.runs_already")


def told_of(findings: Sequence[Finding]) -> dict[str, Any]:
    """Returns what is kept of them, what failed first."""
    in_order = sorted(findings, key=lambda finding: _ORDER.index(finding.verdict))
    return {
        "counts": {str(each): sum(one.verdict is each for one in findings) for each in _ORDER},
        "findings": [asdict(finding) for finding in in_order[:MOST_FINDINGS]],
        "left_out": len(in_order[MOST_FINDINGS:]),
    }


PAGES = (
    get("/directory", _directory),
    get("/directory/checked", _checked, polled=True),
    post("/directory/check", _check, Right.CHECK),
)
