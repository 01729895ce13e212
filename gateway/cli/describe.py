"""`clinic-gateway openapi`: prints the description of the interface."""

import json
from pathlib import Path

import click

from adapters.documents.problems import DocumentErrors
from gateway.cli.options import config_option, fail, json_option
from gateway.cli.words import OneOf
from gateway.contract.access import LEVELS, AccessLevel, Permission
from gateway.contract.fields import Resource
from gateway.contract.openapi import View, document
from gateway.policy.reading.document import load_policy
from gateway.settings import load_settings, split_address


@click.command()
@click.option(
    "--level",
    type=OneOf("LEVEL", LEVELS, AccessLevel),
    help="Only the fields that this level sees; all of them where it is left out.",
)
@click.option(
    "--permission",
    "permissions",
    type=OneOf("PERMISSION", Permission, Permission),
    multiple=True,
    help="Only the operations that this permission grants (repeatable).",
)
@config_option
@json_option
def openapi(
    level: AccessLevel | None,
    permissions: tuple[Permission, ...],
    config: Path | None,
    as_json: bool,
) -> None:
    """Print the OpenAPI 3.1 document, as JSON.

    It is the whole interface, or what a key with a level and permissions sees of it. A running
    gateway also leaves out the filters that its practice system can't serve.
    """
    try:
        settings = load_settings(config)
        policy = load_policy(settings.policy, lambda trouble: None)
    except DocumentErrors as error:
        fail(str(error))

    def visible(resource: Resource) -> View | None:
        return policy.view(resource, level) if level else None

    # imported only now: the other commands of this file need no practice system
    from gateway.backend import booking_window

    described = document(
        public_url=settings.public_url_at(split_address(settings.listen)[1]),
        visible=visible,
        permissions=frozenset(permissions) or None,
        window=booking_window(settings),
    )
    click.echo(json.dumps(described, indent=2))
