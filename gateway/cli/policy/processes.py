"""The running gateways, as they tell of their policy in the store: asked, waited for, printed."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from gateway.cli.lines import legible, legible_json
from gateway.cli.options import fail
from gateway.contract.fields import write_instant
from gateway.policy.running.versions import Event, Process, Versions

T = TypeVar("T")
# Seconds that the running gateways have to look, and between two questions whether they have.
LOOKED_IN = 10.0
ASK_AGAIN = 0.1
NOBODY = "no gateway is running on this store"


def with_versions(config: Path | None, use: Callable[[Versions], Awaitable[T]]) -> T:
    """What comes of it, in the store of the configured gateway."""
    from gateway.cli.policy.named import own_store
    from gateway.settings import check_own_place, load_settings

    async def used() -> T:
        check_own_place(config)
        async with own_store(load_settings(config)) as store:
            if store is None:
                fail(NOBODY)
            return await use(Versions(store))

    return asyncio.run(used())


@dataclass(frozen=True, slots=True)
class Asked:
    """The running gateways, and the revision up to which each was asked to look."""

    running: Sequence[Process]
    revision: int


async def looked(versions: Versions, approval: Event | None = None) -> Asked:
    """The running gateways, once each has looked anew or its time is up."""
    waited_for = {each.id for each in await versions.running(datetime.now(UTC))}
    revision = await versions.ask(approval)
    loop = asyncio.get_running_loop()
    until = loop.time() + LOOKED_IN
    while True:
        running = await versions.running(datetime.now(UTC))
        behind = [each for each in running if each.id in waited_for and each.revision < revision]
        if not behind or loop.time() >= until:
            return Asked(running, revision)
        await asyncio.sleep(ASK_AGAIN)


def tell(running: Sequence[Process], *, as_json: bool, revision: int = 0) -> None:
    """Print what they say; exit 1 where one does not run its file, or none is there.

    One that has not looked up to the revision is said not to have answered.
    """
    late = [each for each in running if each.revision < revision]
    if as_json:
        click.echo(legible_json({"processes": list(map(_told, running))}))
    else:
        for each in running:
            for line in _lines(each):
                click.echo(legible(line))
    if not running:
        fail(NOBODY)
    for each in late:
        late_one = f"process {each.pid} on {each.host} has not looked in time"
        click.echo(legible(late_one), err=True)
    if late or any(each.state.get("state") != "current" for each in running):
        raise click.exceptions.Exit(1)


def _told(process: Process) -> dict[str, Any]:
    return {
        "host": process.host,
        "pid": process.pid,
        "startedAt": write_instant(process.started_at),
        "seenAt": write_instant(process.seen_at),
        **process.state,
    }


def _lines(process: Process) -> list[str]:
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
        lines.append(f"  waits     {state['waiting']}")
        lines.append("            clinic-gateway policy diff says what it shows more")
        lines.append(
            f"            clinic-gateway policy approve {state['waiting']} --by NAME --reason TEXT"
        )
    if error := state["lastError"]:
        lines.append(f"  refused   {_place(error, state['file'])}{error['text']} ({error['at']})")
        lines.append(f"            clinic-gateway policy {_asks(error, state['file'])} says more")
    return lines


def _place(error: Mapping[str, Any], policy: str) -> str:
    """The line, and the file where it is not the policy's."""
    line = f"line {error['line']}" if error["line"] else ""
    file = "" if _is_its_own(error, policy) else Path(error["file"]).name
    found = " ".join(each for each in (file, line) if each)
    return f"{found}: " if found else ""


def _asks(error: Mapping[str, Any], policy: str) -> str:
    return "check" if _is_its_own(error, policy) else "test"


def _is_its_own(error: Mapping[str, Any], policy: str) -> bool:
    """Whether the policy's file is wrong, and not that of its cases."""
    return bool(error.get("file", policy) == policy)
