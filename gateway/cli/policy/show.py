"""`clinic-gateway policy show`: which level sees which field."""

import json
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gateway.cli.options import config_option, json_option
from gateway.cli.policy.file import file_argument, loaded
from gateway.contract.access import LEVELS
from gateway.policy.policy import Policy


@click.command()
@file_argument
@config_option
@json_option
def show(file: Path | None, config: Path | None, as_json: bool) -> None:
    """Print which level sees which field.

    FILE is the configured policy where it is left out.
    """
    policy = loaded(file, config, as_json=as_json)
    if as_json:
        click.echo(json.dumps(_matrix(policy), indent=2))
    else:
        _print_tables(policy)


def _matrix(policy: Policy) -> dict[str, Any]:
    """For each field of each resource, whether each level sees it."""
    resources = {
        name: {
            path: {level.value: path in policy.visible(name, level) for level in LEVELS}
            for path in rules.fields
        }
        for name, rules in policy.rules.items()
    }
    return {"file": policy.file, "hash": policy.hash, "resources": resources}


def _print_tables(policy: Policy) -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("field", no_wrap=True)
    for level in LEVELS:
        table.add_column(level.value, justify="center")
    for name, members in _matrix(policy)["resources"].items():
        table.add_section()
        table.add_row(f"[bold]{escape(name)}[/bold]")
        for path, seen in members.items():
            table.add_row(f"  {escape(path)}", *("yes" if each else "-" for each in seen.values()))
    console = Console(highlight=False)
    console.print(f"{escape(policy.file)}, hash {policy.short_hash}", soft_wrap=True)
    console.print(table)
