"""The policy's page: the file, what runs, what waits and whom it touches, and the matrix."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from aiohttp import web

from adapters.documents.problems import Problem
from gateway.admin.policy_words import PolicyWords
from gateway.admin.visit import KEYS, Visit
from gateway.contract.access import LEVELS
from gateway.contract.resources import GOVERNED
from gateway.inquiries.comparisons import DAYS, Touched, touched, whom
from gateway.inquiries.key_book import Which
from gateway.inquiries.lines import lines_of
from gateway.keys.key import Key
from gateway.policy.policy import Policy
from gateway.policy.running.file import find
from gateway.policy.running.keeper import APPROVAL, CASES, PolicyStatus
from gateway.policy.running.versions import Event, Versions
from gateway.policy.telling.wording import changes

# Events, problems and names of keys that stand on the page; of more it says how many.
EVENTS, PROBLEMS, NAMED = 5, 20, 3
# Letters of a reason.
LONGEST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The policy that waits, what it changes for whom, and who declined it.

    `is_counted` is whether the answers of the last days are counted by now.
    """

    policy: Policy
    touched: Sequence[Touched]
    is_counted: bool
    declined: Event | None


async def policy(visit: Visit, wrong: Mapping[str, str] | None = None) -> web.Response:
    """All of it; `wrong` is what was the matter with a decision."""
    parts = visit.parts
    standing, versions = parts.standing(), Versions(parts.store)
    waiting = await _waiting(visit, standing, counts=bool(visit.asked("answers")))
    is_declined = waiting is not None and waiting.declined is not None
    return visit.page(
        "policy/page.html",
        422 if wrong else 200,
        standing=standing,
        state="declined" if is_declined else standing.state.replace(" ", "_"),
        problems=await asyncio.to_thread(_told, standing),
        failing=[(each, _place(each)) for each in standing.failing[:PROBLEMS]],
        applies=parts.settings.policy_widening == "apply",
        of_cases=standing.waits_for == CASES,
        processes=await versions.running(parts.now()),
        waiting=waiting,
        past=await versions.history(EVENTS),
        said_of=PolicyWords(visit.words),
        resources=GOVERNED,
        levels=LEVELS,
        days=DAYS,
        most_named=NAMED,
        most_problems=PROBLEMS,
        longest=LONGEST,
        wrong=wrong or {},
    )


async def answers(visit: Visit) -> web.Response:
    """Whom the waiting change touches, with their answers: a part of the page, which takes longer.

    Asked for as a page of its own, it is the whole page with that part in it.
    """
    if not visit.is_part:
        return visit.go("/policy?answers=1#waiting")
    standing = visit.parts.standing()
    return visit.page(
        "policy/touched.html",
        waiting=await _waiting(visit, standing, counts=True),
        standing=standing,
        said_of=PolicyWords(visit.words),
        days=DAYS,
        most_named=NAMED,
    )


async def _waiting(visit: Visit, standing: PolicyStatus, *, counts: bool) -> Waiting | None:
    waiting, store = standing.waiting, visit.parts.store
    if waiting is None:
        return None
    found = changes(standing.policy.rules, waiting.rules)
    keys = await _active(visit)
    if counts:
        touches = await whom(found, keys, store, visit.parts.now())
    else:
        touches = await asyncio.to_thread(touched, found, keys, {})
    is_asked = standing.waits_for == APPROVAL
    declined = await Versions(store).declined(waiting.hash) if is_asked else None
    return Waiting(policy=waiting, touched=touches, is_counted=counts, declined=declined)


async def _active(visit: Visit) -> list[Key]:
    found = await visit.request.app[KEYS].find("", Which.ACTIVE, visit.parts.now())
    return [each.key for each in found.keys]


def _told(standing: PolicyStatus) -> list[tuple[Problem, str, str]]:
    """What is wrong with the file: each with its place, and its line while the file has it."""
    if not standing.problems:
        return []
    path = standing.policy.file
    found = find(Path(path))
    lines = lines_of(found.content) if found.hash == standing.file_hash else []
    return [
        (each, _place(each), _line(lines, each) if each.file == path else "")
        for each in standing.problems[:PROBLEMS]
    ]


def _place(problem: Problem) -> str:
    name = PurePath(problem.file).name
    return f"{name}:{problem.line}:{problem.column}" if problem.line else name


def _line(lines: Sequence[str], problem: Problem) -> str:
    return lines[problem.line - 1].strip()[:200] if 0 < problem.line <= len(lines) else ""
