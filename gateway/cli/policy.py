"""`clinic-gateway policy`: says whether a policy file is sound, and what each level sees."""

import json
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adapters.problems import DocumentErrors
from gateway.cli.options import config_option, fail, json_option
from gateway.cli.words import Group
from gateway.contract.access import LEVELS
from gateway.policy.document import load_policy
from gateway.policy.policy import Policy
from gateway.settings import load_settings

_OWN_NAME = "policies.yaml"
_FILE = click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))


@click.group(cls=Group)
def policy() -> None:
    """Which field opens at which level."""


@policy.command()
@_FILE
@config_option
@json_option
def check(file: Path | None, config: Path | None, as_json: bool) -> None:
    """Say whether a policy file can be used, or all that is wrong with it.

    FILE is the configured policy where it is left out.
    """
    loaded = _load(file, config, as_json=as_json)
    fields = sum(len(each.fields) for each in loaded.rules.values())
    if as_json:
        found = {"ok": True, "file": loaded.file, "hash": loaded.hash, "problems": []}
        click.echo(json.dumps(found, indent=2))
    else:
        click.echo(
            f"{loaded.file}: in order; {len(loaded.rules)} resources, {fields} fields,"
            f" hash {loaded.short_hash}"
        )


@policy.command()
@_FILE
@config_option
@json_option
def show(file: Path | None, config: Path | None, as_json: bool) -> None:
    """Print which level sees which field.

    FILE is the configured policy where it is left out.
    """
    loaded = _load(file, config, as_json=as_json)
    if as_json:
        click.echo(json.dumps(_matrix(loaded), indent=2))
    else:
        _print_tables(loaded)


def _load(file: Path | None, config: Path | None, *, as_json: bool) -> Policy:
    try:
        return load_policy(file or _configured(config), lambda trouble: None)
    except DocumentErrors as error:
        _refuse(error, as_json=as_json)


def _configured(config: Path | None) -> Path:
    """The policy in force; said on stderr where a policy in this folder is another one."""
    used, here = load_settings(config).policy, Path.cwd() / _OWN_NAME
    if here.exists() and here.resolve() != used.resolve():
        click.echo(f"{here} is not the policy in use, which is {used}", err=True)
    return used


def _refuse(error: DocumentErrors, *, as_json: bool) -> NoReturn:
    if as_json:
        problems = [
            {"file": each.file, "line": each.line, "column": each.column, "text": each.text}
            for each in error.problems
        ]
        click.echo(json.dumps({"ok": False, "problems": problems}, indent=2))
    fail(str(error))


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
