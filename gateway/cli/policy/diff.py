"""`clinic-gateway policy diff`: what a change of the policy means, for whom, and how often.

`policy check` asks it what a gateway would do with a policy whose cases fail.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from adapters.documents.problems import DocumentErrors
from gateway.cli.lines import legible
from gateway.cli.options import config_option, fail, json_option
from gateway.cli.policy.cases import try_again
from gateway.inquiries.policies import (
    DAYS,
    RUNNING,
    Comparison,
    Named,
    Touched,
    compared,
    is_kept,
    outlook,
    policy_named,
    waiting,
)
from gateway.policy.cases.run import summary, verify
from gateway.policy.policy import Policy
from gateway.policy.reading.document import load_policy
from gateway.policy.running.versions import Versions
from gateway.policy.telling.wording import Effect, PolicyChange
from gateway.settings import Settings, StartRefused, load_settings
from gateway.state import opened_if_begun
from gateway.store import StoreError

NAMED = 3  # keys that a sentence names
# What keys do with a change, and what the change does.
_VERBS = {Effect.GAIN: "gain", Effect.LOSS: "lose", Effect.OTHER: "see"}
_SHOWS = {Effect.GAIN: "shows more", Effect.LOSS: "shows less", Effect.OTHER: "shows otherwise"}
_ANYWHERE = (
    "What it shows less than the policy that runs takes effect at once; what it shows more waits"
    " until its cases pass.",
    "A gateway on which no policy has run so far does not start with it.",
)


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
    found = asyncio.run(_comparison(old, new or str(settings.policy), settings))
    if as_json:
        click.echo(json.dumps(_members(found), indent=2))
    else:
        for line in _lines(found, per_key=per_key):
            click.echo(legible(line))
        for note in found.notes:
            click.echo(legible(f"note: {note}"))
    if fail_on_widening and found.widens:
        fail(f"{found.new.name} shows more than {found.old.name}")


async def _comparison(old: str, new: str, settings: Settings) -> Comparison:
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


def _lines(found: Comparison, *, per_key: bool) -> Iterator[str]:
    old, new = (f"{policy.name} ({policy.hash[:12]})" for policy in (found.old, found.new))
    yield f"{old} -> {new}"
    if per_key:
        yield from _by_key(found)
    elif not found.touched:
        yield "no key sees anything else"
    else:
        for touched in found.touched:
            yield f"{touched.change.sentence}{_whom(touched) if found.known else ''}"
    if found.touched:
        yield _summary(found)


def _whom(touched: Touched) -> str:
    """`: 3 active keys gain it (Insurer X, ...), seen in about 4,812 answers of the last ...`."""
    if not touched.keys:
        return ": no active key is touched"
    count, effect = len(touched.keys), touched.change.effect
    keys, ending = ("key", "s") if count == 1 else ("keys", "")
    how = f"{_VERBS[effect]}{ending} it{' otherwise' if effect is Effect.OTHER else ''}"
    names = ", ".join(legible(key.name) for key in touched.keys[:NAMED])
    more = ", ..." if count > NAMED else ""
    seen = "1 answer" if touched.answers == 1 else f"{touched.answers:,} answers"
    return (
        f": {count} active {keys} {how} ({names}{more}), seen in about {seen} of the last"
        f" {DAYS} days"
    )


def _by_key(found: Comparison) -> Iterator[str]:
    keys = {key.id: key for touched in found.touched for key in touched.keys}
    if not keys:
        yield "no active key sees anything else"
    for key in keys.values():
        yield f"{legible(key.name)} ({key.id})"
        for touched in found.touched:
            if key in touched.keys:
                yield f"  {touched.change.sentence}"


def _summary(found: Comparison) -> str:
    effects = [touched.change.effect for touched in found.touched]
    parts = [f"{effects.count(effect)} {_SHOWS[effect]}" for effect in Effect if effect in effects]
    verdict = "wider" if found.widens else "narrower"
    unknown = "" if found.known else "; no keys are known here (name the configuration: --config)"
    count = "1 change" if len(effects) == 1 else f"{len(effects)} changes"
    return f"{count} ({', '.join(parts)}): {verdict}{unknown}"


def _members(found: Comparison) -> dict[str, Any]:
    return {
        "old": {"name": found.old.name, "hash": found.old.hash},
        "new": {"name": found.new.name, "hash": found.new.hash},
        "widens": found.widens,
        "days": DAYS,
        "notes": list(found.notes),
        "changes": [
            {
                "resource": touched.change.resource,
                "field": touched.change.path or None,
                "levels": list(touched.change.levels),
                "before": touched.change.before,
                "after": touched.change.after,
                "effect": touched.change.effect,
                "text": touched.change.sentence,
                "keys": [{"id": key.id, "name": key.name} for key in touched.keys],
                "answers": touched.answers,
            }
            for touched in found.touched
        ],
    }


def outlook_lines(policy: Policy, config: Path | None) -> Sequence[str]:
    """What the configured gateway would do with a policy whose cases fail; else what any would."""
    try:
        settings = load_settings(config)
        last = asyncio.run(_last(settings))
    except (DocumentErrors, StartRefused, StoreError):
        return _ANYWHERE
    if last.hash == policy.hash:
        return ["It is the policy that runs: mend its cases, so that a later change need not wait."]
    found = outlook(last.rules, policy.rules)
    approved = " and somebody approves it" if settings.policy_widening == "approve" else ""
    return [
        f"Compared with the policy that ran last ({last.hash[:12]}), takes effect at once:",
        *_listed(found.at_once),
        f"Waits until its cases pass{approved}:",
        *_listed(found.waits),
    ]


async def _last(settings: Settings) -> Named:
    async with opened_if_begun(settings) as store:
        return await policy_named(RUNNING, store)


def _listed(changes: Sequence[PolicyChange]) -> Sequence[str]:
    return [f"  {change.sentence}" for change in changes] or ["  nothing"]


def waits_for_approval(policy: Policy, config: Path | None) -> bool:
    """Whether a gateway that runs on the configured store holds it back until somebody approves."""
    try:
        return policy.hash in asyncio.run(_waiting(load_settings(config)))
    except (DocumentErrors, StartRefused, StoreError):
        return False


async def _waiting(settings: Settings) -> Sequence[str]:
    async with opened_if_begun(settings) as store:
        return waiting(await Versions(store).running(datetime.now(UTC))) if store else ()
