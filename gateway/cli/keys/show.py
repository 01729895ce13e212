"""`clinic-gateway keys show`: one key."""

from pathlib import Path

import click

from gateway.cli.keys.opened import with_key
from gateway.cli.keys.told import shown, tell
from gateway.cli.options import config_option, json_option


@click.command()
@click.argument("wanted", metavar="KEY")
@config_option
@json_option
def show(config: Path | None, as_json: bool, wanted: str) -> None:
    """One key.

    KEY is its id, or its name where no other key has that.
    """
    key, at, hints = with_key(config, wanted, shown)
    tell(key, as_json, at, hints=hints)
