"""`clinic-gateway policy diff`: what a change of the policy means, for whom, and how often."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from gateway.cli.command import Command, Run, now, option
from gateway.cli.output import counted, fail
from gateway.cli.policy.check import try_again
from gateway.cli.values import FLAG
from gateway.inquiries.policies import (
    DAYS,
    RUNNING,
    Comparison,
    Touched,
    compared,
    is_kept,
    policy_named,
)
from gateway.policy.cases.run import summary, verify
from gateway.policy.reading.document import load_policy
from gateway.policy.telling.wording import Effect
from gateway.state import opened_if_begun

NAMED = 3  # keys that a sentence names
# What keys do with a change, and what the change does.
_VERBS = {Effect.GAIN: "gain", Effect.LOSS: "lose", Effect.OTHER: "see"}
_SHOWS = {Effect.GAIN: "shows more", Effect.LOSS: "shows less", Effect.OTHER: "shows otherwise"}


@click.command(cls=Command)
@click.argument("old", required=False, default=RUNNING)
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
        before, after = await policy_named(old, store), await policy_named(new, store)
        notes = []
        # a policy that ran has no cases beside it
        if not is_kept(new) and (
            failing := verify(load_policy(Path(new), lambda trouble: None), Path(new))
        ):
            waits = "what it shows more waits until they pass"
            notes = [f"{new}: {summary(failing)}, so {waits}: {try_again(Path(new))}"]
        found = await compared(before, after, store, now(), notes)
    run.say(_data(found), _lines(found, per_key=per_key), indent=2)
    if fail_on_widening and found.widens:
        fail(f"{found.new.file} shows more than {found.old.file}")


def _lines(found: Comparison, *, per_key: bool) -> Iterator[str]:
    old, new = (f"{policy.file} ({policy.short_hash})" for policy in (found.old, found.new))
    yield f"{old} -> {new}"
    keys = {key.id: key for touched in found.touched for key in touched.keys}
    if per_key and not keys:
        yield "no active key sees anything else"
    elif not found.touched:
        yield "no key sees anything else"
    for key in keys.values() if per_key else ():
        yield f"{key.name} ({key.id})"
        yield from (f"  {one.change.sentence}" for one in found.touched if key in one.keys)
    for touched in () if per_key else found.touched:
        yield f"{touched.change.sentence}{_whom(touched) if found.known else ''}"
    if found.touched:
        effects = [touched.change.effect for touched in found.touched]
        parts = [f"{effects.count(one)} {_SHOWS[one]}" for one in Effect if one in effects]
        verdict = "wider" if found.widens else "narrower"
        if not found.known:
            verdict += "; no keys are known here (name the configuration: --config)"
        yield f"{counted(len(effects), 'change')} ({', '.join(parts)}): {verdict}"
    for note in found.notes:
        yield f"note: {note}"


def _whom(touched: Touched) -> str:
    """`: 3 active keys gain it (Insurer X, ...), seen in about 4,812 answers of the last ...`."""
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
        f" {DAYS} days"
    )


def _data(found: Comparison) -> dict[str, Any]:
    return {
        "old": {"name": found.old.file, "hash": found.old.hash},
        "new": {"name": found.new.file, "hash": found.new.hash},
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
