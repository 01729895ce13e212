"""The policy file that a command is about: the one that is named, or the configured one."""

import json
from pathlib import Path
from typing import NoReturn

import click

from adapters.problems import DocumentErrors
from gateway.cli.options import fail
from gateway.policy.document import load_policy
from gateway.policy.policy import Policy
from gateway.settings import load_settings

_OWN_NAME = "policies.yaml"
file_argument = click.argument(
    "file", required=False, type=click.Path(dir_okay=False, path_type=Path)
)


def loaded(file: Path | None, config: Path | None, *, as_json: bool) -> Policy:
    """The policy, or its problems and the end of the command."""
    try:
        return load_policy(file or configured(config), lambda trouble: None)
    except DocumentErrors as error:
        _refuse(error, as_json=as_json)


def configured(config: Path | None) -> Path:
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
