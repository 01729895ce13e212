"""`clinic-gateway policy`: checks, shows and compares policies, and tells which ones run."""

import click

from gateway.cli.command import CommandGroup

COMMANDS = {
    "approve": "gateway.cli.policy.status:approve",
    "check": "gateway.cli.policy.check:check",
    "decline": "gateway.cli.policy.status:decline",
    "diff": "gateway.cli.policy.check:diff",
    "explain": "gateway.cli.policy.show:explain",
    "preview": "gateway.cli.policy.show:preview_record",
    "reload": "gateway.cli.policy.status:reload",
    "schema": "gateway.cli.policy.check:schema",
    "show": "gateway.cli.policy.show:show",
    "status": "gateway.cli.policy.status:status",
    "test": "gateway.cli.policy.check:run_cases",
}


@click.group(cls=CommandGroup, loads=COMMANDS)
def policy() -> None:
    """Which field opens at which level."""
