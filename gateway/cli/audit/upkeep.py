"""What keeps the audit sound: its lines verified, its index complete, another key that seals."""

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import click

from gateway.audit.chains import PLACE, Chains, Known, audit_folder, place_of
from gateway.audit.entries import AuditSecret, key_file, rotate
from gateway.audit.index import forget_all
from gateway.audit.questions import IndexState, losses
from gateway.audit.verification import RUNS, ChainVerdict, counted
from gateway.cli.audit.access import (
    ANEW,
    indexed,
    place_of_audit,
    reading,
    say_state,
    state_told,
    store_of,
)
from gateway.cli.deeds import recording
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import config_option, fail, json_option
from gateway.identity import identity_of
from gateway.inquiries.verification import AuditReport, verify_audit
from gateway.settings import Settings
from gateway.state import opened_if_begun


@click.command()
@config_option
@json_option
def verify(config: Path | None, as_json: bool) -> None:
    """Verify every chain of this machine's audit against the heads in the store.

    Exits with 1 where one is not as it was written, and names the first line that is not; also, as
    every command does, where a part of the state is gone. Exits with 2 where the folder cannot be
    read.
    """
    found = asyncio.run(_verify(place_of_audit(config)))
    if as_json:
        chains = [_told(verdict) for verdict in found.verdicts]
        elsewhere = sorted({chain.place for chain in found.others})
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


def _told(verdict: ChainVerdict) -> dict[str, Any]:
    empty = {"chain": verdict.chain or None, "broken": verdict.broken or None}
    return asdict(verdict) | empty


def _say(found: Sequence[ChainVerdict], others: Sequence[Known]) -> None:
    for note in (note for verdict in found for note in verdict.notes):
        click.echo(legible(f"note: {note}"))
    broken = [verdict.broken for verdict in found if verdict.broken]
    for text in broken:
        click.echo(legible(f"BROKEN: {text}"), err=True)
    states = ["running" if verdict.state == RUNS else verdict.state for verdict in found]
    told = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    chains = f"{counted(len(found), 'chain')} ({told})" if found else "no chains"
    files = counted(sum(verdict.files for verdict in found), "file")
    lines = counted(sum(verdict.lines for verdict in found), "line")
    click.echo(f"{chains}, {files}, {lines}: {len(broken)} broken")
    for place, host in sorted({chain.place: chain.host for chain in reversed(others)}.items()):
        where = f"are on another machine ({host}): run `audit verify` there"
        if host == socket.gethostname():
            where = (
                "belong to another audit folder on this machine: run `audit verify` with that"
                " gateway's configuration. If the folder is gone, restore it"
            )
        click.echo(legible(f"note: the chains of {place} {where}"))


@click.command()
@click.option("--anew", is_flag=True, help="Forget the whole index first.")
@click.option(
    "--all-machines",
    is_flag=True,
    help="With --anew: forget what other machines took in, too; each takes in its lines again.",
)
@config_option
@json_option
def index(anew: bool, all_machines: bool, config: Path | None, as_json: bool) -> None:
    """Take this machine's lines into the index, and check that it has all that it took in.

    Exits with 1 where it has not, or where lines are missing. A gateway may run meanwhile.
    """
    if all_machines and not anew:
        raise click.UsageError("--all-machines goes with --anew")
    settings = place_of_audit(config)
    state, lost = asyncio.run(_index(settings, anew=anew, all_machines=all_machines))
    if as_json:
        told = state_told(state) | {"lines": state.lines, "lost": list(map(str, lost))}
        told["complete"] = told["complete"] and not lost
        click.echo(legible_json(told))
    else:
        click.echo(f"{state.lines} lines taken in" + ("" if lost else "; every day adds up"))
        say_state(state)
    if lost:
        days = f"{lost[0]}" + (f" and {len(lost) - 1} days more" if lost[1:] else "")
        fail(f"the index has not all that it took in of {days}: {ANEW}")
    if any(gap.here for gap in state.gaps):
        raise click.exceptions.Exit(1)


async def _index(
    settings: Settings, *, anew: bool, all_machines: bool
) -> tuple[IndexState, Sequence[date]]:
    if anew:
        await _forget(settings, all_machines=all_machines)
    async with indexed(settings) as (store, state):
        return state, await losses(store)


async def _forget(settings: Settings, *, all_machines: bool) -> None:
    """Other machines' lines are not here to be taken in again: that must be wanted."""
    async with store_of(settings) as store:
        chains = Chains(store)
        place, shared = place_of(audit_folder(settings)), chains.shared
        others = {chain.host for chain in await chains.known() if shared and chain.place != place}
        if others and not all_machines:
            hosts = ", ".join(sorted(others))
            fail(
                f"other machines have lines in the index too ({hosts}): with --all-machines it is"
                " made anew for all, and each takes in its own again within minutes; what a"
                " machine that is gone has written can then be found no more"
            )
        async with (
            recording(settings, store) as deed,
            deed("audit index made anew", allMachines=all_machines),
        ):
            await forget_all(store)


@click.command("rotate-key")
@config_option
@json_option
def rotate_key(config: Path | None, as_json: bool) -> None:
    """Make a new HMAC key for the audit; the former ones stay, so that older lines verify.

    Running processes take it with the next line that they write.
    """
    settings = place_of_audit(config)
    path, name = key_file(settings), audit_folder(settings) / PLACE
    if not path.exists() and not name.exists():
        fail(f"there is no audit in {name.parent} yet: `clinic-gateway serve` makes it and its key")
    new = asyncio.run(_rotated(settings, path, identity_of(name), is_lost=not path.exists()))
    if as_json:
        click.echo(legible_json({"key": new.id, "file": str(path)}))
    else:
        click.echo(legible(f"the key {new.id} seals from now on; keep a copy of {path}"))


async def _rotated(
    settings: Settings, path: Path, state: str | None, *, is_lost: bool
) -> AuditSecret:
    """A new key. Where the one before is gone, only the new one can seal the deed."""
    lost = rotate(path, state) if is_lost else None
    async with opened_if_begun(settings) as store:
        if store is None:  # there is no audit yet
            return lost or rotate(path)
        async with recording(settings, store) as deed, deed("audit key rotated") as noted:
            new = lost or rotate(path)
            noted |= {"key": new.id, "lost": is_lost}
    return new
