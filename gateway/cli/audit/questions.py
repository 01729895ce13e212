"""What is asked of the audit: who saw a record, what a key did, what administrators did."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import click

from gateway.administrators.log import DONE, Deed, DeedLog, Looks
from gateway.audit.chains import audit_folder
from gateway.audit.index import record_id
from gateway.audit.questions import Days, IndexState, Occurrences, has_called
from gateway.audit.questions import deeds as deeds_of
from gateway.audit.search import EntryFilter, newest_entries
from gateway.audit.verification import counted
from gateway.cli.audit.access import (
    fail_unbegun,
    fail_unknown,
    indexed,
    place_of_audit,
    reading,
    say_state,
    state_told,
)
from gateway.cli.keys import one_named
from gateway.cli.lines import legible, legible_json
from gateway.cli.options import CommandT, OneLine, OneOf, config_option, json_option
from gateway.contract.fields import Resource
from gateway.contract.resources import GOVERNED
from gateway.inquiries.audit import RecordReader, can_be, readers_of
from gateway.keys.store import KeyStore
from gateway.settings import Settings
from gateway.state import opened_if_begun
from gateway.store import Store

_RESOURCES = {resource.name: resource for resource in GOVERNED}
# Calls of a key that are told one by one.
LAST = 10
# Deeds that are told.
MOST, LARGEST = 50, 10_000
GONE, ODD = "a key that is gone", "a key of which the store makes no sense"


class DayType(click.ParamType[Any]):
    """A day, YYYY-MM-DD."""

    name = "DATE"

    def convert(self, value: Any, param: Any, ctx: Any) -> date:
        try:
            found = date.fromisoformat(str(value))
        except ValueError:
            found = None
        if found is None or str(found) != str(value):
            self.fail(f"{value} must be a day (UTC), such as 2026-11-21", param, ctx)
        return found


def days_options(command: CommandT) -> CommandT:
    """`--since` and `--until`: the parameters of those names."""
    until = click.option("--until", type=DayType(), help="The last day that counts, in UTC.")
    since = click.option("--since", type=DayType(), help="The first day that counts, in UTC.")
    wrapped: CommandT = since(until(command))
    return wrapped


def _when(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _times(seen: Occurrences | Looks) -> dict[str, Any]:
    return {"times": seen.times, "first": _when(seen.first), "last": _when(seen.last)}


def _in_words(seen: Occurrences | Looks) -> str:
    times = counted(seen.times, "time")
    return f"{times}, first {_when(seen.first)}, last {_when(seen.last)}"


def _between(days: Days) -> str:
    """The days in words, with a blank before."""
    since = f" since {days.since}" if days.since else ""
    return since + (f" until {days.until}" if days.until else "")


@click.command("who-read")
@click.argument("resource", type=OneOf("RESOURCE", _RESOURCES, _RESOURCES.__getitem__))
@click.argument("record", type=OneLine(), metavar="ID")
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
        told = {"resource": resource.name, "id": record, "keys": list(map(_reader_told, found))}
        told["administrators"] = [{"name": look.who} | _times(look) for look in looks]
        click.echo(legible_json(told | state_told(state)))
        return
    keys = {0: "no key has", 1: "1 key has"}.get(len(found), f"{len(found)} keys have")
    click.echo(legible(f"{resource.name} {record}: {keys} been shown it{_between(days)}"))
    for line in (line for reader in found for line in _reader_lines(reader)):
        click.echo(legible(line))
    for look in looks:
        click.echo(legible(f"{look.who} looked at it in the panel: {_in_words(look)}"))
    say_state(state)


async def _readers(
    settings: Settings, resource: Resource, record: str, days: Days
) -> tuple[list[RecordReader], Sequence[Looks], IndexState]:
    async with indexed(settings) as (store, state):
        names = {key.id: key.name for key, _ in (await KeyStore(store).list()).keys}
        found = await readers_of(store, resource, record, days, names)
        looks = await DeedLog(store).looks(resource.name, record_id(record), days.since, days.until)
        if not found and not looks and not await can_be(store, resource, record):
            fail_unknown(
                state,
                f"{resource.name} {record}: nothing of that id is known, and it is no UUID, as the"
                " ids are that partners are told:"
                f" clinic-gateway sample {resource.name} lists some",
            )
    return found, looks, state


def _reader_told(found: RecordReader) -> dict[str, Any]:
    calls = [
        {"operation": view.operation, "level": view.level, "policy": view.policy}
        | _times(seen)
        | {"fields": found.fields[view.policy, view.level]}
        for view, seen in found.seen
    ]
    return {"id": found.id, "name": found.name, "calls": calls}


def _reader_lines(found: RecordReader) -> Iterator[str]:
    yield f"{found.name or GONE} ({found.id})"
    for view, seen in found.seen:
        yield f"  {view.operation} at {view.level}: {_in_words(seen)}"
        fields = found.fields[view.policy, view.level]
        if fields is None:
            yield f"    which fields is not known: the store has no policy {view.policy}"
        else:
            shown = (
                path if sight == "whole" else f"{path} ({sight})" for path, sight in fields.items()
            )
            yield f"    policy {view.policy}: {', '.join(shown)}"


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
    (key_id, name, called), found, state = asyncio.run(_calls(settings, wanted, days))
    with reading(settings):
        whose = EntryFilter(keys=frozenset({key_id}))
        last = newest_entries(audit_folder(settings), whose, LAST)
    if as_json:
        key_told = {"id": key_id, "name": name}
        told = {"key": key_told, "calls": list(map(_call_told, found.items())), "last": last}
        click.echo(legible_json(told | state_told(state)))
        return
    click.echo(legible(f"{called} ({key_id}){_between(days)}"))
    for line in [*map(_call_line, found.items()), *_last_lines(last)] or ["no call"]:
        click.echo(legible(f"  {line}"))
    say_state(state)


async def _calls(
    settings: Settings, wanted: str, days: Days
) -> tuple[tuple[str, str | None, str], Mapping[tuple[str, str, str], Occurrences], IndexState]:
    async with indexed(settings) as (store, state):
        named = await _key_named(store, wanted, state)
        return named, await deeds_of(store, named[0], days), state


async def _key_named(store: Store, wanted: str, state: IndexState) -> tuple[str, str | None, str]:
    """Its id, its name, and what to call it without one; else the end of the command.

    A key that is gone has no name, and is known by what it did.
    """
    listing = await KeyStore(store).list()
    keys = [key for key, _ in listing.keys]
    if wanted not in {key.id for key in keys}:
        if wanted in listing.odd:
            return wanted, None, ODD
        if await has_called(store, wanted):
            return wanted, None, GONE
        if wanted not in {key.name for key in keys}:
            fail_unknown(
                state,
                f"no key has the id or the name {wanted}, and the audit knows no such id:"
                " clinic-gateway keys list shows them",
            )
    found = one_named(keys, wanted)
    return found.id, found.name, found.name


def _call_told(call: tuple[tuple[str, str, str], Occurrences]) -> dict[str, Any]:
    (operation, outcome, reason), seen = call
    told = {"operation": operation or None, "outcome": outcome, "reason": reason or None}
    return told | _times(seen)


def _call_line(call: tuple[tuple[str, str, str], Occurrences]) -> str:
    (operation, outcome, reason), seen = call
    why = f" ({reason})" if reason else ""
    return f"{operation or 'no operation'} {outcome}{why}: {_in_words(seen)}"


def _last_lines(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if entries:
        yield f"the last {len(entries)}:"
    for entry in entries:
        level = f" at {entry['level']}" if entry["level"] else ""
        yield (
            f"  {entry['time'][:19]}Z {entry['operation'] or 'no operation'} {entry['outcome']}"
            f"{level}, {counted(len(entry['recordIds']), 'record')}, request {entry['requestId']}"
        )


@click.command("deeds")
@click.option(
    "--who",
    type=OneLine(),
    metavar="NAME",
    help="Of that name alone, such as Claire or 'shell: root'.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, LARGEST),
    default=MOST,
    show_default=True,
    help="How many, the newest first.",
)
@config_option
@json_option
def deeds(who: str | None, limit: int, config: Path | None, as_json: bool) -> None:
    """Say what administrators and commands did.

    A command stands under the system account that ran it: `shell: root`. The audit's files hold the
    same under seal, which `audit verify` looks at.
    """
    found = asyncio.run(_last_deeds(place_of_audit(config), who or "", limit))
    if as_json:
        click.echo(legible_json(list(map(_deed_told, found))))
        return
    for deed in found:
        click.echo(legible(_deed_line(deed)))
    if not found:
        click.echo("no deeds" + (f" of {legible(who)}" if who else "") + " so far")


async def _last_deeds(settings: Settings, who: str, most: int) -> Sequence[Deed]:
    async with opened_if_begun(settings) as store:
        if store is None:
            fail_unbegun(settings)
        return await DeedLog(store).last(most, who=who)


def _deed_told(deed: Deed) -> dict[str, Any]:
    return {
        "at": _when(deed.at),
        "who": deed.who,
        "deed": deed.deed,
        "subject": deed.subject or None,
        "outcome": deed.outcome,
        "details": deed.details,
    }


def _deed_line(deed: Deed) -> str:
    told = ", ".join(f"{name} {_plain(value)}" for name, value in deed.details.items())
    what = deed.deed if deed.outcome == DONE else f"{deed.outcome}: {deed.deed}"
    parts = (f"{_when(deed.at)}  {deed.who}", what, deed.subject, told)
    return "  ".join(part for part in parts if part)


def _plain(value: Any) -> str:
    """A detail in words; "none" of one that is empty, such as a bound that was taken away."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        value = [f"{name}={member}" for name, member in value.items()]
    if isinstance(value, list):
        value = " ".join(map(str, value))
    return "none" if value in (None, "") else str(value)
