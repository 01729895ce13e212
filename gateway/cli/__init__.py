"""The commands of `clinic-gateway`: one file for each group, imported when it is used."""

import click

import gateway
from gateway.cli.command import CommandGroup

COMMANDS = {
    "demo": "gateway.cli.demo:demo",
    "init": "gateway.cli.init:init",
    "serve": "gateway.cli.serve:serve",
    "keys": "gateway.cli.keys:keys",
    "policy": "gateway.cli.policy:policy",
    "audit": "gateway.cli.audit:audit",
    "admin": "gateway.cli.admin:admin",
    "state": "gateway.cli.state:state",
    "vets": "gateway.cli.backend:vets",
    "sample": "gateway.cli.backend:sample",
    "proxy": "gateway.cli.description:proxy",
    "backend": "gateway.cli.backend:backend",
    "openapi": "gateway.cli.description:openapi",
    "settings": "gateway.cli.description:print_settings",
}


@click.group(
    cls=CommandGroup,
    loads=COMMANDS,
    name="clinic-gateway",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(gateway.__version__, prog_name="clinic-gateway")
def main() -> None:
    """A gateway for partners in front of a veterinary practice system."""
