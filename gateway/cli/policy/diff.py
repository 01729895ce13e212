"""`clinic-gateway policy diff`: what a change of the policy means, for whom, and how often."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from gateway.cli.lines import legible
from gateway.cli.options import config_option, fail, json_option
from gateway.cli.policy.tried import try_again
from gateway.inquiries.policies import (
    DAYS,
    RUNNING,
    Comparison,
    Named,
    Touched,
    compared,
    is_kept,
    policy_named,
)
from gateway.policy.cases.run import summary, verify
from gateway.policy.reading.document import load_policy
from gateway.policy.telling.diff import Effect
from gateway.settings import Settings, load_settings
from gateway.state import opened_if_begun

NAMED = 3  # keys that a sentence names
_VERBS = {Effect.GAIN: "gain", Effect.LOSS: "lose", Effect.OTHER: "see"}


@click.command()
@click.argument("old", required=False, default=RUNNING)
@click.argument("new", required=False)
@click.option("--keys", "per_key", is_flag=True, help="Say it key by key.")
@click.option("--fail-on-widening", is_flag=True, help="Exit 1 where anybody would see more.")
@config_option
@json_option
def diff(
    old: str,
    new: str | None,
    per_key: bool,
    fail_on_widening: bool,
    config: Path | None,
    as_json: bool,
) -> None:
    """Say what changes from OLD to NEW: which fields and records, for which keys, how often.

    Either is a file, `running`, or the beginning of the hash of a policy that ran. OLD is the
    running policy where it is left out, NEW the configured file. A note says where the cases
    beside NEW fail.
    """
    settings = load_settings(config)
    found = asyncio.run(by_name(old, new or str(settings.policy), settings))
    if as_json:
        click.echo(json.dumps(told(found), indent=2))
    else:
        for line in _by_key(found) if per_key else _by_change(found):
            click.echo(legible(line))
        for note in found.notes:
            click.echo(legible(f"note: {note}"))
    if fail_on_widening and found.widens:
        fail(f"{found.new.name} shows more than {found.old.name}")


async def by_name(old: str, new: str, settings: Settings) -> Comparison:
    """What differs between two policies by their names."""
    async with opened_if_begun(settings) as store:
        before, after = await policy_named(old, store), await policy_named(new, store)
        return await compared(before, after, store, datetime.now(UTC), list(_notes(new)))


def _notes(new: str) -> Iterator[str]:
    """What the cases beside a file hold against it; a policy that ran has none."""
    if is_kept(new):
        return
    path = Path(new)
    if problems := verify(load_policy(path, lambda trouble: None), path):
        waits = "what it shows more waits until they pass"
        yield f"{new}: {summary(problems)}, so {waits}: {try_again(path)}"


def _by_change(found: Comparison) -> Iterator[str]:
    yield f"{_label(found.old)} -> {_label(found.new)}"
    if not found.touched:
        yield "no key sees anything else"
        return
    for each in found.touched:
        yield f"{each.change.sentence}{_whom(each) if found.known else ''}"
    yield _summary(found)


def _label(policy: Named) -> str:
    return f"{policy.name} ({policy.hash[:12]})"


def _whom(touched: Touched) -> str:
    """`: 3 active keys gain it (Insurer X, ...), seen in about 4,812 answers of the last ...`."""
    if not touched.keys:
        return ": no active key is touched"
    count, verb = len(touched.keys), _VERBS[touched.change.effect]
    what = "key" if count == 1 else "keys"
    how = f"{verb}s it" if count == 1 else f"{verb} it"
    if touched.change.effect is Effect.OTHER:
        how = f"{how} otherwise"
    names = ", ".join(legible(key.name) for key in touched.keys[:NAMED])
    more = ", ..." if count > NAMED else ""
    seen = "1 answer" if touched.answers == 1 else f"{touched.answers:,} answers"
    return (
        f": {count} active {what} {how} ({names}{more}), seen in about {seen} of the last"
        f" {DAYS} days"
    )


def _summary(found: Comparison) -> str:
    effects = [each.change.effect for each in found.touched]
    words = {Effect.GAIN: "shows more", Effect.LOSS: "shows less", Effect.OTHER: "shows otherwise"}
    parts = [f"{effects.count(each)} {words[each]}" for each in Effect if each in effects]
    verdict = "wider" if found.widens else "narrower"
    unknown = "" if found.known else "; no keys are known here (name the configuration: --config)"
    count = "1 change" if len(effects) == 1 else f"{len(effects)} changes"
    return f"{count} ({', '.join(parts)}): {verdict}{unknown}"


def _by_key(found: Comparison) -> Iterator[str]:
    yield f"{_label(found.old)} -> {_label(found.new)}"
    keys = {key.id: key for each in found.touched for key in each.keys}
    if not keys:
        yield "no active key sees anything else"
    for key in keys.values():
        yield f"{legible(key.name)} ({key.id})"
        for each in found.touched:
            if key in each.keys:
                yield f"  {each.change.sentence}"
    if found.touched:
        yield _summary(found)


def told(found: Comparison) -> dict[str, Any]:
    """The comparison as JSON members."""
    return {
        "old": {"name": found.old.name, "hash": found.old.hash},
        "new": {"name": found.new.name, "hash": found.new.hash},
        "widens": found.widens,
        "days": DAYS,
        "notes": list(found.notes),
        "changes": [
            {
                "resource": each.change.resource,
                "field": each.change.path or None,
                "levels": list(each.change.levels),
                "before": each.change.before,
                "after": each.change.after,
                "effect": each.change.effect,
                "text": each.change.sentence,
                "keys": [{"id": key.id, "name": key.name} for key in each.keys],
                "answers": each.answers,
            }
            for each in found.touched
        ],
    }
