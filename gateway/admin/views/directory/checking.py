"""What a look at the practice system finds: the last one is kept, another is begun here."""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from aiohttp import web

from adapters.examination import Examination, Finding, Verdict
from gateway.admin.chores import EXAMINING, Noted, UnderWay
from gateway.admin.visit import Visit
from gateway.administrators.log import DONE, Deed
from gateway.inquiries.examining import examine
from gateway.settings import StartRefused

DEED, KEPT = "practice system checked", "practice system checked"
# Findings that are kept: those that matter most.
MOST = 300
_ORDER = (Verdict.FAILED, Verdict.WARNING, Verdict.OK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What is known: `at` is None where nobody has looked yet; `failed` is a later attempt."""

    under_way: UnderWay[list[Finding]] | None
    failed: Deed | None = None
    at: datetime | None = None
    who: str = ""
    seconds: float = 0.0
    counts: Mapping[str, int] | None = None
    groups: Sequence[tuple[str, Sequence[Mapping[str, Any]]]] = ()
    left_out: int = 0


async def kept(visit: Visit) -> Check:
    """What the last look found. StoreError."""
    under_way = visit.request.app[EXAMINING].under_way
    deeds = await visit.administration.log.last(1, deeds=(DEED,))
    failed = deeds[0] if deeds and deeds[0].outcome != DONE else None
    text = await visit.parts.store.meta(KEPT)
    if text is None:
        return Check(under_way=under_way, failed=failed)
    told = json.loads(text)
    findings = told["findings"]
    by_verdict = [
        (str(verdict), [each for each in findings if each["verdict"] == verdict])
        for verdict in _ORDER
    ]
    return Check(
        under_way=under_way,
        failed=failed,
        at=datetime.fromisoformat(told["at"]),
        who=told["who"],
        seconds=told["seconds"],
        counts=told["counts"],
        groups=[(verdict, group) for verdict, group in by_verdict if group],
        left_out=told["left_out"],
    )


async def state(visit: Visit) -> web.Response:
    """The part of the page that says so."""
    return visit.page("directory/checked.html", check=await kept(visit))


async def begin(visit: Visit) -> web.Response:
    """Look, in the background; nothing is booked."""
    parts, who = visit.parts, visit.who.name
    found: list[Finding] = []

    async def look(noted: Noted) -> None:
        began = time.monotonic()
        examination = Examination(now=parts.now())
        try:
            async with aclosing(examine(parts.settings, parts.store, examination)) as findings:
                async for each in findings:
                    found.append(each)  # noqa: PERF401 - pages tell meanwhile how many there are
        except StartRefused as error:
            noted["why"] = str(error)
            raise
        told = told_of(found) | {"who": who, "at": parts.now().isoformat()}
        told["seconds"] = round(time.monotonic() - began, 1)
        await parts.store.set_meta(KEPT, json.dumps(told))
        noted.update(told["counts"])

    run = UnderWay(who, parts.now(), found)
    begun = await visit.request.app[EXAMINING].begin(run, visit.deed(DEED), look)
    return visit.go("/directory", "directory.begun" if begun else "directory.runs_already")


def told_of(findings: Sequence[Finding]) -> dict[str, Any]:
    """What is kept of them, what failed first."""
    in_order = sorted(findings, key=lambda each: _ORDER.index(each.verdict))
    return {
        "counts": {str(each): sum(one.verdict is each for one in findings) for each in _ORDER},
        "findings": [asdict(each) for each in in_order[:MOST]],
        "left_out": len(in_order[MOST:]),
    }
