"""Approving a policy that waits, or declining it: with a name, a reason, and a trace."""

from aiohttp import web

from gateway.admin.views.policy.page import LONGEST, policy
from gateway.admin.visit import Visit
from gateway.inquiries.waiting import Asked, looked, waiting
from gateway.policy.running.versions import APPROVED, DECLINED, Event, Versions

# Seconds that the running processes have before the page is shown all the same.
WITHIN = 5.0
PAGE = "/policy"


async def approve(visit: Visit) -> web.Response:
    """It runs from now on, on every process of the store."""
    return await _decide(visit, APPROVED)


async def decline(visit: Visit) -> web.Response:
    """What runs goes on, and the page says who declined what waits."""
    return await _decide(visit, DECLINED)


async def _decide(visit: Visit, decision: str) -> web.Response:
    parts, digest = visit.parts, visit.text("hash")
    versions = Versions(parts.store)
    if digest not in waiting(await versions.running(parts.now())):
        return await policy(visit, {"form": visit.words("policy.gone")})
    # who approves has seen how much wider it is than what ran then
    if visit.text("running") != parts.standing().policy.hash:
        return await policy(visit, {"form": visit.words("policy.moved")})
    reason = " ".join(visit.text("reason").split())
    if not reason or len(reason) > LONGEST or not reason.isprintable():
        return await policy(visit, {decision: visit.words("policy.reason_wrong", most=LONGEST)})
    async with visit.deed(f"policy {decision}", digest, reason=reason):
        event = Event(
            at=parts.now(), event=decision, hash=digest, who=visit.who.name, reason=reason
        )
        asked = await looked(versions, parts.now, event, within=WITHIN)
    if decision == DECLINED:
        return visit.go(PAGE, "policy.declined")
    return visit.go(PAGE, "policy.approved" if _runs(asked, digest) else "policy.approved_late")


def _runs(asked: Asked, digest: str) -> bool:
    """Whether every process has looked, and none holds it back any more."""
    return not asked.late and digest not in waiting(asked.running)
