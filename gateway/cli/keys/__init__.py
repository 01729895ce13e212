"""`clinic-gateway keys`: make, show, change, rotate and revoke the partners' keys."""

from pathlib import Path

import click

from gateway.cli.options import config_option
from gateway.cli.words import Group

COMMANDS = {
    "create": "gateway.cli.keys.create:create",
    "list": "gateway.cli.keys.listing:list_keys",
    "revoke": "gateway.cli.keys.revoke:revoke",
    "rotate": "gateway.cli.keys.rotate:rotate",
    "show": "gateway.cli.keys.show:show",
    "update": "gateway.cli.keys.update:update_key",
    "verify": "gateway.cli.keys.verify:verify",
}


@click.group(cls=Group, loads=COMMANDS)
@config_option
def keys(config: Path | None) -> None:
    """Make, show, change, rotate and revoke the partners' keys."""
