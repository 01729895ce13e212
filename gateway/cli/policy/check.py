"""`clinic-gateway policy check` and `policy schema`: whether a policy file is sound."""

from dataclasses import replace
from pathlib import Path

import click

from gateway.cli.options import shared_options
from gateway.cli.output import fail, say, say_json
from gateway.cli.policy.cases import try_again
from gateway.cli.policy.diff import outlook_lines, waits_for_approval
from gateway.cli.policy.reports import as_data, as_sarif, print_problems
from gateway.cli.policy.subject import chosen, file_argument
from gateway.cli.run import Run
from gateway.policy.cases.run import FAILED, summary, verify
from gateway.policy.policy import Policy
from gateway.policy.reading.checks import Checked, check_policy, notes_of
from gateway.policy.reading.schema import policy_schema


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
@shared_options
async def check(
    run: Run, file: Path | None, strict: bool, form: str, against_backend: bool
) -> None:
    """Say whether a policy file can be used, or all that is wrong with it.

    FILE is the configured policy where it is left out. The cases beside it are tried, as a gateway
    does. Exit 1 where a gateway would not take it, or not the whole of it: where its cases fail,
    what it shows more waits until they pass. What is allowed and risky is a warning; the practice
    system only gives notes.
    """
    run = replace(run, as_json=run.as_json or form == "json")
    path = chosen(run, file)
    checked = check_policy(path)
    if against_backend and checked.policy is not None:
        checked = await _against_backend(run, checked, checked.policy)
    if checked.policy is not None:
        checked = replace(checked, errors=(*checked.errors, *verify(checked.policy, path)))
    if run.as_json:
        say_json(as_data(checked), indent=2)
        say(*map(str, checked.errors), err=True)  # for who watches a program's log
    elif form == "sarif":
        say_json(as_sarif(checked), indent=2)
    else:
        print_problems(checked)
        if checked.policy is not None:
            await _say_what_comes(run, checked, checked.policy, file)
    if checked.errors or (strict and checked.warnings):
        raise click.exceptions.Exit(1)


async def _against_backend(run: Run, checked: Checked, policy: Policy) -> Checked:
    """The same with notes, and with the conditions that the practice system cannot serve."""
    from adapters.doctor import surveyor_of
    from gateway.backend import unserved_rows
    from gateway.cli.backend import own_or_passing
    from gateway.inquiries.practice import bare_adapter

    async with (
        own_or_passing(run.settings) as (settings, store),
        bare_adapter(settings, store, lambda trouble: None) as adapter,
    ):
        survey = surveyor_of(adapter)
        if survey is None:
            fail(f"the adapter {settings.backend.adapter} cannot tell what it leaves out")
        unserved = unserved_rows(adapter, policy)
        errors = tuple(replace(problem, code="unserved-condition") for problem in unserved)
        notes = notes_of(policy, await survey())
    return replace(checked, errors=errors, notes=notes, policy=None if errors else policy)


async def _say_what_comes(run: Run, checked: Checked, policy: Policy, file: Path | None) -> None:
    """What a gateway would do with a policy that can be read."""
    if checked.errors:
        has_failed = any(problem.code == FAILED for problem in checked.errors)
        does = "lists them" if has_failed else "says why"
        failing = f"{summary(checked.errors)}; `{try_again(file)}` {does}"
        say(f"{policy.file}: in order, but {failing}", *await outlook_lines(run, policy))
        return
    fields = sum(len(rules.fields) for rules in policy.rules.values())
    found = f"{len(policy.rules)} resources, {fields} fields, hash {policy.short_hash}"
    say(f"{policy.file}: in order; {found}")
    if await waits_for_approval(run, policy):
        say("It waits for an approval: `clinic-gateway policy status` says more.")


@click.command()
@shared_options
def schema(run: Run) -> None:
    """Print the JSON Schema of a policy file, as JSON, for editors that complete and check it.

    The shipped policies.yaml names it in its head; a policy of your own does so with a copy of
    policies.schema.json beside it.
    """
    say_json(policy_schema(), indent=2)
