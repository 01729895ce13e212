"""`clinic-gateway policy test`: tries the cases beside a policy, and counts what they look at."""

import textwrap
from dataclasses import asdict
from pathlib import Path
from shlex import quote

import click

from adapters.documents.problems import DocumentErrors, Problem
from gateway.cli.options import shared_options
from gateway.cli.output import fail, say_json
from gateway.cli.policy.subject import file_argument, loaded
from gateway.cli.run import Run
from gateway.policy.cases.file import read_cases
from gateway.policy.cases.run import cases_beside, coverage
from gateway.policy.cases.run import run as tried

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
@shared_options
def run_cases(run: Run, file: Path | None, cases_file: Path | None, least: float) -> None:
    """Try the cases of a policy, and say what none of them looks at.

    FILE is the configured policy where it is left out. A case gives a key and a record, and says
    what the key must see of it. Covered is a field at a level when a case at that level has a
    record with a value there.
    """
    policy = loaded(run, file)
    place = cases_file or cases_beside(Path(policy.file))
    try:
        cases = read_cases(place)
    except DocumentErrors as error:
        problems = error.problems
        if not (place.exists() or place.is_symlink()):
            text = "there are no cases here: write them into this file, or name another with"
            problems = (Problem(str(place), 0, 0, f"{text} --cases"),)
        if run.as_json:
            say_json({"ok": False, "problems": list(map(asdict, problems))})
        fail("\n".join(map(str, problems)))
    outcomes, found = tried(policy, cases), coverage(policy, cases)
    failed = [outcome for outcome in outcomes if outcome.differences]
    passed, enough = len(outcomes) - len(failed), found.is_at_least(least)
    covered = f"({len(found.covered)} of {len(found.cells)} cells)"
    lines = [
        *(str(outcome.problem()) for outcome in failed),
        f"{place}: {passed} of {len(outcomes)} cases passed, {found.percent:g} % covered {covered}",
    ]
    uncovered: dict[str, dict[str, list[str]]] = {}
    for (resource, level), names in found.uncovered().items():
        uncovered.setdefault(resource, {})[level.value] = names
        every = len(names) == found.count(resource, level)
        gap = f"all {len(names)}" if every else ", ".join(names)
        text = f"  not covered: {resource} {level}: {gap}"
        lines += textwrap.wrap(text, WIDTH, subsequent_indent=" " * 6, break_on_hyphens=False)
    if not enough:
        lines.append(f"too little: at least {least:g} % must be covered")
    failures = [
        {
            "line": outcome.case.line,
            "column": outcome.case.column,
            "name": outcome.case.name,
            "differences": list(outcome.differences),
        }
        for outcome in failed
    ]
    counts = {
        "percent": found.percent,
        "covered": len(found.covered),
        "cells": len(found.cells),
        "uncovered": uncovered,
    }
    about = {"file": policy.file, "hash": policy.hash, "cases": str(place)}
    numbers = {"passed": passed, "failed": len(failed)}
    ok = enough and not failed
    run.say({"ok": ok} | about | numbers | {"failures": failures, "coverage": counts}, lines)
    if not ok:
        raise click.exceptions.Exit(1)


def try_again(file: Path | None) -> str:
    """The command that tries the cases of a file, or of the configured policy."""
    command = "clinic-gateway policy test"
    return f"{command} {quote(str(file))}" if file else command
