"""Whether the audit is as it was written: what the last look found, and another one."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from gateway.admin.chores import VERIFYING, Noted, UnderWay
from gateway.admin.visit import Visit
from gateway.administrators.log import DONE, Deed
from gateway.audit.chains import audit_folder, place_of
from gateway.inquiries.verification import AuditReport, VerifyProgress, verify_audit

DEED = "audit verified"
# What is kept of what is to be said.
MOST_TOLD = 20
# Attempts that are looked through for one that came to its end.
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditStatus:
    """What is known of the audit: `last` came to its end, `failed` is a later one that did not."""

    under_way: UnderWay[VerifyProgress] | None
    last: Deed | None
    failed: Deed | None

    @property
    def is_broken(self) -> bool:
        """Whether the last look found that something is not as it was written."""
        return self.last is not None and bool(self.last.details["broken"])


async def audit_status(visit: Visit) -> AuditStatus:
    """Returns that of this machine's folder; StoreError."""
    under_way = visit.request.app[VERIFYING].under_way
    deeds = await visit.administration.log.last(_ATTEMPTS, subject=_subject(visit), deeds=(DEED,))
    last = next((deed for deed in deeds if deed.outcome == DONE), None)
    newest = deeds[0] if deeds else None
    failed = newest if newest is not last else None
    return AuditStatus(under_way=under_way, last=last, failed=failed)


def _subject(visit: Visit) -> str:
    return place_of(audit_folder(visit.context.settings)) or ""


def unreadable(folder: Path, error: OSError) -> str:
    """Returns what cannot be read, and why."""
    return f"{error.filename or folder}: {(error.strerror or str(error)).lower()}"


async def status(visit: Visit) -> web.Response:
    """The part of the page that says so."""
    return visit.page("audit/verification.html", verification=await audit_status(visit))


async def verify(visit: Visit) -> web.Response:
    """Looks, in the background."""
    context, progress = visit.context, VerifyProgress()

    async def look(noted: Noted) -> None:
        noted.update(told(await verify_audit(context.settings, context.store, progress)))

    run = UnderWay(visit.who.name, visit.now, progress)
    deed = visit.deed(DEED, _subject(visit))
    begun = await visit.request.app[VERIFYING].begin(run, deed, look)
    return visit.go("/audit", "verification.begun" if begun else "verification.runs_already")


def told(found: AuditReport) -> Mapping[str, Any]:
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
