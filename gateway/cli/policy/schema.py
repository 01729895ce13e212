"""`clinic-gateway policy schema`: what editors know a policy file by."""

import json

import click

from gateway.policy.schema import policy_schema


@click.command()
def schema() -> None:
    """Print the JSON Schema of a policy file, for editors that complete and check it.

    The shipped policies.yaml names it in its head; a policy of your own does so with a copy of
    policies.schema.json beside it.
    """
    click.echo(json.dumps(policy_schema(), indent=2))
