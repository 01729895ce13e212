"""`clinic-gateway keys update`: a key with other settings."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from gateway.cli.keys.opened import change_keys, id_of
from gateway.cli.keys.settings import changes_of, settings_of_a_key
from gateway.cli.keys.told import shown, tell
from gateway.cli.options import config_option, json_option
from gateway.inquiries.keys import changes_told


@click.command("update")
@click.argument("wanted", metavar="KEY")
@settings_of_a_key(new=False)
@click.option("--no-scopes", is_flag=True, help="Take all scopes away.")
@click.option("--no-bookings-per-day", is_flag=True, help="Let it book any number a day.")
@click.option("--no-networks", is_flag=True, help="Let it be used from anywhere.")
@config_option
@json_option
def update_key(config: Path | None, as_json: bool, wanted: str, **options: Any) -> None:
    """Change a key; what is not named stays.

    KEY is its id, or its name where no other key has that.
    """
    changes = changes_of(options)
    if not changes:
        raise click.UsageError("nothing to change: name at least one setting")
    key_id = id_of(config, wanted)

    async def updated(store: Any, deed: Any) -> tuple[Any, datetime, Any]:
        # all that is told afterwards: where it cannot be read, nothing is changed
        before, *_ = await shown(store, key_id)
        news = changes_told(before, replace(before, **changes))
        async with deed("key changed", key_id, **{"name": before.name, **news}):
            await store.update(key_id, **changes)
        return await shown(store, key_id)

    key, at, hints = change_keys(config, updated)
    tell(key, as_json, at, hints=hints)
