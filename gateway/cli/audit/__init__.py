"""`clinic-gateway audit`: who was shown what, and whether the audit is as it was written."""

from pathlib import Path

import click

from gateway.cli.options import CommandGroup, config_option

COMMANDS = {
    "deeds": "gateway.cli.audit.deeds:deeds",
    "index": "gateway.cli.audit.index:index",
    "key": "gateway.cli.audit.key:key",
    "rotate-key": "gateway.cli.audit.rotate:rotate_key",
    "verify": "gateway.cli.audit.verify:verify",
    "who-read": "gateway.cli.audit.who_read:who_read",
}


@click.group(cls=CommandGroup, loads=COMMANDS)
@config_option
def audit(config: Path | None) -> None:
    """Ask who was shown what, and verify that nobody has changed the answer."""
