"""Shows the policy that runs, the one that waits, and the history; approves or declines."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from aiohttp import web

from adapters.documents.problems import DocumentErrors, Problem
from gateway.admin.visit import Visit, get, number_of, post
from gateway.administrators.administrator import Right
from gateway.inquiries.keys import Which
from gateway.inquiries.policies import DAYS, Touched, lines_of, looked, touched, waiting
from gateway.policy.policy import Rules, Version, compile_policy
from gateway.policy.reading.document import read_version
from gateway.policy.running.keeper import APPROVAL, CASES, PolicyStatus, find
from gateway.policy.running.versions import APPROVED, DECLINED, Event, Versions
from gateway.policy.telling import sheets, wording

PAGE = "/policy"
# Events and problems on the page, which says how many more problems there are.
EVENTS, PROBLEMS = 5, 20
# The most characters of a reason, and events on a page of the history.
LONGEST, AT_ONCE = 500, 25
# Seconds to wait for the running processes before the page is shown anyway.
WITHIN = 5.0
_hash = re.compile("[0-9a-f]{12,64}").fullmatch


@get(PAGE)
async def _policy(visit: Visit, errors: Mapping[str, str] | None = None) -> web.Response:
    """The whole page; `errors` say what was wrong with a decision."""
    versions = Versions(visit.store)
    held = await _waiting(visit, counts=bool(visit.query("answers")))
    standing: PolicyStatus = held["standing"]
    return visit.page(
        "policy/page.html",
        errors=errors,
        **held,
        state="declined" if held["declined"] else standing.state.replace(" ", "_"),
        problems=await asyncio.to_thread(lambda: [*_problems(standing)]),
        failing=[(problem, _place(problem)) for problem in standing.failing[:PROBLEMS]],
        applies=visit.panel.settings.policy_widening == "apply",
        of_cases=standing.waits_for == CASES,
        processes=await versions.running(visit.now),
        past=await versions.history(EVENTS),
        most_problems=PROBLEMS,
        longest=LONGEST,
    )


@get("/policy/answers")
async def _answers(visit: Visit) -> web.Response:
    """The part of the page on whom the waiting change touches, with a count of their answers.

    Without a script it is the whole page with that part in it.
    """
    if not visit.is_part:
        return visit.go("/policy?answers=1#waiting")
    return visit.page("policy/touched.html", **await _waiting(visit, counts=True))


async def _waiting(visit: Visit, *, counts: bool) -> dict[str, Any]:
    """Returns the policy that waits, whom it touches, and who declined it; `counts` answers."""
    standing, touches, declined = visit.panel.standing(), list[Touched](), None
    if standing.waiting is not None:
        changes = wording.changes(standing.policy.rules, standing.waiting.rules)
        selected = await visit.panel.book.find("", Which.ACTIVE, visit.now)
        keys = [held.key for held in selected.keys]
        touches = await touched(changes, keys, visit.store if counts else None, visit.now)
        if standing.waits_for == APPROVAL:
            declined = await Versions(visit.store).declined(standing.waiting.hash)
    return {
        "standing": standing,
        "waiting": standing.waiting,
        "touched": touches,
        "is_counted": counts,
        "declined": declined,
        "days": DAYS,
    }


def _problems(standing: PolicyStatus) -> Iterator[tuple[Problem, str, str]]:
    """Yields each problem of the file with its place, and its line unless the file has changed."""
    path = standing.policy.file
    version = find(Path(path)) if standing.problems else None
    lines = lines_of(version.content) if version and version.hash == standing.file_hash else []
    for problem in standing.problems[:PROBLEMS]:
        has_line = problem.file == path and 0 < problem.line <= len(lines)
        line = lines[problem.line - 1].strip()[:200] if has_line else ""
        yield problem, _place(problem), line


def _place(problem: Problem) -> str:
    name = PurePath(problem.file).name
    return f"{name}:{problem.line}:{problem.column}" if problem.line else name


@get("/policy/history")
async def _history(visit: Visit) -> web.Response:
    """All events, the newest first, a page at a time."""
    number = number_of(visit.query("before"))
    past = await Versions(visit.store).history(AT_ONCE + 1, before=number)
    return visit.page(
        "policy/history.html",
        past=past[:AT_ONCE],
        older=past[AT_ONCE - 1].number if len(past) > AT_ONCE else None,
        is_newest=number is None,
    )


@get("/policy/versions/{hash}")
async def _version(visit: Visit) -> web.Response:
    """A version: its text, its events, and how it differs from the policy that runs."""
    version, rules = await _found(visit, visit.request.match_info["hash"])
    running = visit.panel.standing().policy
    return visit.page(
        "policy/version.html",
        version=version,
        rules=rules,
        running=running,
        differences=wording.changes(running.rules, rules) if rules else [],
        past=await Versions(visit.store).history(AT_ONCE, digest=version.hash),
        lines=lines_of(version.content),
    )


async def _found(visit: Visit, digest: str) -> tuple[Version, Rules | None]:
    """Returns the version whose hash begins so, and its rules if readable; raises HTTPNotFound."""
    if not _hash(digest):
        raise web.HTTPNotFound
    standing = visit.panel.standing()
    if standing.policy.hash.startswith(digest):
        return standing.policy.version, standing.policy.rules
    version = await Versions(visit.store).find(digest)
    if version is None:
        raise web.HTTPNotFound
    try:
        return version, await asyncio.to_thread(read_version, version)
    except DocumentErrors:
        return version, None


@get("/policy/page")
@get("/policy/table")
async def _file(visit: Visit) -> web.Response:
    """Who sees what, by the policy that runs or a version, as a page to print or as CSV."""
    policy = visit.panel.standing().policy
    if digest := visit.query("version"):
        version, rules = await _found(visit, digest)
        if rules is None:
            raise web.HTTPNotFound
        policy = compile_policy(version, rules, lambda trouble: None)
    ending = "csv" if visit.request.path == "/policy/table" else "html"
    return web.Response(
        text=sheets.as_csv(policy) if ending == "csv" else sheets.as_page(policy, visit.today),
        content_type=f"text/{ending}",
        charset="utf-8",
        headers={"Content-Disposition": f'attachment; filename="what-partners-see.{ending}"'},
    )


@post("/policy/approve", Right.POLICY)
@post("/policy/decline", Right.POLICY)
async def _decide(visit: Visit) -> web.Response:
    """Approves the policy that waits, so that every process runs it, or declines it."""
    decision = APPROVED if visit.request.path == "/policy/approve" else DECLINED
    digest, versions, now = visit.text("hash"), Versions(visit.store), visit.panel.now
    reason = " ".join(visit.text("reason").split())
    if digest not in waiting(await versions.running(now())):
        return await _policy(visit, {"form": visit.words("policy.gone")})
    # an approval counts for what was compared: the policy that ran then
    if visit.text("running") != visit.panel.standing().policy.hash:
        return await _policy(visit, {"form": visit.words("policy.moved")})
    if not reason or len(reason) > LONGEST or not reason.isprintable():
        return await _policy(visit, {decision: visit.words("policy.reason_wrong", most=LONGEST)})
    async with visit.deed(f"policy {decision}", digest, reason=reason):
        event = Event(at=now(), event=decision, hash=digest, who=visit.who.name, reason=reason)
        reload = await looked(versions, now, event, within=WITHIN)
    if decision == DECLINED:
        return visit.go(PAGE, "policy.declined")
    is_late = reload.late or digest in waiting(reload.running)
    return visit.go(PAGE, "policy.approved_late" if is_late else "policy.approved")
