"""The policy file that a command is about: the one that is named, or the configured one."""

import json
from os.path import realpath
from pathlib import Path
from typing import NoReturn

import click

from adapters.documents.problems import DocumentErrors
from gateway.cli.lines import legible
from gateway.cli.options import fail
from gateway.cli.policy.as_json import as_data
from gateway.policy.policy import Policy
from gateway.policy.reading.checked import Checked
from gateway.policy.reading.document import load_policy
from gateway.settings import load_settings

_OWN_NAME = "policies.yaml"
file_argument = click.argument(
    "file", required=False, type=click.Path(dir_okay=False, path_type=Path)
)


def loaded(file: Path | None, config: Path | None, *, as_json: bool, does: str = "shows") -> Policy:
    """The policy, or its problems and the end of the command."""
    path = chosen(file, config, as_json=as_json, does=does)
    try:
        return load_policy(path, lambda trouble: None)
    except DocumentErrors as error:
        _refuse(error, as_json=as_json)


def chosen(file: Path | None, config: Path | None, *, as_json: bool, does: str = "shows") -> Path:
    """The file that is named, or the policy in force; the end where the configuration is wrong.

    `does` says in a word what the command does with it.
    """
    try:
        return file or configured(config, does)
    except DocumentErrors as error:
        _refuse(error, as_json=as_json)


def configured(config: Path | None, does: str) -> Path:
    """The policy in force; said on stderr where a policy in this folder is another one."""
    used, here = load_settings(config).policy, Path.cwd() / _OWN_NAME
    if here.exists() and realpath(here) != realpath(used):
        other = f"{_OWN_NAME} in this folder is another file"
        click.echo(legible(f"note: this {does} {used}, which is in use; {other}"), err=True)
    return used


def _refuse(error: DocumentErrors, *, as_json: bool) -> NoReturn:
    if as_json:
        checked = Checked(file=error.problems[0].file, errors=error.problems)
        click.echo(json.dumps(as_data(checked), indent=2))
    fail(str(error))
