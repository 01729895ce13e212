"""`clinic-gateway audit who-read`: an owner asks who has seen the data."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import click

from gateway.administrators.log import DeedLog, Looks
from gateway.audit.completeness import State
from gateway.audit.index import record_id
from gateway.audit.questions import Days, Seen
from gateway.cli.audit.opened import (
    between,
    days_options,
    indexed,
    names_of_keys,
    notes_of,
    place_of_audit,
    say_state,
    spans,
    state_told,
    when,
)
from gateway.cli.lines import Line, legible, legible_json
from gateway.cli.options import config_option, fail, json_option
from gateway.cli.words import OneOf
from gateway.contract.fields import Resource
from gateway.contract.resources import GOVERNED
from gateway.inquiries.audit import Fields, RecordReader, can_be, readers_of
from gateway.settings import Settings

_RESOURCES = {each.name: each for each in GOVERNED}


@click.command("who-read")
@click.argument("resource", type=OneOf("RESOURCE", _RESOURCES, _RESOURCES.__getitem__))
@click.argument("record", type=Line(), metavar="ID")
@days_options
@config_option
@json_option
def who_read(
    resource: Resource,
    record: str,
    since: date | None,
    until: date | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Say which keys were shown a record, how often, when, and which of its fields.

    Below them stand the administrators who looked at it in the panel.

    RESOURCE is clients, patients and so on. An owner's animals, appointments, consultations and
    invoices are records of their own: ask for each.
    """
    days = Days(since=since, until=until)
    found, looks, state = asyncio.run(_readers(place_of_audit(config), resource, record, days))
    if as_json:
        told = {"resource": resource.name, "id": record, "keys": [_told(each) for each in found]}
        told["administrators"] = [_look_told(each) for each in looks]
        click.echo(legible_json(told | state_told(state)))
        return
    keys = {0: "no key has", 1: "1 key has"}.get(len(found), f"{len(found)} keys have")
    click.echo(legible(f"{resource.name} {record}: {keys} been shown it{between(days)}"))
    for line in (line for each in found for line in _lines(each)):
        click.echo(legible(line))
    for look in looks:
        click.echo(legible(f"{look.who} looked at it in the panel: {spans(_seen(look))}"))
    say_state(state)


async def _readers(
    settings: Settings, resource: Resource, record: str, days: Days
) -> tuple[list[RecordReader], Sequence[Looks], State]:
    async with indexed(settings) as (store, state):
        names = await names_of_keys(store)
        found = await readers_of(store, resource, record, days, names)
        looks = await DeedLog(store).looks(resource.name, record_id(record), days.since, days.until)
        if not found and not looks and not await can_be(store, resource, record):
            fail("\n".join([_unknown(resource, record), *notes_of(state)]))
    return found, looks, state


def _unknown(resource: Resource, record: str) -> str:
    return (
        f"{resource.name} {record}: nothing of that id is known, and it is no UUID, as the ids are"
        f" that partners are told: clinic-gateway sample {resource.name} lists some"
    )


def _told(found: RecordReader) -> dict[str, Any]:
    calls = [
        {
            "operation": view.operation,
            "level": view.level,
            "policy": view.policy,
            "times": seen.times,
            "first": when(seen.first),
            "last": when(seen.last),
            "fields": found.fields[view.policy, view.level],
        }
        for view, seen in found.seen
    ]
    return {"id": found.id, "name": found.name, "calls": calls}


def _look_told(look: Looks) -> dict[str, Any]:
    first, last = when(look.first), when(look.last)
    return {"name": look.who, "times": look.times, "first": first, "last": last}


def _seen(look: Looks) -> Seen:
    return Seen(look.times, look.first, look.last)


def _lines(found: RecordReader) -> Iterator[str]:
    yield f"{found.name or 'a key that is gone'} ({found.id})"
    for view, seen in found.seen:
        yield f"  {view.operation} at {view.level}: {spans(seen)}"
        fields = found.fields[view.policy, view.level]
        if fields is None:
            yield f"    which fields is not known: the store has no policy {view.policy}"
        else:
            yield f"    policy {view.policy}: {', '.join(_in_words(fields))}"


def _in_words(fields: Fields) -> Iterator[str]:
    for path, sight in fields.items():
        yield path if sight == "whole" else f"{path} ({sight})"
