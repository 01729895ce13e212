"""`clinic-gateway policy test`: tries the cases beside a policy, and counts what they look at."""

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from adapters.documents.problems import DocumentErrors, Problem
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import config_option, fail, json_option
from gateway.cli.policy.file import file_argument, loaded
from gateway.contract.access import AccessLevel
from gateway.policy.cases.coverage import Coverage, coverage
from gateway.policy.cases.file import Cases, read_cases
from gateway.policy.cases.run import Outcome, cases_beside, run

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
    policy = loaded(file, config, as_json=as_json, does="tries")
    place = cases_file or cases_beside(Path(policy.file))
    cases = _read(place, as_json=as_json)
    outcomes, found = run(policy, cases), coverage(policy, cases)
    failed = [each for each in outcomes if each.differences]
    enough = found.is_at_least(least)
    sound = enough and not failed
    if as_json:
        about = {"ok": sound, "file": policy.file, "hash": policy.hash, "cases": cases.file}
        click.echo(legible_json(about | _told(outcomes, failed, found)))
    else:
        for each in failed:
            click.echo(legible(str(each.problem())))
        _summarize(cases, failed, found)
        if not enough:
            click.echo(f"too little: at least {least:g} % must be covered")
    if not sound:
        raise click.exceptions.Exit(1)


def _read(place: Path, *, as_json: bool) -> Cases:
    """The cases, or what is wrong with them and the end of the command."""
    if not (place.exists() or place.is_symlink()):
        text = "there are no cases here: write them into this file, or name another with --cases"
        _refuse([Problem(str(place), 0, 0, text)], as_json=as_json)
    try:
        return read_cases(place)
    except DocumentErrors as error:
        _refuse(error.problems, as_json=as_json)


def _refuse(problems: Sequence[Problem], *, as_json: bool) -> NoReturn:
    if as_json:
        told = [
            {"file": each.file, "line": each.line, "column": each.column, "text": each.text}
            for each in problems
        ]
        click.echo(legible_json({"ok": False, "problems": told}))
    fail("\n".join(legible(str(each)) for each in problems))


def _told(
    outcomes: Sequence[Outcome], failed: Sequence[Outcome], found: Coverage
) -> dict[str, Any]:
    uncovered: dict[str, dict[str, list[str]]] = {}
    for (resource, level), names in found.uncovered().items():
        uncovered.setdefault(resource, {})[level.value] = names
    failures = [
        {
            "line": each.case.line,
            "column": each.case.column,
            "name": each.case.name,
            "differences": list(each.differences),
        }
        for each in failed
    ]
    return {
        "passed": len(outcomes) - len(failed),
        "failed": len(failed),
        "failures": failures,
        "coverage": {
            "percent": found.percent,
            "covered": len(found.covered),
            "cells": len(found.cells),
            "uncovered": uncovered,
        },
    }


def _summarize(cases: Cases, failed: Sequence[Outcome], found: Coverage) -> None:
    count = len(cases.cases)
    click.echo(
        f"{legible(cases.file)}: {count - len(failed)} of {count} cases passed,"
        f" {found.percent:g} % covered ({len(found.covered)} of {len(found.cells)} cells)"
    )
    for (resource, level), names in found.uncovered().items():
        click.echo("\n".join(_gap(found, resource, level, names)))


def _gap(found: Coverage, resource: str, level: AccessLevel, names: list[str]) -> Iterator[str]:
    """What is not covered of a level of a resource, in lines of 80 columns."""
    every = len(names) == found.count(resource, level)
    told = f"all {len(names)}" if every else ", ".join(names)
    head = f"  not covered: {resource} {level}: "
    yield from textwrap.wrap(head + told, WIDTH, subsequent_indent=" " * 6, break_on_hyphens=False)
