"""`clinic-gateway audit who-read`: an owner asks who has seen the data."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import click

from gateway.audit.completeness import State
from gateway.audit.counting import View
from gateway.audit.index import uuid_key
from gateway.audit.questions import Days, Seen, readers
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
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import config_option, fail, json_option
from gateway.cli.policy.named import policy_named
from gateway.cli.words import OneOf
from gateway.contract.access import AccessLevel
from gateway.contract.fields import Resource
from gateway.contract.operations import OPERATIONS
from gateway.contract.resources import GOVERNED
from gateway.policy.reading.spots import Spots
from gateway.policy.telling.explain import reasons
from gateway.settings import Settings, StartRefused
from gateway.store import Store

_RESOURCES = {each.name: each for each in GOVERNED}
Fields = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One key that was shown the record, by its operations.

    `fields` is (policy, level) -> field -> how it was shown; None where the store has lost the
    policy.
    """

    id: str
    name: str | None
    seen: Sequence[tuple[View, Seen]]
    fields: Mapping[tuple[str, str], Fields | None]


@click.command("who-read")
@click.argument("resource", type=OneOf("RESOURCE", _RESOURCES, _RESOURCES.__getitem__))
@click.argument("record", metavar="ID")
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

    RESOURCE is clients, patients and so on. An owner's animals, appointments, consultations and
    invoices are records of their own: ask for each.
    """
    days = Days(since=since, until=until)
    found, state = asyncio.run(_readers(place_of_audit(config), resource, record, days))
    if as_json:
        told = {"resource": resource.name, "id": record, "keys": [_told(each) for each in found]}
        click.echo(legible_json(told | state_told(state)))
        return
    keys = {0: "no key has", 1: "1 key has"}.get(len(found), f"{len(found)} keys have")
    click.echo(legible(f"{resource.name} {record}: {keys} been shown it{between(days)}"))
    for line in (line for each in found for line in _lines(each)):
        click.echo(legible(line))
    say_state(state)


async def _readers(
    settings: Settings, resource: Resource, record: str, days: Days
) -> tuple[list[Reader], State]:
    operations = {each.id for each in OPERATIONS if each.returns is resource}
    async with indexed(settings) as (store, state):
        found = await readers(store, record, operations, days)
        if not found and not await _can_be(store, record, operations):
            fail("\n".join([_unknown(resource, record), *notes_of(state)]))
        name = await names_of_keys(store)
        sights = {(view.policy, view.level) for view in found}
        fields = {sight: await _fields(store, resource, *sight) for sight in sorted(sights)}
    readers_found = [
        Reader(
            id=key_id,
            name=name(key_id),
            seen=[(view, seen) for view, seen in found.items() if view.key_id == key_id],
            fields=fields,
        )
        for key_id in dict.fromkeys(view.key_id for view in found)
    ]
    return readers_found, state


async def _can_be(store: Store, record: str, operations: Collection[str]) -> bool:
    """Whether it is the form of a public id, or once was one, of an adapter of the clinic's own."""
    return uuid_key(record) is not None or bool(await readers(store, record, operations, Days()))


def _unknown(resource: Resource, record: str) -> str:
    return (
        f"{resource.name} {record}: nothing of that id is known, and it is no UUID, as the ids are"
        f" that partners are told: clinic-gateway sample {resource.name} lists some"
    )


async def _fields(store: Store, resource: Resource, policy: str, level: str) -> Fields | None:
    """The fields that the policy lets be seen at that level, each `whole` or by its mask."""
    try:
        named = await policy_named(policy, store)
    except StartRefused:
        return None
    every = reasons(resource, named.rules[resource.name], AccessLevel(level), Spots({}, {}, {}))
    return {each.path: each.sight for each in every if each.path and each.sight != "hidden"}


def _told(found: Reader) -> dict[str, Any]:
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


def _lines(found: Reader) -> Iterator[str]:
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
