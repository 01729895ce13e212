"""What a command is about: a policy file, a key of the store, a record of the practice system."""

from os.path import realpath
from pathlib import Path
from typing import NoReturn

import click

from adapters.base import NotFound, Query, Record, Report
from adapters.documents.problems import DocumentErrors
from gateway.cli.keys import one_named
from gateway.cli.output import fail, say, say_json
from gateway.cli.policy.reports import as_data
from gateway.cli.run import Run, now
from gateway.contract.fields import Resource
from gateway.keys.key import Key
from gateway.keys.store import KeyStore
from gateway.policy.policy import Policy
from gateway.policy.reading.checks import Checked
from gateway.policy.reading.document import load_policy
from gateway.store import Store

_OWN_NAME = "policies.yaml"
file_argument = click.argument(
    "file", required=False, type=click.Path(dir_okay=False, path_type=Path)
)


def loaded(run: Run, file: Path | None) -> Policy:
    """The policy, or its problems and the end of the command."""
    path = chosen(run, file)
    try:
        return load_policy(path, lambda trouble: None)
    except DocumentErrors as error:
        _refuse(run, error)


def chosen(run: Run, file: Path | None) -> Path:
    """The file that is named, or the policy in force; the end where the configuration is wrong."""
    if file is not None:
        return file
    try:
        used = run.settings.policy
    except DocumentErrors as error:
        _refuse(run, error)
    here = Path.cwd() / _OWN_NAME
    if here.exists() and realpath(here) != realpath(used):
        other = f"{_OWN_NAME} in this folder is another file"
        say(f"note: this is about {used}, which is in use; {other}", err=True)
    return used


def _refuse(run: Run, error: DocumentErrors) -> NoReturn:
    if run.as_json:
        checked = Checked(file=error.problems[0].file, errors=error.problems)
        say_json(as_data(checked), indent=2)
    fail(str(error))


async def key_of(store: Store | None, name: str) -> Key:
    """The key with that id, or the only one with that name; else the end of the command."""
    known = (await KeyStore(store).list()).keys if store else []
    return one_named([key for key, _ in known], name)


async def record_named(run: Run, resource: Resource, record_id: str, report: Report) -> Record:
    """The whole record of the practice system; else the end of the command.

    `report` hears of each of its values that partners cannot be shown.
    """
    from gateway.cli.backend import practice_system

    try:
        async with practice_system(run.settings, report) as adapter:
            return await adapter.read_one(Query(resource=resource.name, now=now(), id=record_id))
    except NotFound:
        listing = f"`clinic-gateway sample {resource.name}` lists some"
        fail(f"{resource.name} has no record {record_id}; {listing}")
