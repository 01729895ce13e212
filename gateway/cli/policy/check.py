"""`clinic-gateway policy check`, `test`, `diff` and `schema`: examine and compare policy files."""

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

import click

from adapters.documents.problems import DocumentErrors, Problem
from gateway.cli.command import Command, Run, now, option
from gateway.cli.output import fail, members, say, say_json
from gateway.cli.policy import reports
from gateway.cli.values import FILE, FLAG
from gateway.events import counted
from gateway.inquiries import policies
from gateway.policy.cases import FAILED, cases_beside, coverage, read_cases, summary, verify
from gateway.policy.cases import run as tried
from gateway.policy.policy import Policy
from gateway.policy.reading.checks import Checked, check_policy, notes_of
from gateway.policy.reading.document import load_policy
from gateway.policy.reading.schema import policy_schema
from gateway.policy.running.versions import Versions
from gateway.policy.telling.wording import Effect, PolicyChange
from gateway.settings import StartRefused
from gateway.state import opened_if_begun
from gateway.store import StoreError

WIDTH = 80
# Errors that hide which policy runs. A file can be checked without knowing it.
_UNTOLD = (DocumentErrors, StartRefused, StoreError)
_ANYWHERE = (
    "What it shows less than the policy that runs takes effect at once; what it shows more waits"
    " until its cases pass.",
    "A gateway on which no policy has run so far does not start with it.",
)
# The number of keys that a sentence names.
NAMED = 3
# What keys do with a change, and what the change does.
_VERBS = {Effect.GAIN: "gain", Effect.LOSS: "lose", Effect.OTHER: "see"}
_SHOWS = {Effect.GAIN: "shows more", Effect.LOSS: "shows less", Effect.OTHER: "shows otherwise"}


@click.command(cls=Command)
@reports.file_argument
@option("--strict", FLAG, "Exit 1 where there are warnings, too.")
@option(
    "--format form",
    click.Choice(("text", "json", "sarif")),
    "For people, programs, or code hosts.",
    default="text",
)
@option(
    "--against-backend",
    FLAG,
    "Also look at the configured practice system: what there never gets out, and what is"
    " open and never filled.",
)
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
    path = reports.chosen(run, file)
    checked = check_policy(path)
    if against_backend and checked.policy is not None:
        checked = await _against_backend(run, checked, checked.policy)
    if checked.policy is not None:
        checked = replace(checked, errors=(*checked.errors, *verify(checked.policy, path)))
    if run.as_json:
        say_json(reports.as_data(checked), indent=2)
        say(*map(str, checked.errors), err=True)  # for people who read the log of a program
    elif form == "sarif":
        say_json(reports.as_sarif(checked), indent=2)
    else:
        reports.print_problems(checked)
        if checked.policy is not None:
            await _say_what_comes(run, checked, checked.policy, file)
    if checked.errors or (strict and checked.warnings):
        raise click.exceptions.Exit(1)


async def _against_backend(run: Run, checked: Checked, policy: Policy) -> Checked:
    """Adds notes, and errors for the conditions that the practice system cannot serve."""
    from adapters.doctor import doctor_of
    from gateway.backend import unserved_rows
    from gateway.cli.backend import own_or_passing
    from gateway.inquiries.practice import bare_adapter

    async with (
        own_or_passing(run.settings) as (settings, store),
        bare_adapter(settings, store, lambda trouble: None) as adapter,
    ):
        doctor = doctor_of(adapter)
        if doctor is None:
            fail(f"the adapter {settings.backend.adapter} cannot tell what it leaves out")
        unserved = unserved_rows(adapter, policy)
        errors = tuple(replace(problem, code="unserved-condition") for problem in unserved)
        notes = notes_of(policy, await doctor.survey(adapter))
    return replace(checked, errors=errors, notes=notes, policy=None if errors else policy)


async def _say_what_comes(run: Run, checked: Checked, policy: Policy, file: Path | None) -> None:
    """Prints what a gateway would do with a readable policy."""
    if checked.errors:
        has_failed = any(problem.code == FAILED for problem in checked.errors)
        does = "lists them" if has_failed else "says why"
        failing = f"{summary(checked.errors)}; `{try_again(file)}` {does}"
        say(f"{policy.file}: in order, but {failing}", *await _outlook_lines(run, policy))
        return
    fields = sum(len(rules.fields) for rules in policy.rules.values())
    contents = f"{len(policy.rules)} resources, {fields} fields, hash {policy.short_hash}"
    say(f"{policy.file}: in order; {contents}")
    with suppress(*_UNTOLD):
        async with opened_if_begun(run.settings) as store:
            if store and policy.hash in policies.waiting(await Versions(store).running(now())):
                say("It waits for an approval: `clinic-gateway policy status` says more.")


async def _outlook_lines(run: Run, policy: Policy) -> Sequence[str]:
    """Returns what the configured gateway, or else any, would do with a policy whose cases fail."""
    try:
        async with opened_if_begun(run.settings) as store:
            last = await policies.policy_named(policies.RUNNING, store)
    except _UNTOLD:
        return _ANYWHERE
    if last.hash == policy.hash:
        return ["It is the policy that runs: mend its cases, so that a later change need not wait."]

    def listed(changes: Sequence[PolicyChange]) -> Sequence[str]:
        return [f"  {change.sentence}" for change in changes] or ["  nothing"]

    at_once, waits = policies.outlook(last.rules, policy.rules)
    approved = " and somebody approves it" if run.settings.policy_widening == "approve" else ""
    return [
        f"Compared with the policy that ran last ({last.hash[:12]}), takes effect at once:",
        *listed(at_once),
        f"Waits until its cases pass{approved}:",
        *listed(waits),
    ]


@click.command(cls=Command)
def schema(run: Run) -> None:
    """Print the JSON Schema of a policy file, as JSON, for editors that complete and check it.

    The shipped policies.yaml names it in its head; a policy of your own does so with a copy of
    policies.schema.json beside it.
    """
    say_json(policy_schema(), indent=2)


@click.command("test", cls=Command)
@reports.file_argument
@option(
    "--cases cases_file",
    FILE,
    "The cases; those beside the policy where it is left out (policies.test.yaml).",
)
@option(
    "--min-coverage least",
    click.FloatRange(0, 100),
    "Fail where the cases cover less of the matrix than this.",
    default=0,
    metavar="PERCENT",
)
def run_cases(run: Run, file: Path | None, cases_file: Path | None, least: float) -> None:
    """Try the cases of a policy, and say what none of them looks at.

    FILE is the configured policy where it is left out. A case gives a key and a record, and says
    what the key must see of it. Covered is a field at a level when a case at that level has a
    record with a value there.
    """
    policy = reports.loaded(run, file)
    place = cases_file or cases_beside(Path(policy.file))
    try:
        cases = read_cases(place)
    except DocumentErrors as error:
        if place.exists() or place.is_symlink():
            reports.refuse(run, error)
        text = "there are no cases here: write them into this file, or name another with --cases"
        reports.refuse(run, DocumentErrors([Problem(str(place), 0, 0, text)]))
    outcomes, cover = tried(policy, cases), coverage(policy, cases)
    failed = [outcome for outcome in outcomes if outcome.differences]
    passed = len(outcomes) - len(failed)
    enough = len(cover.covered) * 100 >= least * len(cover.cells)
    covered = f"({len(cover.covered)} of {len(cover.cells)} cells)"
    lines = [
        *(str(outcome.problem()) for outcome in failed),
        f"{place}: {passed} of {len(outcomes)} cases passed, {cover.percent:g} % covered {covered}",
    ]
    uncovered: dict[str, dict[str, list[str]]] = {}
    for resource, level, names, is_all in cover.uncovered():
        uncovered.setdefault(resource, {})[level.value] = names
        gap = f"all {len(names)}" if is_all else ", ".join(names)
        text = f"  not covered: {resource} {level}: {gap}"
        lines += textwrap.wrap(text, WIDTH, subsequent_indent=" " * 6, break_on_hyphens=False)
    if not enough:
        lines.append(f"too little: at least {least:g} % must be covered")
    failures = [
        members(outcome.case, "line", "column", "name") | {"differences": list(outcome.differences)}
        for outcome in failed
    ]
    counts = {"percent": cover.percent, "covered": len(cover.covered), "cells": len(cover.cells)}
    ok = enough and not failed
    data = {"ok": ok, "file": policy.file, "hash": policy.hash, "cases": str(place)}
    data |= {"passed": passed, "failed": len(failed), "failures": failures}
    run.say(data | {"coverage": counts | {"uncovered": uncovered}}, lines)
    if not ok:
        raise click.exceptions.Exit(1)


def try_again(file: Path | None) -> str:
    """Returns the command that tries the cases of a file, or of the configured policy."""
    command = "clinic-gateway policy test"
    return f"{command} {quote(str(file))}" if file else command


@click.command(cls=Command)
@click.argument("old", required=False, default=policies.RUNNING)
@click.argument("new", required=False)
@option("--keys per_key", FLAG, "Say it key by key.")
@option("--fail-on-widening", FLAG, "Exit 1 where anybody would see more.")
async def diff(run: Run, old: str, new: str | None, per_key: bool, fail_on_widening: bool) -> None:
    """Say what changes from OLD to NEW: which fields and records, for which keys, how often.

    Either is a file, `running`, or the beginning of the hash of a policy that ran. OLD is the
    running policy where it is left out, NEW the configured file. A note says where the cases
    beside NEW fail.
    """
    new = new or str(run.settings.policy)
    async with opened_if_begun(run.settings) as store:
        before = await policies.policy_named(old, store)
        after = await policies.policy_named(new, store)
        notes = []
        # a policy that ran has no cases beside it
        if not policies.is_kept(new) and (
            failing := verify(load_policy(Path(new), lambda trouble: None), Path(new))
        ):
            waits = "what it shows more waits until they pass"
            notes = [f"{new}: {summary(failing)}, so {waits}: {try_again(Path(new))}"]
        found = await policies.compared(before, after, store, now(), notes)
    run.say(_diff_data(found), _diff_lines(found, per_key=per_key), indent=2)
    if fail_on_widening and found.widens:
        fail(f"{found.new.file} shows more than {found.old.file}")


def _diff_lines(found: policies.Comparison, *, per_key: bool) -> Iterator[str]:
    old, new = (f"{policy.file} ({policy.short_hash})" for policy in (found.old, found.new))
    yield f"{old} -> {new}"
    keys = {key.id: key for touched in found.touched for key in touched.keys}
    if per_key and not keys:
        yield "no active key sees anything else"
    elif not found.touched:
        yield "no key sees anything else"
    for key in keys.values() if per_key else ():
        yield f"{key.name} ({key.id})"
        yield from (f"  {it.change.sentence}" for it in found.touched if key in it.keys)
    for touched in () if per_key else found.touched:
        yield f"{touched.change.sentence}{_whom(touched) if found.known else ''}"
    if found.touched:
        effects = [touched.change.effect for touched in found.touched]
        parts = [f"{effects.count(kind)} {_SHOWS[kind]}" for kind in Effect if kind in effects]
        verdict = "wider" if found.widens else "narrower"
        if not found.known:
            verdict += "; no keys are known here (name the configuration: --config)"
        yield f"{counted(len(effects), 'change')} ({', '.join(parts)}): {verdict}"
    for note in found.notes:
        yield f"note: {note}"


def _whom(touched: policies.Touched) -> str:
    """Returns `: 3 active keys gain it (Insurer X, ...), seen in about 4,812 answers of ...`."""
    if not touched.keys:
        return ": no active key is touched"
    count, effect = len(touched.keys), touched.change.effect
    keys, ending = ("key", "s") if count == 1 else ("keys", "")
    how = f"{_VERBS[effect]}{ending} it{' otherwise' if effect is Effect.OTHER else ''}"
    names = ", ".join(key.name for key in touched.keys[:NAMED])
    more = ", ..." if count > NAMED else ""
    seen = "1 answer" if touched.answers == 1 else f"{touched.answers:,} answers"
    return (
        f": {count} active {keys} {how} ({names}{more}), seen in about {seen} of the last"
        f" {policies.DAYS} days"
    )


def _diff_data(found: policies.Comparison) -> dict[str, Any]:
    return {
        "old": {"name": found.old.file, "hash": found.old.hash},
        "new": {"name": found.new.file, "hash": found.new.hash},
        "widens": found.widens,
        "days": policies.DAYS,
        "notes": list(found.notes),
        "changes": [
            members(touched.change, "resource", "levels", "before", "after", "effect")
            | {"field": touched.change.path or None, "text": touched.change.sentence}
            | {"keys": [members(key, "id", "name") for key in touched.keys]}
            | {"answers": touched.answers}
            for touched in found.touched
        ],
    }
