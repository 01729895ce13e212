"""The running gateways, as they tell of their policy in the store: asked, waited for, printed."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import click

from gateway.cli.deeds import with_store
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import fail
from gateway.contract.fields import write_instant
from gateway.inquiries.policies import Reload
from gateway.policy.running.standing import CASES
from gateway.policy.running.versions import Event, Process, Versions

T = TypeVar("T")
NOBODY = "no gateway is running on this store"


def now() -> datetime:
    """This machine's time."""
    return datetime.now(UTC)


def with_versions(config: Path | None, use: Callable[[Versions], Awaitable[T]]) -> T:
    """What comes of it; the end of the command where there is no store yet."""
    return with_store(config, lambda store: use(Versions(store)), where_none=NOBODY)


def tell(
    running: Sequence[Process],
    *,
    as_json: bool,
    revision: int = 0,
    declined: Mapping[str, Event] = MappingProxyType({}),
) -> None:
    """Print what they say; exit 1 where one does not run its file, or none is there.

    One that has not looked up to the revision is said not to have answered. `declined` are what
    somebody said no to of the policies that wait, by their hashes.
    """
    late = Reload(running, revision).late
    if as_json:
        told = [_told(each, declined.get(each.state["waiting"])) for each in running]
        click.echo(legible_json({"processes": told}))
    else:
        for each in running:
            for line in _lines(each, declined.get(each.state["waiting"])):
                click.echo(legible(line))
    if not running:
        fail(NOBODY)
    for each in late:
        late_one = f"process {each.pid} on {each.host} has not looked in time"
        click.echo(legible(late_one), err=True)
    if late or any(each.state.get("state") != "current" for each in running):
        raise click.exceptions.Exit(1)


def _told(process: Process, declined: Event | None) -> dict[str, Any]:
    no = {"declined": _of_no(declined)} if declined else {}
    return {
        "host": process.host,
        "pid": process.pid,
        "startedAt": write_instant(process.started_at),
        "seenAt": write_instant(process.seen_at),
        **process.state,
        **no,
    }


def _of_no(declined: Event) -> dict[str, Any]:
    return {"at": write_instant(declined.at), "by": declined.who, "reason": declined.reason}


def _lines(process: Process, declined: Event | None) -> list[str]:
    state = process.state
    role = f" ({state['role']})" if "role" in state else ""
    lines = [
        f"process {process.pid} on {process.host}{role}: {state['state']}",
        f"  runs      {state['hash']} since {state['loadedAt']}",
        f"  file      {state['fileHash'] or 'unreadable'} {state['file']}",
    ]
    if made_of := state.get("madeOf"):
        lines.append(f"  made of   what both {made_of[0]} and {made_of[1]} show")
    if state["waiting"]:
        lines += _waiting(state, declined)
    if error := state["lastError"]:
        lines.append(f"  refused   {_place(error, state['file'])}{error['text']} ({error['at']})")
        lines.append("            clinic-gateway policy check says more")
    if cases := state.get("cases"):
        lines += _cases(cases, state["file"])
    return lines


def _waiting(state: Mapping[str, Any], declined: Event | None) -> Iterator[str]:
    yield f"  waits     {state['waiting']}"
    if state.get("waitsFor") == CASES:
        yield "            what it shows more waits until its cases pass"
        return
    if declined:
        at = write_instant(declined.at)
        yield f"  declined  by {declined.who} ({at}): {declined.reason}"
    yield "            clinic-gateway policy diff says what it shows more"
    yield f"            clinic-gateway policy approve {state['waiting']} --reason TEXT"


def _cases(cases: Mapping[str, Any], policy: str) -> Iterator[str]:
    yield f"  cases     {cases['text']}"
    for each in cases["problems"]:
        yield f"            {_place(each, policy)}{each['text']}"
    if cases["more"]:
        yield f"            and {cases['more']} more"
    yield "            clinic-gateway policy test says more"


def _place(error: Mapping[str, Any], policy: str) -> str:
    """The line, and the file where it is not the policy's."""
    line = f"line {error['line']}" if error["line"] else ""
    file = "" if error["file"] == policy else Path(error["file"]).name
    found = " ".join(each for each in (file, line) if each)
    return f"{found}: " if found else ""
