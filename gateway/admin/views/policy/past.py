"""What happened with the policy so far, and each version that ran or waited."""

import asyncio
import re
from dataclasses import dataclass

from aiohttp import web

from adapters.documents.problems import DocumentErrors
from gateway.admin.policy_words import PolicyWords
from gateway.admin.visit import Visit, number_of
from gateway.inquiries.lines import lines_of
from gateway.policy.rules import Rules
from gateway.policy.running.text import read_version
from gateway.policy.running.versions import Version, Versions
from gateway.policy.telling.wording import changes

AT_ONCE = 25
_hash = re.compile("[0-9a-f]{12,64}").fullmatch


@dataclass(frozen=True, slots=True)
class Kept:
    """A version with its rules; None where its text is not the one that ran."""

    version: Version
    rules: Rules | None


async def history(visit: Visit) -> web.Response:
    """Everything, the newest first, some at a time."""
    number = number_of(visit.asked("before"))
    past = await Versions(visit.parts.store).history(AT_ONCE + 1, before=number)
    return visit.page(
        "policy/history.html",
        past=past[:AT_ONCE],
        older=past[AT_ONCE - 1].number if len(past) > AT_ONCE else None,
        is_newest=number is None,
    )


async def version(visit: Visit) -> web.Response:
    """One version: its text, what became of it, and how it differs from what runs."""
    found, parts = await kept(visit, visit.request.match_info["hash"]), visit.parts
    running = parts.standing().policy
    rules = found.rules
    return visit.page(
        "policy/version.html",
        version=found.version,
        rules=rules,
        running=running,
        differences=changes(running.rules, rules) if rules else [],
        past=await Versions(parts.store).history(AT_ONCE, digest=found.version.hash),
        lines=lines_of(found.version.content),
        said_of=PolicyWords(visit.words),
    )


async def kept(visit: Visit, digest: str) -> Kept:
    """The version whose hash begins so; 404 where there is none."""
    if not _hash(digest):
        raise web.HTTPNotFound
    running = visit.parts.running()
    if running.hash.startswith(digest):
        return Kept(running, visit.parts.standing().policy.rules)
    found = await Versions(visit.parts.store).find(digest)
    if found is None:
        raise web.HTTPNotFound
    return Kept(found, await asyncio.to_thread(_rules, found))


def _rules(version: Version) -> Rules | None:
    try:
        return read_version(version)
    except DocumentErrors:
        return None
