"""Whether the audit is as it was written: what the last look found, and another one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from gateway.admin.chores import VERIFYING, Noted, UnderWay
from gateway.admin.visit import Visit
from gateway.administrators.log import DONE, Deed
from gateway.audit.chains import audit_folder, place_of
from gateway.inquiries.verification import Progress, Verified, verify_audit
from gateway.settings import StartRefused

DEED = "audit verified"
# What is kept of what is to be said.
MOST_TOLD = 20
# Attempts that are looked through for one that came to its end.
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known of the audit: `last` came to its end, `failed` is a later one that did not."""

    under_way: UnderWay[Progress] | None
    last: Deed | None
    failed: Deed | None

    @property
    def is_broken(self) -> bool:
        """Whether the last look found that something is not as it was written."""
        return self.last is not None and bool(self.last.details["broken"])


async def standing(visit: Visit) -> Standing:
    """That of this machine's folder. StoreError."""
    under_way = visit.request.app[VERIFYING].under_way
    subject = place_of(audit_folder(visit.parts.settings)) or ""
    deeds = await visit.administration.log.last(_ATTEMPTS, subject=subject, deeds=(DEED,))
    last = next((each for each in deeds if each.outcome == DONE), None)
    newest = deeds[0] if deeds else None
    return Standing(under_way=under_way, last=last, failed=newest if newest is not last else None)


async def state(visit: Visit) -> web.Response:
    """The part of the page that says so."""
    return visit.page("audit/verification.html", verification=await standing(visit))


async def begin(visit: Visit) -> web.Response:
    """Look, in the background."""
    parts, progress = visit.parts, Progress()
    chore = visit.request.app[VERIFYING]
    subject = place_of(audit_folder(parts.settings)) or ""

    async def look(noted: Noted) -> None:
        try:
            found = await verify_audit(parts.settings, parts.store, progress)
        except (OSError, StartRefused) as error:
            noted["why"] = str(error)
            raise
        noted.update(told(found))

    run = UnderWay(visit.who.name, parts.now(), progress)
    begun = await chore.begin(run, visit.deed(DEED, subject), look)
    return visit.go("/audit", "verification.begun" if begun else "verification.runs_already")


def told(found: Verified) -> Mapping[str, Any]:
    """What is kept: the sums, and the first of what is to be said."""
    broken = [each.broken for each in found.verdicts if each.broken]
    notes = [note for each in found.verdicts for note in each.notes]
    return {
        "chains": len({each.chain for each in found.verdicts if each.chain}),
        "files": sum(each.files for each in found.verdicts),
        "lines": sum(each.lines for each in found.verdicts),
        "broken": len(broken),
        "where": broken[:MOST_TOLD],
        "notes": len(notes),
        "noted": notes[:MOST_TOLD],
        "elsewhere": sorted({each.host for each in found.others})[:MOST_TOLD],
    }
