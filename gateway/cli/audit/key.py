"""`clinic-gateway audit key`: what a key did."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import click

from gateway.audit.completeness import State
from gateway.audit.files import audit_folder
from gateway.audit.finding import last_entries
from gateway.audit.questions import Days, Seen, deeds
from gateway.cli.audit.opened import (
    between,
    days_options,
    indexed,
    place_of_audit,
    reading,
    say_state,
    spans,
    state_told,
    when,
)
from gateway.cli.audit.whose import key_named
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import OneLine, config_option, json_option
from gateway.settings import Settings

Deeds = Mapping[tuple[str, str, str], Seen]
LAST = 10


@click.command("key")
@click.argument("wanted", type=OneLine(), metavar="KEY")
@days_options
@config_option
@json_option
def key(
    wanted: str, since: date | None, until: date | None, config: Path | None, as_json: bool
) -> None:
    """Say what a key did: how often it called what and how that ended, and its last calls.

    KEY is its id, or its name where no other key has that. The last calls are those that this
    machine answered.
    """
    days = Days(since=since, until=until)
    settings = place_of_audit(config)
    (key_id, name, called), found, state = asyncio.run(_asked(settings, wanted, days))
    with reading(settings):
        last = last_entries(audit_folder(settings), key_id, LAST)
    if as_json:
        calls = [_told(what, seen) for what, seen in found.items()]
        key_told = {"id": key_id, "name": name}
        told = {"key": key_told, "calls": calls, "last": last} | state_told(state)
        click.echo(legible_json(told))
        return
    click.echo(legible(f"{called} ({key_id}){between(days)}"))
    for line in [*map(_line, found.items()), *_last(last)] or ["no call"]:
        click.echo(legible(f"  {line}"))
    say_state(state)


async def _asked(
    settings: Settings, wanted: str, days: Days
) -> tuple[tuple[str, str | None, str], Deeds, State]:
    async with indexed(settings) as (store, state):
        whose = await key_named(store, wanted, state)
        return whose, await deeds(store, whose[0], days), state


def _told(what: tuple[str, str, str], seen: Seen) -> dict[str, Any]:
    operation, outcome, reason = what
    return {
        "operation": operation or None,
        "outcome": outcome,
        "reason": reason or None,
        "times": seen.times,
        "first": when(seen.first),
        "last": when(seen.last),
    }


def _line(found: tuple[tuple[str, str, str], Seen]) -> str:
    (operation, outcome, reason), seen = found
    why = f" ({reason})" if reason else ""
    return f"{operation or 'no operation'} {outcome}{why}: {spans(seen)}"


def _records(ids: Sequence[str]) -> str:
    return "1 record" if len(ids) == 1 else f"{len(ids)} records"


def _last(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        f"  {each['time'][:19]}Z {each['operation'] or 'no operation'} {each['outcome']}"
        f"{' at ' + each['level'] if each['level'] else ''}, {_records(each['recordIds'])},"
        f" request {each['requestId']}"
        for each in entries
    ]
    return [f"the last {len(lines)}:", *lines] if lines else []
