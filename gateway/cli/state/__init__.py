"""`clinic-gateway state`: the gateway's own state, backed up, checked, and put back."""

from pathlib import Path

import click

from gateway.cli.options import config_option
from gateway.cli.words import Group

COMMANDS = {
    "backup": "gateway.cli.state.backup:backup",
    "check": "gateway.cli.state.check:check",
    "clock": "gateway.cli.state.clock:clock",
    "restore": "gateway.cli.state.restore:restore_state",
}


@click.group(cls=Group, loads=COMMANDS)
@config_option
def state(config: Path | None) -> None:
    """Back up the gateway's own state, check that it is one thing, and put it back."""
