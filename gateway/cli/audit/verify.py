"""`clinic-gateway audit verify`: whether every line is as it was written, and none is missing."""

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from gateway.audit.chains import Known
from gateway.audit.verify import RUNS, Verdict
from gateway.cli.audit.opened import place_of_audit, reading, store_of
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import config_option, json_option
from gateway.inquiries.verification import AuditReport, verify_audit
from gateway.settings import Settings

IN_WORDS = {RUNS: "running"}


@click.command()
@config_option
@json_option
def verify(config: Path | None, as_json: bool) -> None:
    """Verify every chain of this machine's audit against the heads in the store.

    Exits with 1 where one is not as it was written, and names the first line that is not; also, as
    every command does, where a part of the state is gone. Exits with 2 where the folder cannot be
    read.
    """
    settings = place_of_audit(config)
    found = asyncio.run(_verify(settings))
    if as_json:
        chains = [_told(each) for each in found.verdicts]
        elsewhere = sorted({each.place for each in found.others})
        told = {"sound": found.is_sound, "chains": chains, "elsewhere": elsewhere}
        click.echo(legible_json(told))
    else:
        _say(found.verdicts, found.others)
    if not found.is_sound:
        raise click.exceptions.Exit(1)


async def _verify(settings: Settings) -> AuditReport:
    async with store_of(settings) as store:
        with reading(settings):
            return await verify_audit(settings, store)


def _told(found: Verdict) -> dict[str, Any]:
    return {
        "chain": found.chain or None,
        "state": found.state,
        "files": found.files,
        "lines": found.lines,
        "broken": found.broken or None,
        "notes": found.notes,
    }


def _say(found: Sequence[Verdict], others: Sequence[Known]) -> None:
    for each in found:
        for note in each.notes:
            click.echo(legible(f"note: {note}"))
    for each in found:
        if each.broken:
            click.echo(legible(f"BROKEN: {each.broken}"), err=True)
    broken = sum(bool(each.broken) for each in found)
    lines, files = (sum(getattr(each, name) for each in found) for name in ("lines", "files"))
    states = ", ".join(
        f"{count} {IN_WORDS.get(state, state)}"
        for state in dict.fromkeys(each.state for each in found)
        if (count := sum(each.state == state for each in found))
    )
    chains = f"{_some(len(found), 'chain')} ({states})" if found else "no chains"
    click.echo(f"{chains}, {_some(files, 'file')}, {_some(lines, 'line')}: {broken} broken")
    for place in sorted({each.place for each in others}):
        [host, *_] = [each.host for each in others if each.place == place]
        where = f"are on another machine ({host}): run `audit verify` there"
        if host == socket.gethostname():
            where = (
                "belong to another audit folder on this machine: run `audit verify` with that"
                " gateway's configuration. If the folder is gone, restore it"
            )
        click.echo(legible(f"note: the chains of {place} {where}"))


def _some(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
