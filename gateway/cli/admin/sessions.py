"""`clinic-gateway admin sessions`: who is signed in to the panel; and the end of that."""

from datetime import UTC, datetime
from pathlib import Path

import click

from gateway.administrators.sessions import SessionStore
from gateway.cli.deeds import Deed
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import config_option, json_option
from gateway.cli.stores import with_deeds, with_store
from gateway.contract.fields import write_instant
from gateway.store import Store


@click.command()
@click.option("--end", is_flag=True, help="Sign everybody out.")
@config_option
@json_option
def sessions(end: bool, config: Path | None, as_json: bool) -> None:
    """Who is signed in."""
    if end:
        ended = with_deeds(config, _ended)
        click.echo(legible_json({"ended": ended}) if as_json else f"{ended} signed out")
        return
    found = with_store(config, lambda store: SessionStore(store).list(datetime.now(UTC)))
    rows = [
        {
            "name": each.administrator.name,
            "since": write_instant(each.created_at),
            "seenAt": write_instant(each.seen_at),
            "address": each.address,
        }
        for each in found
    ]
    if as_json:
        click.echo(legible_json(rows))
        return
    for row in rows:
        click.echo(legible(f"{row['name']} since {row['since']}, from {row['address']}"))
    if not rows:
        click.echo("nobody is signed in")


async def _ended(store: Store, deed: Deed) -> int:
    async with deed("sessions ended") as noted:
        noted["sessions"] = ended = await SessionStore(store).end_all()
    return ended
