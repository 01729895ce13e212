"""`clinic-gateway policy status`, `reload`, `approve` and `decline`: the gateways that run."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from os.path import realpath
from pathlib import Path
from socket import gethostname
from types import MappingProxyType
from typing import Any

import click

from gateway.cli.lines import Line, legible, legible_json
from gateway.cli.options import CommandT, config_option, fail, json_option
from gateway.cli.stores import with_store
from gateway.contract.fields import write_instant
from gateway.inquiries.policies import Reload, declined, looked, waiting
from gateway.policy.running.keeper import CASES, CURRENT
from gateway.policy.running.versions import APPROVED, DECLINED, Event, Process, Versions
from gateway.settings import load_settings
from gateway.store import Store

now = partial(datetime.now, UTC)
NOBODY = "no gateway is running on this store"
_is_whole = re.compile("[0-9a-f]{64}").fullmatch


def _digits(context: click.Context, option: click.Parameter, value: str) -> str:
    """A hash, whole: who writes policies can make two files whose hashes begin alike."""
    if _is_whole(value.lower()) is None:
        text = "write all 64 digits of the waiting policy's hash: others may begin like it"
        raise click.BadParameter(text)
    return value.lower()


def _remark(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise click.BadParameter("it must not be blank")
    return value and value.strip()


def decision_options(why: str) -> Callable[[CommandT], CommandT]:
    """`HASH`, `--by` and `--reason`; `why` is the help of the last."""
    who = (
        "Who asked for it: a remark beside the reason. The audit and the history name the"
        " system account that runs this."
    )

    def with_options(command: CommandT) -> CommandT:
        line: Any = {"type": Line(), "callback": _remark}
        command = click.option("--reason", required=True, help=why, **line)(command)
        command = click.option("--by", metavar="NAME", help=who, **line)(command)
        return click.argument("digest", metavar="HASH", callback=_digits)(command)

    return with_options


@click.command()
@config_option
@json_option
def status(config: Path | None, as_json: bool) -> None:
    """Print which policy each running gateway has, and what is the matter with its file.

    Exit 0 where each runs its file; 1 where one refused it or holds it back, or none is running.
    Cases that fail are named either way.
    """

    async def running_and_declined(store: Store) -> tuple[Reload, Mapping[str, Event]]:
        versions = Versions(store)
        running = await versions.running(now())
        return Reload(running, 0), await declined(versions, waiting(running))

    asked, refusals = with_store(config, running_and_declined, where_none=NOBODY)
    _warn(asked.running, load_settings(config).policy)
    _print(asked, refusals, as_json=as_json)


@click.command()
@config_option
@json_option
def reload(config: Path | None, as_json: bool) -> None:
    """Have the running gateways look at their policy file, and say what came of it.

    They see a changed file by themselves; this waits until they have, and has one that was refused,
    or whose cases fail, tried again. Exit 1 where one refused it or holds it back, or none is
    running.
    """
    asked = with_store(config, lambda store: looked(Versions(store), now), where_none=NOBODY)
    _print(asked, as_json=as_json)


@click.command()
@decision_options("Why it may show more.")
@config_option
@json_option
def approve(digest: str, by: str | None, reason: str, config: Path | None, as_json: bool) -> None:
    """Let the policy run that a gateway holds back, as it shows more than the one that runs.

    HASH is the waiting policy's, whole, as `policy status` prints it; its cases must pass first.
    The approval is kept with the system account that gave it, its reason and its time, and counts
    once: when another policy has run meanwhile, this one waits again.
    """
    asked, _ = _decided(config, APPROVED, digest, by, reason)
    _print(asked, as_json=as_json)


@click.command()
@decision_options("Why it may not show more.")
@config_option
@json_option
def decline(digest: str, by: str | None, reason: str, config: Path | None, as_json: bool) -> None:
    """Decline the policy that a gateway holds back.

    The one that runs goes on. HASH is the waiting policy's, whole, as `policy status` prints it.
    `policy status` and the panel show who declined it and why, until the file changes or somebody
    approves it after all.
    """
    _, who = _decided(config, DECLINED, digest, by, reason)
    if as_json:
        click.echo(legible_json({"declined": digest, "by": who, "reason": reason}))
    else:
        click.echo(legible(f"{digest} is declined by {who}; the policy that runs goes on"))


def _decided(
    config: Path | None, decision: str, digest: str, by: str | None, reason: str
) -> tuple[Reload, str]:
    """The running gateways once they have looked, and who decided; APPROVED or DECLINED.

    The end of the command where that policy does not wait.
    """
    from gateway.cli.deeds import actor, recording

    why = reason if by is None else f"{reason} (asked by {by})"
    remark = {} if by is None else {"by": by}

    async def decide(store: Store) -> Reload:
        versions = Versions(store)
        running = await versions.running(now())
        decidable = waiting(running)
        if digest not in decidable:
            held = [process.state.get("waiting") for process in running]
            fail(_why_not(digest, decidable, held))
        async with (
            recording(load_settings(config), store) as deed,
            deed(f"policy {decision}", digest, reason=reason, **remark),
        ):
            event = Event(at=now(), event=decision, hash=digest, who=actor(), reason=why)
            return await looked(versions, now, event)

    return with_store(config, decide, where_none=NOBODY), actor()


def _why_not(digest: str, decidable: Sequence[str], held: Sequence[str | None]) -> str:
    """`decidable` are the policies that wait for a decision, `held` those that wait at all."""
    if digest in held:
        return (
            f"the policy {digest} waits for its cases to pass, and can be decided on then:"
            " clinic-gateway policy test names those that fail"
        )
    if not decidable:
        return "no policy waits for an approval: there is nothing to decide"
    return f"the policy {digest} does not wait: {', '.join(decidable)} does"


def _warn(running: Sequence[Process], named: Path) -> None:
    """Of gateways on this machine that began with another file than the configuration names."""
    for process in running:
        follows = Path(process.state["file"])
        if process.host == gethostname() and realpath(follows) != realpath(named):
            text = f"process {process.pid} follows {follows}, and the configuration names {named}"
            click.echo(f"{text} by now: start the gateway anew", err=True)


def _print(
    asked: Reload, refusals: Mapping[str, Event] = MappingProxyType({}), *, as_json: bool
) -> None:
    """Print what the gateways say; exit 1 where one does not run its file, or none is there.

    One that has not looked is said not to have answered. `refusals` are what somebody declined of
    the policies that wait, by their hashes.
    """
    found = [(process, refusals.get(process.state["waiting"])) for process in asked.running]
    if as_json:
        click.echo(legible_json({"processes": [_members(*each) for each in found]}))
    else:
        for each in found:
            for line in _lines(*each):
                click.echo(legible(line))
    if not found:
        fail(NOBODY)
    for process in asked.late:
        late = f"process {process.pid} on {process.host} has not looked in time"
        click.echo(legible(late), err=True)
    if asked.late or any(process.state.get("state") != CURRENT for process in asked.running):
        raise click.exceptions.Exit(1)


def _members(process: Process, refusal: Event | None) -> dict[str, Any]:
    members = {
        "host": process.host,
        "pid": process.pid,
        "startedAt": write_instant(process.started_at),
        "seenAt": write_instant(process.seen_at),
        **process.state,
    }
    if refusal:
        at = write_instant(refusal.at)
        members["declined"] = {"at": at, "by": refusal.who, "reason": refusal.reason}
    return members


def _lines(process: Process, refusal: Event | None) -> Iterator[str]:
    state = process.state
    role = f" ({state['role']})" if "role" in state else ""
    yield f"process {process.pid} on {process.host}{role}: {state['state']}"
    yield f"  runs      {state['hash']} since {state['loadedAt']}"
    yield f"  file      {state['fileHash'] or 'unreadable'} {state['file']}"
    if made_of := state.get("madeOf"):
        yield f"  made of   what both {made_of[0]} and {made_of[1]} show"
    if state["waiting"]:
        yield from _waiting_lines(state, refusal)
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


def _waiting_lines(state: Mapping[str, Any], refusal: Event | None) -> Iterator[str]:
    yield f"  waits     {state['waiting']}"
    if state.get("waitsFor") == CASES:
        yield "            what it shows more waits until its cases pass"
        return
    if refusal:
        at = write_instant(refusal.at)
        yield f"  declined  by {refusal.who} ({at}): {refusal.reason}"
    yield "            clinic-gateway policy diff says what it shows more"
    yield f"            clinic-gateway policy approve {state['waiting']} --reason TEXT"


def _place(error: Mapping[str, Any], policy: str) -> str:
    """The line, and the file where it is not the policy's."""
    line = f"line {error['line']}" if error["line"] else ""
    file = "" if error["file"] == policy else Path(error["file"]).name
    place = " ".join(part for part in (file, line) if part)
    return f"{place}: " if place else ""
