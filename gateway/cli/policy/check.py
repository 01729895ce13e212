"""`clinic-gateway policy check` and `policy schema`: whether a policy file is sound."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import click

from gateway.cli.lines import legible
from gateway.cli.options import config_option, fail, json_option
from gateway.cli.policy.cases import try_again
from gateway.cli.policy.reports import annotations, as_data, as_sarif, print_annotations
from gateway.cli.policy.subject import chosen, file_argument
from gateway.policy.cases.run import FAILED, summary, verify
from gateway.policy.policy import Policy
from gateway.policy.reading.checks import Checked, check_policy, notes_of
from gateway.policy.reading.schema import policy_schema
from gateway.settings import load_settings


@click.command()
@file_argument
@click.option("--strict", is_flag=True, help="Exit 1 where there are warnings, too.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "json", "sarif")),
    default="text",
    show_default=True,
    help="For people, programs, or code hosts.",
)
@click.option(
    "--against-backend",
    is_flag=True,
    help="Also look at the configured practice system: what there never gets out, and what is"
    " open and never filled.",
)
@config_option
@json_option
def check(
    file: Path | None,
    strict: bool,
    form: str,
    against_backend: bool,
    config: Path | None,
    as_json: bool,
) -> None:
    """Say whether a policy file can be used, or all that is wrong with it.

    FILE is the configured policy where it is left out. The cases beside it are tried, as a gateway
    does. Exit 1 where a gateway would not take it, or not the whole of it: where its cases fail,
    what it shows more waits until they pass. What is allowed and risky is a warning; the practice
    system only gives notes.
    """
    as_json = as_json or form == "json"
    path = chosen(file, config, as_json=as_json)
    checked = check_policy(path)
    if against_backend and checked.policy is not None:
        checked = asyncio.run(_against_backend(checked, checked.policy, config))
    if checked.policy is not None:
        errors = (*checked.errors, *verify(checked.policy, path))
        checked = replace(checked, errors=errors)
    if as_json:
        click.echo(json.dumps(as_data(checked), indent=2))
        for problem in checked.errors:  # for who watches a program's log
            click.echo(legible(str(problem)), err=True)
    elif form == "sarif":
        click.echo(json.dumps(as_sarif(checked), indent=2))
    else:
        _print(checked, file, config)
    if checked.errors or (strict and checked.warnings):
        raise click.exceptions.Exit(1)


async def _against_backend(checked: Checked, policy: Policy, config: Path | None) -> Checked:
    """The same with notes, and with the conditions that the practice system cannot serve."""
    from adapters.doctor import surveyor_of
    from gateway.backend import unserved_rows
    from gateway.cli.backend import bare_adapter

    settings = load_settings(config)
    async with bare_adapter(settings, lambda trouble: None) as adapter:
        survey = surveyor_of(adapter)
        if survey is None:
            fail(f"the adapter {settings.backend.adapter} cannot tell what it leaves out")
        unserved = unserved_rows(adapter, policy)
        errors = tuple(replace(problem, code="unserved-condition") for problem in unserved)
        notes = notes_of(policy, await survey())
    return replace(checked, errors=errors, notes=notes, policy=None if errors else policy)


def _print(checked: Checked, file: Path | None, config: Path | None) -> None:
    if found := list(annotations(checked)):
        print_annotations(found)
    if checked.policy is None:
        return
    from gateway.cli.policy.diff import outlook_lines, waits_for_approval

    if not checked.errors:
        click.echo(legible(_in_order(checked.policy)))
        if waits_for_approval(checked.policy, config):
            click.echo("It waits for an approval: `clinic-gateway policy status` says more.")
        return
    has_failed = any(problem.code == FAILED for problem in checked.errors)
    does = "lists them" if has_failed else "says why"
    failing = f"{summary(checked.errors)}; `{try_again(file)}` {does}"
    click.echo(legible(f"{checked.policy.file}: in order, but {failing}"))
    for line in outlook_lines(checked.policy, config):
        click.echo(legible(line))


def _in_order(policy: Policy) -> str:
    fields = sum(len(rules.fields) for rules in policy.rules.values())
    return (
        f"{policy.file}: in order; {len(policy.rules)} resources, {fields} fields,"
        f" hash {policy.short_hash}"
    )


@click.command()
@config_option
@json_option
def schema(config: Path | None, as_json: bool) -> None:
    """Print the JSON Schema of a policy file, as JSON, for editors that complete and check it.

    The shipped policies.yaml names it in its head; a policy of your own does so with a copy of
    policies.schema.json beside it.
    """
    click.echo(json.dumps(policy_schema(), indent=2))
