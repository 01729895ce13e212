"""`clinic-gateway admin remove`: somebody may use the panel no more."""

from pathlib import Path

import click

from gateway.administrators.administrator import AdministratorStore, LastAdmin, NoSuchAdministrator
from gateway.cli.deeds import Deed
from gateway.cli.lines import Line, legible, legible_json
from gateway.cli.options import config_option, fail, json_option
from gateway.cli.stores import with_deeds
from gateway.store import Store


@click.command()
@click.argument("name", type=Line())
@config_option
@json_option
def remove(name: str, config: Path | None, as_json: bool) -> None:
    """Take NAME away: whoever is signed in with it is signed out."""

    async def removed(store: Store, deed: Deed) -> bool:
        administrators = AdministratorStore(store)
        kept = await administrators.find(name)
        if kept is not None:
            whose = kept.administrator
            async with deed("administrator removed", whose.id, name=whose.name):
                await administrators.remove(whose.id)
        return kept is not None

    try:
        is_removed = with_deeds(config, removed)
    except NoSuchAdministrator:  # somebody else has just done it
        is_removed = False
    except LastAdmin:
        fail(
            "nobody would be left with the role admin; add another with `clinic-gateway admin"
            " password` first"
        )
    if not is_removed:
        fail(f"nobody has the name {name}; `clinic-gateway admin list` shows all")
    click.echo(legible_json({"removed": name}) if as_json else legible(f"{name} is removed"))
