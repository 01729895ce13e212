"""`clinic-gateway audit`: who was shown what, and whether the audit is as it was written."""

from pathlib import Path

import click

from gateway.cli.options import CommandGroup, config_option

COMMANDS = {
    "deeds": "gateway.cli.audit.questions:deeds",
    "index": "gateway.cli.audit.upkeep:index",
    "key": "gateway.cli.audit.questions:key",
    "rotate-key": "gateway.cli.audit.upkeep:rotate_key",
    "verify": "gateway.cli.audit.upkeep:verify",
    "who-read": "gateway.cli.audit.questions:who_read",
}


@click.group(cls=CommandGroup, loads=COMMANDS)
@config_option
def audit(config: Path | None) -> None:
    """Ask who was shown what, and verify that nobody has changed the answer."""
