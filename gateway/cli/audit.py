"""`clinic-gateway audit`: tells who was shown what, and verifies the audit."""

import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

import click

from gateway.administrators.log import DONE, DeedLog
from gateway.audit.chains import PLACE, Chains, audit_folder, day_files, place_of
from gateway.audit.entries import key_file, rotate
from gateway.audit.index import forget_all, record_id
from gateway.audit.questions import Days, IndexState, brought_up, has_called, losses
from gateway.audit.questions import deeds as deeds_of
from gateway.audit.search import EntryFilter, newest_entries
from gateway.audit.verification import RUNS
from gateway.cli.command import CommandGroup, Run, option
from gateway.cli.keys import key_named
from gateway.cli.output import fail, members, plain, say
from gateway.cli.values import FLAG, ONE_LINE, RESOURCE, TextValue
from gateway.contract.fields import Resource
from gateway.events import counted
from gateway.identity import identity_of, reason_of
from gateway.inquiries.audit import AuditReport, can_be, readers_of, verify_audit
from gateway.keys.store import KeyStore
from gateway.settings import Settings, StartRefused
from gateway.state import opened_if_begun
from gateway.store import Store, StoreError

# The exit code where nothing could be read: 1 says that the audit is not as it was written.
UNREAD = 2
# From this many bytes of lines on, the user is told that the index takes them in.
MANY = 100_000_000
ANEW = "run `clinic-gateway audit index --anew`"
# The number of a key's last calls that are listed.
LAST = 10
# The number of deeds that are listed by default, and at most.
MOST, LARGEST = 50, 10_000
GONE, ODD = "a key that is gone", "a key of which the store makes no sense"


@click.group(cls=CommandGroup)
def audit() -> None:
    """Ask who was shown what, and verify that nobody has changed the answer."""


def _day(text: str) -> date:
    with suppress(ValueError):
        day = date.fromisoformat(text)
        if str(day) == text:
            return day
    raise ValueError(f"{text} must be a day (UTC), such as 2026-11-21")


_since = option("--since", TextValue("DATE", _day), "The first day that counts, in UTC.")
_until = option("--until", TextValue("DATE", _day), "The last day that counts, in UTC.")


def _in_words(seen: Mapping[str, Any]) -> str:
    first, last = plain(seen["first"]), plain(seen["last"])
    return f"{counted(seen['times'], 'time')}, first {first}, last {last}"


def _between(days: Days) -> str:
    bounds = (("since", days.since), ("until", days.until))
    return "".join(f" {word} {day}" for word, day in bounds if day)


@audit.command("who-read")
@click.argument("resource", type=RESOURCE)
@click.argument("record", type=ONE_LINE, metavar="ID")
@_since
@_until
async def who_read(run: Run, resource: Resource, record: str, **between: date | None) -> None:
    """Say which keys were shown a record, how often, when, and which of its fields.

    Below them stand the administrators who looked at it in the panel.

    RESOURCE is clients, patients and so on. An owner's animals, appointments, consultations and
    invoices are records of their own: ask for each.
    """
    days = Days(**between)
    async with indexed(run) as (store, state):
        names = {key.id: key.name for key, _ in (await KeyStore(store).list()).keys}
        readers = await readers_of(store, resource, record, days, names)
        looks = await DeedLog(store).looks(resource.name, record_id(record), **between)
        if not readers and not looks and not await can_be(store, resource, record):
            fail_unknown(
                state,
                f"{resource.name} {record}: nothing of that id is known, and it is no UUID, as the"
                " ids are that partners are told: clinic-gateway sample"
                f" {resource.name} lists some",
            )
    data = {
        "resource": resource.name,
        "id": record,
        "keys": [
            members(reader, "id", "name")
            | {
                "calls": [
                    members(view, "operation", "level", "policy")
                    | asdict(seen)
                    | {"fields": reader.fields[view.policy, view.level]}
                    for view, seen in reader.seen
                ]
            }
            for reader in readers
        ],
        "administrators": [
            {"name": look.who} | members(look, "times", "first", "last") for look in looks
        ],
    }
    say_answer(run, data, _readers_in_words(data, days), state)


def _readers_in_words(data: Mapping[str, Any], days: Days) -> Iterator[str]:
    many = len(data["keys"])
    keys = {0: "no key has", 1: "1 key has"}.get(many, f"{many} keys have")
    yield f"{data['resource']} {data['id']}: {keys} been shown it{_between(days)}"
    for reader in data["keys"]:
        yield f"{reader['name'] or GONE} ({reader['id']})"
        for call in reader["calls"]:
            yield f"  {call['operation']} at {call['level']}: {_in_words(call)}"
            if call["fields"] is None:
                yield f"    which fields is not known: the store has no policy {call['policy']}"
            else:
                shown = (
                    path if sight == "whole" else f"{path} ({sight})"
                    for path, sight in call["fields"].items()
                )
                yield f"    policy {call['policy']}: {', '.join(shown)}"
    for look in data["administrators"]:
        yield f"{look['name']} looked at it in the panel: {_in_words(look)}"


@audit.command("key")
@click.argument("named", type=ONE_LINE, metavar="KEY")
@_since
@_until
async def key(run: Run, named: str, **between: date | None) -> None:
    """Say what a key did: how often it called what and how that ended, and its last calls.

    KEY is its id, or its name where no other key has that. The last calls are those that this
    machine answered.
    """
    days = Days(**between)
    async with indexed(run) as (store, state):
        key_id, name, called = await _key_named(store, named, state)
        sums = await deeds_of(store, key_id, days)
    with reading(run.settings):
        whose = EntryFilter(keys=frozenset({key_id}))
        last = newest_entries(audit_folder(run.settings), whose, LAST)
    calls, lines = [], [f"{called} ({key_id}){_between(days)}"]
    for (operation, outcome, reason), seen in sums.items():
        ended = {"operation": operation or None, "outcome": outcome, "reason": reason or None}
        calls.append(ended | asdict(seen))
        why = f" ({reason})" if reason else ""
        lines.append(f"  {operation or 'no operation'} {outcome}{why}: {_in_words(calls[-1])}")
    if last:
        lines.append(f"  the last {len(last)}:")
    elif not sums:
        lines.append("  no call")
    for entry in last:
        level = f" at {entry['level']}" if entry["level"] else ""
        records = counted(len(entry["recordIds"]), "record")
        lines.append(
            f"    {entry['time'][:19]}Z {entry['operation'] or 'no operation'} {entry['outcome']}"
            f"{level}, {records}, request {entry['requestId']}"
        )
    data = {"key": {"id": key_id, "name": name}, "calls": calls, "last": last}
    say_answer(run, data, lines, state)


async def _key_named(store: Store, named: str, state: IndexState) -> tuple[str, str | None, str]:
    """Returns a key's id, its name or None if it is gone, and what to call it; else ends."""
    kept = KeyStore(store)
    listing = await kept.list()
    if named in listing.odd:
        return named, None, ODD
    if all(key.id != named for key, _ in listing.keys) and await has_called(store, named):
        return named, None, GONE
    if all(named not in (key.id, key.name) for key, _ in listing.keys):
        fail_unknown(
            state,
            f"no key has the id or the name {named}, and the audit knows no such id:"
            " clinic-gateway keys list shows them",
        )
    key, _ = await key_named(kept, named)
    return key.id, key.name, key.name


@audit.command("deeds")
@option("--who", ONE_LINE, "Of that name alone, such as Claire or 'shell: root'.", metavar="NAME")
@option("--limit", click.IntRange(1, LARGEST), "How many, the newest first.", default=MOST)
async def deeds(run: Run, who: str | None, limit: int) -> None:
    """Say what administrators and commands did.

    A command stands under the system account that ran it: `shell: root`. The audit's files hold the
    same under seal, which `audit verify` looks at.
    """
    async with run.store(_unbegun(run.own_settings), UNREAD) as store:
        log = await DeedLog(store).last(limit, who=who or "")
    data, lines = [], []
    for deed in log:
        shown = members(deed, "at", "who", "deed", "outcome", "details")
        data.append(shown | {"subject": deed.subject or None})
        what = deed.deed if deed.outcome == DONE else f"{deed.outcome}: {deed.deed}"
        details = ", ".join(f"{name} {plain(value)}" for name, value in deed.details.items())
        parts = (plain(deed.at), deed.who, what, deed.subject, details)
        lines.append("  ".join(filter(None, parts)))
    run.say(data, lines or [f"no deeds{f' of {who}' if who else ''} so far"])


@audit.command()
async def verify(run: Run) -> None:
    """Verify every chain of this machine's audit against the heads in the store.

    Exits with 1 where one is not as it was written, and names the first line that is not; also, as
    every command does, where a part of the state is gone. Exits with 2 where the folder cannot be
    read.
    """
    async with store_of(run) as store:
        with reading(run.settings):
            report = await verify_audit(run.settings, store)
    chains = [
        asdict(verdict) | {"chain": verdict.chain or None, "broken": verdict.broken or None}
        for verdict in report.verdicts
    ]
    elsewhere = sorted({chain.place for chain in report.others})
    if not run.as_json:
        say(*(f"BROKEN: {chain['broken']}" for chain in chains if chain["broken"]), err=True)
    run.say({"sound": report.is_sound, "chains": chains, "elsewhere": elsewhere}, lines_of(report))
    if not report.is_sound:
        raise click.exceptions.Exit(1)


def lines_of(report: AuditReport) -> Iterator[str]:
    """Yields the notes, how much was verified, and where the chains of others are verified."""
    verdicts = report.verdicts
    yield from (f"note: {note}" for verdict in verdicts for note in verdict.notes)
    states = ["running" if verdict.state == RUNS else verdict.state for verdict in verdicts]
    numbers = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    chains = f"{counted(len(verdicts), 'chain')} ({numbers})" if verdicts else "no chains"
    files = counted(sum(verdict.files for verdict in verdicts), "file")
    lines = counted(sum(verdict.lines for verdict in verdicts), "line")
    broken = sum(bool(verdict.broken) for verdict in verdicts)
    yield f"{chains}, {files}, {lines}: {broken} broken"
    others = {chain.place: chain.host for chain in reversed(report.others)}
    for place, host in sorted(others.items()):
        where = f"are on another machine ({host}): run `audit verify` there"
        if host == socket.gethostname():
            where = (
                "belong to another audit folder on this machine: run `audit verify` with that"
                " gateway's configuration. If the folder is gone, restore it"
            )
        yield f"note: the chains of {place} {where}"


@audit.command()
@option("--anew", FLAG, "Forget the whole index first.")
@option(
    "--all-machines",
    FLAG,
    "With --anew: forget what other machines took in, too; each takes in its lines again.",
)
async def index(run: Run, anew: bool, all_machines: bool) -> None:
    """Take this machine's lines into the index, and check that it has all that it took in.

    Exits with 1 where it has not, or where lines are missing. A gateway may run meanwhile.
    """
    if all_machines and not anew:
        raise click.UsageError("--all-machines goes with --anew")
    if anew:
        await _forget(run, all_machines=all_machines)
    async with indexed(run) as (store, state):
        lost = await losses(store)
    line = f"{state.lines} lines taken in" + ("" if lost else "; every day adds up")
    data = {"lines": state.lines, "lost": list(map(str, lost))}
    say_answer(run, data, [line], state, lacks=bool(lost))
    if lost:
        days = f"{lost[0]}" + (f" and {len(lost) - 1} days more" if lost[1:] else "")
        fail(f"the index has not all that it took in of {days}: {ANEW}")
    if any(gap.here for gap in state.gaps):
        raise click.exceptions.Exit(1)


async def _forget(run: Run, *, all_machines: bool) -> None:
    """Forgets the index; refuses to lose other machines' lines unless `all_machines` is given."""
    async with store_of(run) as store:
        chains = Chains(store)
        place, shared = place_of(audit_folder(run.settings)), chains.shared
        others = {chain.host for chain in await chains.known() if shared and chain.place != place}
        if others and not all_machines:
            hosts = ", ".join(sorted(others))
            fail(
                f"other machines have lines in the index too ({hosts}): with --all-machines it is"
                " made anew for all, and each takes in its own again within minutes; what a"
                " machine that is gone has written can then be found no more"
            )
        async with run.deed(store, "audit index made anew", allMachines=all_machines):
            await forget_all(store)


@audit.command("rotate-key")
async def rotate_key(run: Run) -> None:
    """Make a new HMAC key for the audit; the former ones stay, so that older lines verify.

    Running processes take it with the next line that they write.
    """
    path, name = key_file(run.own_settings), audit_folder(run.settings) / PLACE
    is_lost = not path.exists()
    if is_lost and not name.exists():
        fail(f"there is no audit in {name.parent} yet: `clinic-gateway serve` makes it and its key")
    # where the former key is gone, only the new one can seal the deed
    new = rotate(path, identity_of(name)) if is_lost else None
    async with opened_if_begun(run.settings) as store:
        if store is None:  # there is no audit yet
            new = new or rotate(path)
        else:
            async with run.deed(store, "audit key rotated") as details:
                new = new or rotate(path)
                details |= {"key": new.id, "lost": is_lost}
    line = f"the key {new.id} seals from now on; keep a copy of {path}"
    run.say({"key": new.id, "file": str(path)}, [line])


@contextmanager
def reading(settings: Settings) -> Iterator[None]:
    """Ends the command where the audit's folder, a file in it or its key cannot be read."""
    try:
        yield
    except StartRefused as error:
        fail(str(error), UNREAD)
    except OSError as error:
        fail(unread(audit_folder(settings), error), UNREAD)


def unread(folder: Path, error: OSError) -> str:
    """Returns why the audit folder cannot be read, and what to do."""
    place = "" if str(error.filename or folder) == str(folder) else f" ({error.filename})"
    remedy = "look at its disk"
    if isinstance(error, PermissionError):
        remedy = "run this as the gateway's own user"
    elif isinstance(error, NotADirectoryError):
        remedy = "the configuration's audit.folder says where it is"
    return f"the audit in {folder} cannot be read: {reason_of(error)}{place}; {remedy}"


@asynccontextmanager
async def store_of(run: Run) -> AsyncIterator[Store]:
    """Yields the gateway's store; ends the command without one, or without the audit's folder."""
    folder = audit_folder(run.own_settings)
    with reading(run.settings):
        day_files(folder)
    async with AsyncExitStack() as stack:
        try:
            store = await stack.enter_async_context(run.store(_unbegun(run.settings), UNREAD))
        except StoreError as error:
            if isinstance(error.__cause__, OSError):
                fail(unread(folder, error.__cause__), UNREAD)
            raise
        yield store


def _unbegun(settings: Settings) -> str:
    return f"nothing has been served yet from the state folder {settings.state}"


@asynccontextmanager
async def indexed(run: Run) -> AsyncIterator[tuple[Store, IndexState]]:
    """Yields the store and the state of the index, brought up to date; ends where it lost days."""

    def say_backlog(size: int) -> None:
        if size >= MANY:
            say(f"the index lacks {size / 1e9:.2f} GB of lines, and takes them in first", err=True)

    async with store_of(run) as store:
        with reading(run.settings):
            state = await brought_up(store, audit_folder(run.settings), say_backlog)
        if state.lost is not None:
            fail(f"the index has lost what it had of {state.lost}: {ANEW}")
        yield store, state


def notes_of(state: IndexState) -> Iterator[str]:
    """Yields what an answer from the index lacks."""
    for gap in state.gaps:
        remedy = (
            ", and so does the folder: run `clinic-gateway audit verify`"
            if gap.here
            else f" on another machine ({gap.host}): its gateway takes them in within a minute;"
            " where none runs, run `clinic-gateway audit index` there"
        )
        lines = counted(gap.lines, "line")
        yield f"the index lacks {lines} that were written after {gap.until}{remedy}"
    if state.unknown:
        yield (
            f"{counted(state.unknown, 'chain')} of this folder count, though the store does not"
            " know them: run `clinic-gateway audit verify`"
        )


def say_answer(
    run: Run, data: dict[str, Any], lines: Iterable[str], state: IndexState, *, lacks: bool = False
) -> None:
    """Prints an answer from the index, and what it lacks."""
    notes = list(notes_of(state))
    about = {"complete": not (lacks or state.gaps), "notes": notes}
    run.say(data | about, [*lines, *(f"note: {note}" for note in notes)])


def fail_unknown(state: IndexState, text: str) -> NoReturn:
    """Ends the command with the text, and what the index lacks."""
    fail("\n".join([text, *(f"note: {note}" for note in notes_of(state))]))
