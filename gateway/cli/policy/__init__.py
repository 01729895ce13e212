"""`clinic-gateway policy`: everything about the file that says who sees what."""

import click

from gateway.cli.policy.approve import approve
from gateway.cli.policy.cases import run_cases
from gateway.cli.policy.check import check
from gateway.cli.policy.diff import diff
from gateway.cli.policy.explain import explain
from gateway.cli.policy.preview import preview_record
from gateway.cli.policy.reload import reload
from gateway.cli.policy.schema import schema
from gateway.cli.policy.show import show
from gateway.cli.policy.status import status
from gateway.cli.words import Group


@click.group(cls=Group)
def policy() -> None:
    """Which field opens at which level."""


policy.add_command(check)
policy.add_command(diff)
policy.add_command(explain)
policy.add_command(show)
policy.add_command(status)
policy.add_command(reload)
policy.add_command(approve)
policy.add_command(run_cases)
policy.add_command(preview_record)
policy.add_command(schema)
