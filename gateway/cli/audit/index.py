"""`clinic-gateway audit index`: the index knows every line, or says what it lacks."""

import asyncio
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import click

from gateway.audit.chains import Chains, audit_folder, place_of
from gateway.audit.index import forget_all
from gateway.audit.questions import IndexState, losses
from gateway.cli.audit.opened import (
    ANEW,
    indexed,
    place_of_audit,
    say_state,
    state_told,
    store_of,
)
from gateway.cli.deeds import recording
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import config_option, fail, json_option
from gateway.settings import Settings


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
        told = state_told(state) | {"lines": state.lines, "lost": [str(each) for each in lost]}
        told["complete"] = told["complete"] and not lost
        click.echo(legible_json(told))
    else:
        click.echo(f"{state.lines} lines taken in" + ("" if lost else "; every day adds up"))
        say_state(state)
    if lost:
        days = f"{lost[0]}" + (f" and {len(lost) - 1} days more" if lost[1:] else "")
        fail(f"the index has not all that it took in of {days}: {ANEW}")
    if any(each.here for each in state.gaps):
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
        others = {each.host for each in await chains.known() if shared and each.place != place}
        if others and not all_machines:
            hosts = ", ".join(sorted(others))
            fail(
                legible(
                    f"other machines have lines in the index too ({hosts}): with --all-machines it"
                    " is made anew for all, and each takes in its own again within minutes; what a"
                    " machine that is gone has written can then be found no more"
                )
            )
        async with (
            recording(settings, store) as deed,
            deed("audit index made anew", allMachines=all_machines),
        ):
            await forget_all(store)
