"""`clinic-gateway policy check`: whether a policy file is sound, or all that is wrong with it."""

import json
from pathlib import Path

import click

from gateway.cli.options import config_option, json_option
from gateway.cli.policy.file import file_argument, loaded


@click.command()
@file_argument
@config_option
@json_option
def check(file: Path | None, config: Path | None, as_json: bool) -> None:
    """Say whether a policy file can be used, or all that is wrong with it.

    FILE is the configured policy where it is left out.
    """
    policy = loaded(file, config, as_json=as_json)
    fields = sum(len(each.fields) for each in policy.rules.values())
    if as_json:
        found = {"ok": True, "file": policy.file, "hash": policy.hash, "problems": []}
        click.echo(json.dumps(found, indent=2))
    else:
        click.echo(
            f"{policy.file}: in order; {len(policy.rules)} resources, {fields} fields,"
            f" hash {policy.short_hash}"
        )
