"""What a command is about: a policy file, a key of the store, a record of the practice system."""

import asyncio
import json
from os.path import realpath
from pathlib import Path
from typing import NoReturn

import click

from adapters.base import NotFound, Query, Record, Report
from adapters.documents.problems import DocumentErrors
from gateway.cli.keys import one_named
from gateway.cli.lines import legible
from gateway.cli.options import fail
from gateway.cli.policy.reports import as_data
from gateway.contract.fields import Resource
from gateway.keys.key import Key
from gateway.policy.policy import Policy
from gateway.policy.reading.checks import Checked
from gateway.policy.reading.document import load_policy
from gateway.settings import check_own_place, load_settings
from gateway.state import opened_if_begun

_OWN_NAME = "policies.yaml"
file_argument = click.argument(
    "file", required=False, type=click.Path(dir_okay=False, path_type=Path)
)


def loaded(file: Path | None, config: Path | None, *, as_json: bool) -> Policy:
    """The policy, or its problems and the end of the command."""
    path = chosen(file, config, as_json=as_json)
    try:
        return load_policy(path, lambda trouble: None)
    except DocumentErrors as error:
        _refuse(error, as_json=as_json)


def chosen(file: Path | None, config: Path | None, *, as_json: bool) -> Path:
    """The file that is named, or the policy in force; the end where the configuration is wrong."""
    if file is not None:
        return file
    try:
        used = load_settings(config).policy
    except DocumentErrors as error:
        _refuse(error, as_json=as_json)
    here = Path.cwd() / _OWN_NAME
    if here.exists() and realpath(here) != realpath(used):
        other = f"{_OWN_NAME} in this folder is another file"
        click.echo(legible(f"note: this is about {used}, which is in use; {other}"), err=True)
    return used


def _refuse(error: DocumentErrors, *, as_json: bool) -> NoReturn:
    if as_json:
        checked = Checked(file=error.problems[0].file, errors=error.problems)
        click.echo(json.dumps(as_data(checked), indent=2))
    fail(str(error))


def key_named(config: Path | None, name: str) -> Key:
    """The key with that id, or the only one with that name; else the end of the command."""
    return one_named(asyncio.run(_keys(config)), name)


async def _keys(config: Path | None) -> list[Key]:
    from gateway.keys.store import KeyStore

    check_own_place(config)
    async with opened_if_begun(load_settings(config)) as store:
        return [key for key, _ in (await KeyStore(store).list()).keys] if store else []


def record_named(config: Path | None, resource: Resource, record_id: str, report: Report) -> Record:
    """The whole record of the practice system; else the end of the command.

    `report` hears of each of its values that partners cannot be shown.
    """
    try:
        return asyncio.run(_record(config, resource.name, record_id, report))
    except NotFound:
        listing = f"`clinic-gateway sample {resource.name}` lists some"
        fail(f"{resource.name} has no record {record_id}; {listing}")


async def _record(config: Path | None, resource: str, record_id: str, report: Report) -> Record:
    from gateway.app import utc_now
    from gateway.cli.backend import practice_system

    async with practice_system(load_settings(config), report) as adapter:
        return await adapter.read_one(Query(resource=resource, now=utc_now(), id=record_id))
