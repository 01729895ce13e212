"""`clinic-gateway policy schema`: what editors know a policy file by."""

import json
from pathlib import Path

import click

from gateway.cli.options import config_option, json_option
from gateway.policy.reading.schema import policy_schema


@click.command()
@config_option
@json_option
def schema(config: Path | None, as_json: bool) -> None:
    """Print the JSON Schema of a policy file, as JSON, for editors that complete and check it.

    The shipped policies.yaml names it in its head; a policy of your own does so with a copy of
    policies.schema.json beside it.
    """
    click.echo(json.dumps(policy_schema(), indent=2))
