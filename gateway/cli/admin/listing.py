"""`clinic-gateway admin list`: who may use the panel, and as what."""

from pathlib import Path

import click

from gateway.administrators.administrator import AdministratorStore
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import config_option, json_option
from gateway.cli.stores import with_store
from gateway.contract.fields import write_instant


@click.command("list")
@config_option
@json_option
def list_administrators(config: Path | None, as_json: bool) -> None:
    """All administrators."""
    found = with_store(config, lambda store: AdministratorStore(store).list())
    rows = [
        {
            "name": each.name,
            "role": each.role,
            "hasToChoose": each.one_time,
            "createdAt": write_instant(each.created_at),
            "signedInAt": write_instant(each.signed_in_at) if each.signed_in_at else None,
        }
        for each in found
    ]
    if as_json:
        click.echo(legible_json(rows))
    elif not rows:
        click.echo("nobody yet; `clinic-gateway admin password NAME` adds somebody")
    for row in [] if as_json else rows:
        signed_in = row["signedInAt"] or "never"
        click.echo(legible(f"{row['name']}: {row['role']}, last signed in {signed_in}"))
