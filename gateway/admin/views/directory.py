"""Shows the public ids that partners need, and how the practice system is connected."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, replace
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

# The most records of each kind, and how many are shown without a search.
MOST, MANY = 500, 20
# Seconds that the practice system has for both kinds.
PATIENCE = 3.0
DEED, KEPT = "practice system checked", "practice system checked"
# The most findings that are kept: the worst come first.
MOST_FINDINGS = 300
_ORDER = (Verdict.FAILED, Verdict.WARNING, Verdict.NOTE, Verdict.OK)
_SLOTS = next(call for call in OPERATIONS if call.id == "list_available_slots")


@get("/directory")
async def _directory(visit: Visit) -> web.Response:
    """The ids of both kinds, and what the last check of the practice system found."""
    text, why, example, adapter = visit.query("q")[:100], "", "", visit.panel.adapter
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
        # a call to try: the first veterinarian's free times tomorrow
        query = f"vetId={vets[0]['id']}&date={visit.today + timedelta(days=1)}"
        query += f"&appointmentTypeId={types[0]['id']}" if types else ""
        address = f"{visit.panel.public_url}{BASE_PATH}{_SLOTS.path}?{query}"
        example = f'curl -H "X-API-Key: $KEY" "{address}"'
    return visit.page(
        "directory/directory.html",
        vets=_ids(vets or (), text),
        types=_ids(types or (), text),
        asked=text,
        is_long=any(len(records or ()) > MANY for records in (vets, types)),
        most=MOST,
        is_down=vets is None or types is None,
        why=why,
        example=example,
        check=await _last_check(visit),
    )


def _ids(records: Sequence[Record], text: str) -> Mapping[str, Any]:
    """Returns the records whose name or id has the text, and how many there are in all."""
    text = text.casefold()
    matches = [
        record
        for record in records
        if text in str(record.get("name") or "").casefold() or text in str(record["id"])
    ]
    return {"records": matches, "all": len(records), "is_cut": len(records) >= MOST}


def without_values(finding: Finding) -> dict[str, Any]:
    """Returns a finding as it is kept: without values of records."""
    return asdict(replace(finding, examples=()))


async def _last_check(visit: Visit) -> dict[str, Any]:
    """Returns what the last check found; raises StoreError.

    `at` is None where there was none; `failed` is a later attempt that was not done.
    """
    # read before the deeds, which then have a run that ends meanwhile
    check: dict[str, Any] = {"at": None, "under_way": visit.panel.examining.under_way}
    deeds = await visit.panel.deeds.log.last(1, deeds=(DEED,))
    check["failed"] = deeds[0] if deeds and deeds[0].outcome != DONE else None
    if (text := await visit.store.meta(KEPT)) is None:
        return check
    kept: dict[str, Any] = json.loads(text)
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for finding in kept["findings"]:  # kept in order
        groups.setdefault(finding["verdict"], []).append(finding)
    return check | kept | {"at": datetime.fromisoformat(kept["at"]), "groups": groups}


@get("/directory/checked", polled=True)
async def _checked(visit: Visit) -> web.Response:
    return visit.page("directory/checked.html", check=await _last_check(visit))


@post("/directory/check", Right.CHECK)
async def _check(visit: Visit) -> web.Response:
    """Begins a check in the background, which books nothing."""
    panel, who = visit.panel, visit.who.name
    findings: list[Finding] = []

    async def look(noted: Noted) -> None:
        began = time.monotonic()
        examination = Examination(now=panel.now())
        async with aclosing(examine(panel.settings, panel.store, examination)) as stream:
            async for finding in stream:
                findings.append(finding)  # noqa: PERF401 - pages show the number meanwhile
        in_order = sorted(findings, key=lambda finding: _ORDER.index(finding.verdict))
        counts = {str(kind): sum(one.verdict is kind for one in findings) for kind in _ORDER}
        kept = {
            "who": who,
            "at": panel.now().isoformat(),
            "seconds": round(time.monotonic() - began, 1),
            "counts": counts,
            "findings": [without_values(finding) for finding in in_order[:MOST_FINDINGS]],
            "left_out": len(in_order[MOST_FINDINGS:]),
        }
        await panel.store.set_meta(KEPT, json.dumps(kept))
        noted.update(counts)

    run = UnderWay(who, visit.now, findings)
    begun = await visit.panel.examining.begin(run, visit.deed(DEED), look)
    return visit.go("/directory", "directory.begun" if begun else "directory.runs_already")
