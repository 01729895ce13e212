"""The directory: public ids that partners need, and how the practice system is connected."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from aiohttp import web

from adapters.base import AdapterError, Record
from adapters.examination import Examination, Finding, Verdict
from gateway.admin.context import Noted, UnderWay
from gateway.admin.visit import Visit, get, post
from gateway.administrators.administrator import Right
from gateway.administrators.log import DONE
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


@get("/directory")
async def _directory(visit: Visit) -> web.Response:
    """The ids of both kinds, and what the last look at the practice system found."""
    asked, why, example, adapter = visit.asked("q")[:100], "", "", visit.panel.adapter
    vets = types = None
    try:
        async with asyncio.timeout(PATIENCE):
            vets = await first(adapter, "vets", MOST, visit.now)
            types = await first(adapter, "appointmentTypes", MOST, visit.now)
    except TimeoutError:
        why = visit.words("directory.slow")
    except AdapterError as error:
        why = " ".join(str(error).split())
    if vets:
        # a call that a partner can try: free times of the first veterinarian, tomorrow
        query = f"vetId={vets[0]['id']}&date={visit.today + timedelta(days=1)}"
        query += f"&appointmentTypeId={types[0]['id']}" if types else ""
        address = f"{visit.panel.public_url}{BASE_PATH}{_SLOTS.path}?{query}"
        example = f'curl -H "X-API-Key: $KEY" "{address}"'
    return visit.page(
        "directory/directory.html",
        vets=_ids(vets or (), asked),
        types=_ids(types or (), asked),
        asked=asked,
        is_long=any(len(records or ()) > MANY for records in (vets, types)),
        most=MOST,
        is_down=vets is None or types is None,
        why=why,
        example=example,
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


async def _last_check(visit: Visit) -> dict[str, Any]:
    """Returns what the last look found; StoreError.

    `at` is None where nobody has looked yet; `failed` is a later attempt.
    """
    # what is under way first: what ends meanwhile is among the deeds then
    check: dict[str, Any] = {"at": None, "under_way": visit.panel.examining.under_way}
    deeds = await visit.panel.deeds.log.last(1, deeds=(DEED,))
    check["failed"] = deeds[0] if deeds and deeds[0].outcome != DONE else None
    if (text := await visit.store.meta(KEPT)) is None:
        return check
    kept: dict[str, Any] = json.loads(text)
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for finding in kept["findings"]:  # they are kept in order
        groups.setdefault(finding["verdict"], []).append(finding)
    return check | kept | {"at": datetime.fromisoformat(kept["at"]), "groups": groups}


@get("/directory/checked", polled=True)
async def _checked(visit: Visit) -> web.Response:
    return visit.page("directory/checked.html", check=await _last_check(visit))


@post("/directory/check", Right.CHECK)
async def _check(visit: Visit) -> web.Response:
    """Looks, in the background; nothing is booked."""
    panel, who = visit.panel, visit.who.name
    found: list[Finding] = []

    async def look(noted: Noted) -> None:
        began = time.monotonic()
        examination = Examination(now=panel.now())
        async with aclosing(examine(panel.settings, panel.store, examination)) as findings:
            async for finding in findings:
                found.append(finding)  # noqa: PERF401 - pages tell meanwhile how many there are
        # what failed first
        in_order = sorted(found, key=lambda finding: _ORDER.index(finding.verdict))
        counts = {str(each): sum(one.verdict is each for one in found) for each in _ORDER}
        kept = {
            "who": who,
            "at": panel.now().isoformat(),
            "seconds": round(time.monotonic() - began, 1),
            "counts": counts,
            "findings": [asdict(finding) for finding in in_order[:MOST_FINDINGS]],
            "left_out": len(in_order[MOST_FINDINGS:]),
        }
        await panel.store.set_meta(KEPT, json.dumps(kept))
        noted.update(counts)

    run = UnderWay(who, visit.now, found)
    begun = await visit.panel.examining.begin(run, visit.deed(DEED), look)
    return visit.go("/directory", "directory.begun" if begun else "directory.runs_already")
