"""`clinic-gateway policy`: everything about the file that says who sees what."""

import click

from gateway.cli.policy.check import check
from gateway.cli.policy.schema import schema
from gateway.cli.policy.show import show
from gateway.cli.words import Group


@click.group(cls=Group)
def policy() -> None:
    """Which field opens at which level."""


policy.add_command(check)
policy.add_command(show)
policy.add_command(schema)
