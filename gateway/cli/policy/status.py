"""`clinic-gateway policy status`, `reload`, `approve` and `decline`: ask the running gateways."""

import re
from collections.abc import Iterator, Mapping
from os.path import realpath
from pathlib import Path
from socket import gethostname
from types import MappingProxyType
from typing import Any

import click

from gateway.cli.command import Command, Run, actor, now, option
from gateway.cli.output import fail, members, plain, say
from gateway.cli.values import ONE_LINE, TextValue
from gateway.inquiries.policies import Reload, looked, waiting
from gateway.policy.running.keeper import CASES, CURRENT
from gateway.policy.running.versions import APPROVED, DECLINED, Event, Versions

NOBODY = "no gateway is running on this store"


def _digest(text: str) -> str:
    """Returns a whole hash: two policies can be written whose hashes begin alike."""
    if not re.fullmatch("[0-9a-f]{64}", text.lower()):
        raise ValueError(
            "write all 64 digits of the waiting policy's hash: others may begin like it"
        )
    return text.lower()


def _remark(text: str) -> str:
    if not text.strip():
        raise ValueError("it must not be blank")
    return str(ONE_LINE.read(text)).strip()


_reason = option(
    "--reason", TextValue("TEXT", _remark), "Why it may show more, or may not.", required=True
)
_by = option(
    "--by",
    TextValue("NAME", _remark),
    "Who asked for it: a remark beside the reason. The audit and the history name the system"
    " account that runs this.",
)
_hash = click.argument("digest", metavar="HASH", type=TextValue("HASH", _digest))


@click.command(cls=Command)
async def status(run: Run) -> None:
    """Print which policy each running gateway has, and what is the matter with its file.

    Exit 0 where each runs its file; 1 where one refused it or holds it back, or none is running.
    Cases that fail are named either way.
    """
    async with run.store(NOBODY) as store:
        versions = Versions(store)
        running = await versions.running(now())
        refusals = {
            digest: refusal
            for digest in waiting(running)
            if (refusal := await versions.declined(digest))
        }
    named = run.settings.policy
    for process in running:
        follows = Path(process.state["file"])
        if process.host == gethostname() and realpath(follows) != realpath(named):
            text = f"process {process.pid} follows {follows}, and the configuration names {named}"
            say(f"{text} by now: start the gateway anew", err=True)
    _print(run, Reload(running, 0), refusals)


@click.command(cls=Command)
async def reload(run: Run) -> None:
    """Have the running gateways look at their policy file, and say what came of it.

    They see a changed file by themselves; this waits until they have, and has one that was refused,
    or whose cases fail, tried again. Exit 1 where one refused it or holds it back, or none is
    running.
    """
    async with run.store(NOBODY) as store:
        answers = await looked(Versions(store), now)
    _print(run, answers)


@click.command(cls=Command)
@_hash
@_by
@_reason
async def approve(run: Run, digest: str, by: str | None, reason: str) -> None:
    """Let the policy run that a gateway holds back, as it shows more than the one that runs.

    HASH is the waiting policy's, whole, as `policy status` prints it; its cases must pass first.
    The approval is kept with the system account that gave it, its reason and its time, and counts
    once: when another policy has run meanwhile, this one waits again.
    """
    _print(run, await _decided(run, APPROVED, digest, by, reason))


@click.command(cls=Command)
@_hash
@_by
@_reason
async def decline(run: Run, digest: str, by: str | None, reason: str) -> None:
    """Decline the policy that a gateway holds back.

    The one that runs goes on. HASH is the waiting policy's, whole, as `policy status` prints it.
    `policy status` and the panel show who declined it and why, until the file changes or somebody
    approves it after all.
    """
    await _decided(run, DECLINED, digest, by, reason)
    line = f"{digest} is declined by {actor()}; the policy that runs goes on"
    run.say({"declined": digest, "by": actor(), "reason": reason}, [line])


async def _decided(run: Run, decision: str, digest: str, by: str | None, reason: str) -> Reload:
    """Enters a decision, and returns the running gateways; ends if the policy does not wait."""
    async with run.store(NOBODY) as store:
        versions = Versions(store)
        running = await versions.running(now())
        decidable = waiting(running)
        if digest not in decidable:
            if digest in [process.state.get("waiting") for process in running]:
                fail(
                    f"the policy {digest} waits for its cases to pass, and can be decided on then:"
                    " clinic-gateway policy test names those that fail"
                )
            if decidable:
                fail(f"the policy {digest} does not wait: {', '.join(decidable)} does")
            fail("no policy waits for an approval: there is nothing to decide")
        details = {"reason": reason} | ({"by": by} if by else {})
        why = f"{reason} (asked by {by})" if by else reason
        async with run.deed(store, f"policy {decision}", digest, **details):
            event = Event(at=now(), event=decision, hash=digest, who=actor(), reason=why)
            return await looked(versions, now, event)


def _print(run: Run, answers: Reload, refusals: Mapping[str, Event] = MappingProxyType({})) -> None:
    """Prints what the gateways say; exits with 1 where one does not run its file, or none runs."""
    data = []
    for process in answers.running:
        times = {"startedAt": process.started_at, "seenAt": process.seen_at}
        data.append(members(process, "host", "pid") | times | dict(process.state))
        if refusal := refusals.get(process.state["waiting"]):
            data[-1]["declined"] = members(refusal, "at", "reason") | {"by": refusal.who}
    run.say({"processes": data}, (line for state in data for line in _lines(state)))
    if not data:
        fail(NOBODY)
    for process in answers.late:
        say(f"process {process.pid} on {process.host} has not looked in time", err=True)
    if answers.late or any(process.state.get("state") != CURRENT for process in answers.running):
        raise click.exceptions.Exit(1)


def _lines(state: Mapping[str, Any]) -> Iterator[str]:
    role = f" ({state['role']})" if "role" in state else ""
    yield f"process {state['pid']} on {state['host']}{role}: {state['state']}"
    yield f"  runs      {state['hash']} since {state['loadedAt']}"
    yield f"  file      {state['fileHash'] or 'unreadable'} {state['file']}"
    if made_of := state.get("madeOf"):
        yield f"  made of   what both {made_of[0]} and {made_of[1]} show"
    if state["waiting"]:
        yield from _waiting_lines(state)
    if error := state["lastError"]:
        yield f"  refused   {_place(error, state['file'])}{error['text']} ({error['at']})"
        yield "            clinic-gateway policy check says more"
    if cases := state.get("cases"):
        yield f"  cases     {cases['text']}"
        for problem in cases["problems"]:
            yield f"            {_place(problem, state['file'])}{problem['text']}"
        if cases["more"]:
            yield f"            and {cases['more']} more"
        yield "            clinic-gateway policy test says more"


def _waiting_lines(state: Mapping[str, Any]) -> Iterator[str]:
    yield f"  waits     {state['waiting']}"
    if state.get("waitsFor") == CASES:
        yield "            what it shows more waits until its cases pass"
        return
    if refusal := state.get("declined"):
        by, at = refusal["by"], plain(refusal["at"])
        yield f"  declined  by {by} ({at}): {refusal['reason']}"
    yield "            clinic-gateway policy diff says what it shows more"
    yield f"            clinic-gateway policy approve {state['waiting']} --reason TEXT"


def _place(error: Mapping[str, Any], policy: str) -> str:
    """Returns the line, and the file unless it is the policy's."""
    line = f"line {error['line']}" if error["line"] else ""
    file = "" if error["file"] == policy else Path(error["file"]).name
    place = " ".join(part for part in (file, line) if part)
    return f"{place}: " if place else ""
