"""`clinic-gateway audit key`: what a key did."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import click

from gateway.audit.files import audit_folder
from gateway.audit.finding import last_entries
from gateway.audit.questions import Days, Seen, deeds
from gateway.cli.audit.opened import (
    between,
    days_options,
    indexed,
    names_of_keys,
    place_of_audit,
    spans,
    when,
)
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import config_option, json_option

Deeds = Mapping[tuple[str, str, str], Seen]
LAST = 10


@click.command("key")
@click.argument("key_id", metavar="ID")
@days_options
@config_option
@json_option
def key(
    key_id: str, since: date | None, until: date | None, config: Path | None, as_json: bool
) -> None:
    """Say what a key did: how often it called what and how that ended, and its last calls.

    The last calls are those that this machine answered.
    """
    days = Days(since=since, until=until)
    settings = place_of_audit(config)

    async def asked() -> tuple[str | None, Deeds]:
        async with indexed(settings) as store:
            name = (await names_of_keys(store))(key_id)
            return name, await deeds(store, key_id, days)

    name, found = asyncio.run(asked())
    last = last_entries(audit_folder(settings), key_id, LAST)
    if as_json:
        calls = [_told(what, seen) for what, seen in found.items()]
        key_told = {"id": key_id, "name": name}
        click.echo(legible_json({"key": key_told, "calls": calls, "last": last}))
        return
    click.echo(legible(f"{name or 'a key that is gone'} ({key_id}){between(days)}"))
    for line in [*map(_line, found.items()), *_last(last)] or ["no call"]:
        click.echo(legible(f"  {line}"))


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
