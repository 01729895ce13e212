"""`clinic-gateway audit`: who was shown what, and whether the audit is as it was written."""

from pathlib import Path

import click

from gateway.cli.audit.deeds import key
from gateway.cli.audit.rotate import rotate_key
from gateway.cli.audit.verify import verify
from gateway.cli.audit.who_read import who_read
from gateway.cli.options import config_option
from gateway.cli.words import Group


@click.group(cls=Group)
@config_option
def audit(config: Path | None) -> None:
    """Ask who was shown what, and verify that nobody has changed the answer."""


for _command in (verify, who_read, key, rotate_key):
    audit.add_command(_command)
