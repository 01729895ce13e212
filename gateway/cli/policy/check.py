"""`clinic-gateway policy check`: whether a policy file is sound, or all that is wrong with it."""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from gateway.cli.lines import legible
from gateway.cli.options import config_option, json_option
from gateway.cli.policy.as_github import as_command
from gateway.cli.policy.as_json import as_data
from gateway.cli.policy.as_sarif import as_sarif
from gateway.cli.policy.as_text import print_entries
from gateway.cli.policy.entries import entries_of
from gateway.cli.policy.file import chosen, file_argument
from gateway.cli.policy.tried import try_again, with_cases
from gateway.policy.cases.run import FAILED, summary
from gateway.policy.policy import Policy
from gateway.policy.reading.checked import Checked, check_policy


@click.command()
@file_argument
@click.option("--strict", is_flag=True, help="Exit 1 where there are warnings, too.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "json", "sarif", "github")),
    default="text",
    show_default=True,
    help="For people, programs, code hosts, or GitHub's workflows.",
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
    form = "json" if as_json else form
    path = chosen(file, config, as_json=form == "json", does="checks")
    checked = check_policy(path)
    if against_backend:
        from gateway.cli.policy import against

        checked = asyncio.run(against.against_backend(checked, config))
    checked = with_cases(checked, path)
    if form == "text":
        _text(checked, try_again(file), config)
    else:
        FORMATS[form](checked)
    if checked.errors or (strict and checked.warnings):
        raise click.exceptions.Exit(1)


def _text(checked: Checked, again: str, config: Path | None) -> None:
    """`again` is the command that tries the cases once more."""
    entries = entries_of(checked)
    if entries:
        print_entries(entries)
    if checked.policy is None:
        return
    from gateway.cli.policy.diff import outlook_lines, waits_for_approval

    if not checked.errors:
        click.echo(legible(in_order(checked.policy)))
        if waits_for_approval(checked.policy, config):
            click.echo("It waits for an approval: `clinic-gateway policy status` says more.")
        return
    failing = f"{summary(checked.errors)}; `{again}` {_tells(checked)}"
    click.echo(legible(f"{checked.policy.file}: in order, but {failing}"))
    for line in outlook_lines(checked.policy, config):
        click.echo(legible(line))


def _tells(checked: Checked) -> str:
    """What that command does about the cases."""
    return "lists them" if any(each.code == FAILED for each in checked.errors) else "says why"


def in_order(policy: Policy) -> str:
    """That a policy can be used, in a sentence."""
    fields = sum(len(each.fields) for each in policy.rules.values())
    return (
        f"{policy.file}: in order; {len(policy.rules)} resources, {fields} fields,"
        f" hash {policy.short_hash}"
    )


def _json(checked: Checked) -> None:
    """On stderr the errors in a line each, for who watches a program's log."""
    click.echo(json.dumps(as_data(checked), indent=2))
    for each in checked.errors:
        click.echo(legible(str(each)), err=True)


def _sarif(checked: Checked) -> None:
    click.echo(json.dumps(as_sarif(entries_of(checked)), indent=2))


def _github(checked: Checked) -> None:
    for each in entries_of(checked):
        click.echo(as_command(each))


FORMATS: Mapping[str, Callable[[Checked], None]] = {
    "json": _json,
    "sarif": _sarif,
    "github": _github,
}
