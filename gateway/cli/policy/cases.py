"""`clinic-gateway policy test`: tries the cases beside a policy, and counts what they look at."""

import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Any

import click

from adapters.documents.problems import DocumentErrors, Problem
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import config_option, fail, json_option
from gateway.cli.policy.subject import file_argument, loaded
from gateway.contract.access import AccessLevel
from gateway.policy.cases.file import Cases, read_cases
from gateway.policy.cases.run import Coverage, Outcome, cases_beside, coverage, run

WIDTH = 80


@click.command("test")
@file_argument
@click.option(
    "--cases",
    "cases_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The cases; those beside the policy where it is left out (policies.test.yaml).",
)
@click.option(
    "--min-coverage",
    "least",
    type=click.FloatRange(0, 100),
    default=0,
    metavar="PERCENT",
    help="Fail where the cases cover less of the matrix than this.",
)
@config_option
@json_option
def run_cases(
    file: Path | None,
    cases_file: Path | None,
    least: float,
    config: Path | None,
    as_json: bool,
) -> None:
    """Try the cases of a policy, and say what none of them looks at.

    FILE is the configured policy where it is left out. A case gives a key and a record, and says
    what the key must see of it. Covered is a field at a level when a case at that level has a
    record with a value there.
    """
    policy = loaded(file, config, as_json=as_json)
    cases = _read(cases_file or cases_beside(Path(policy.file)), as_json=as_json)
    outcomes, found = run(policy, cases), coverage(policy, cases)
    failed = [outcome for outcome in outcomes if outcome.differences]
    enough = found.is_at_least(least)
    sound = enough and not failed
    if as_json:
        about = {"ok": sound, "file": policy.file, "hash": policy.hash, "cases": cases.file}
        passed = {"passed": len(outcomes) - len(failed), "failed": len(failed)}
        click.echo(legible_json(about | passed | _as_data(failed, found)))
    else:
        for outcome in failed:
            click.echo(legible(str(outcome.problem())))
        passed_of = f"{len(outcomes) - len(failed)} of {len(outcomes)} cases passed"
        covered = f"({len(found.covered)} of {len(found.cells)} cells)"
        click.echo(f"{legible(cases.file)}: {passed_of}, {found.percent:g} % covered {covered}")
        for (resource, level), names in found.uncovered().items():
            click.echo(_gap(found, resource, level, names))
        if not enough:
            click.echo(f"too little: at least {least:g} % must be covered")
    if not sound:
        raise click.exceptions.Exit(1)


def try_again(file: Path | None) -> str:
    """The command that tries the cases of a file, or of the configured policy."""
    command = "clinic-gateway policy test"
    return f"{command} {quote(str(file))}" if file else command


def _read(place: Path, *, as_json: bool) -> Cases:
    """The cases, or what is wrong with them and the end of the command."""
    try:
        return read_cases(place)
    except DocumentErrors as error:
        problems = error.problems
        if not (place.exists() or place.is_symlink()):
            text = "there are no cases here: write them into this file, or name another with"
            problems = (Problem(str(place), 0, 0, f"{text} --cases"),)
        if as_json:
            click.echo(legible_json({"ok": False, "problems": list(map(asdict, problems))}))
        fail("\n".join(legible(str(problem)) for problem in problems))


def _as_data(failed: Sequence[Outcome], found: Coverage) -> dict[str, Any]:
    uncovered: dict[str, dict[str, list[str]]] = {}
    for (resource, level), names in found.uncovered().items():
        uncovered.setdefault(resource, {})[level.value] = names
    failures = [
        {
            "line": outcome.case.line,
            "column": outcome.case.column,
            "name": outcome.case.name,
            "differences": list(outcome.differences),
        }
        for outcome in failed
    ]
    covered = {
        "percent": found.percent,
        "covered": len(found.covered),
        "cells": len(found.cells),
        "uncovered": uncovered,
    }
    return {"failures": failures, "coverage": covered}


def _gap(found: Coverage, resource: str, level: AccessLevel, names: list[str]) -> str:
    """What is not covered of a level of a resource, in lines of 80 columns."""
    every = len(names) == found.count(resource, level)
    told = f"all {len(names)}" if every else ", ".join(names)
    head = f"  not covered: {resource} {level}: "
    return textwrap.fill(head + told, WIDTH, subsequent_indent=" " * 6, break_on_hyphens=False)
