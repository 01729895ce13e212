"""`clinic-gateway admin`: who may use the panel."""

import click

from gateway.cli.words import Group

COMMANDS = {
    "list": "gateway.cli.admin.listing:list_administrators",
    "password": "gateway.cli.admin.password:password",  # nosec B105 - a command's place
    "remove": "gateway.cli.admin.remove:remove",
    "sessions": "gateway.cli.admin.sessions:sessions",
}


@click.group(cls=Group, loads=COMMANDS)
def admin() -> None:
    """Who may use the panel in the browser."""
