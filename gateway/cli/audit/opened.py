"""What the commands on the audit have in common: the settings, the store, the days, and times."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any

import click

from gateway.audit.chains import audit_folder, day_files
from gateway.audit.questions import Days, IndexState, Occurrences, brought_up
from gateway.cli.lines import legible
from gateway.cli.options import CommandT, fail
from gateway.keys.store import KeyStore
from gateway.settings import Settings, StartRefused, check_own_place, load_settings
from gateway.state import opened_if_begun
from gateway.store import Store, StoreError

# 1 says that the audit is not as it was written: what could not be read says nothing of that.
UNREAD = 2
# Bytes of lines that take long enough to take in that it is said.
MANY = 100_000_000
ANEW = "run `clinic-gateway audit index --anew`"


class Day(click.ParamType[Any]):
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
    until = click.option("--until", type=Day(), help="The last day that counts, in UTC.")
    since = click.option("--since", type=Day(), help="The first day that counts, in UTC.")
    wrapped: CommandT = since(until(command))
    return wrapped


def place_of_audit(config: Path | None) -> Settings:
    """The settings, where something says where the audit is."""
    check_own_place(config)
    return load_settings(config)


@contextmanager
def reading(settings: Settings) -> Iterator[None]:
    """The end of the command where the audit's folder, a file of it or its key cannot be read."""
    try:
        yield
    except StartRefused as error:
        fail(str(error), UNREAD)
    except OSError as error:
        fail(unread(audit_folder(settings), error), UNREAD)


def unread(folder: Path, error: OSError) -> str:
    """Why nothing is answered from that folder, and what to do."""
    reason = (error.strerror or str(error)).lower()
    place = "" if str(error.filename or folder) == str(folder) else f" ({error.filename})"
    remedy = "look at its disk"
    if isinstance(error, PermissionError):
        remedy = "run this as the gateway's own user"
    elif isinstance(error, NotADirectoryError):
        remedy = "the configuration's audit.folder says where it is"
    return f"the audit in {folder} cannot be read: {reason}{place}; {remedy}"


@asynccontextmanager
async def store_of(settings: Settings) -> AsyncIterator[Store]:
    """The gateway's own store; the end of the command where there is none yet.

    Before it the folder is looked at: without it nothing here can be answered.
    """
    async with AsyncExitStack() as stack:
        with reading(settings):
            day_files(audit_folder(settings))
        try:
            store = await stack.enter_async_context(opened_if_begun(settings))
        except StoreError as error:
            if not isinstance(error.__cause__, OSError):
                raise
            fail(unread(audit_folder(settings), error.__cause__), UNREAD)
        if store is None:
            fail(f"nothing has been served yet from the state folder {settings.state}", UNREAD)
        yield store


@asynccontextmanager
async def indexed(settings: Settings) -> AsyncIterator[tuple[Store, IndexState]]:
    """The same, with an index that knows every line of this machine's folder, and what it lacks.

    The end of the command where something that it had is gone from it.
    """
    async with store_of(settings) as store:
        with reading(settings):
            state = await brought_up(store, audit_folder(settings), _say_backlog)
        if state.lost is not None:
            fail(f"the index has lost what it had of {state.lost}: {ANEW}")
        yield store, state


def _say_backlog(size: int) -> None:
    if size >= MANY:
        text = f"the index lacks {size / 1e9:.2f} GB of lines, and takes them in first"
        click.echo(text, err=True)


def in_words(state: IndexState) -> list[str]:
    """What an answer lacks, or rests on; nothing where there is nothing to say."""
    told = []
    for gap in state.gaps:
        lacks = f"the index lacks {_lines(gap.lines)} that were written after {gap.until}"
        if gap.here:
            told.append(f"{lacks}, and so does the folder: run `clinic-gateway audit verify`")
        else:
            told.append(
                f"{lacks} on another machine ({gap.host}): its gateway takes them in within a"
                " minute; where none runs, run `clinic-gateway audit index` there"
            )
    if state.unknown:
        told.append(
            f"{_lines(state.unknown, 'chain')} of this folder count, though the store does not"
            " know them: run `clinic-gateway audit verify`"
        )
    return told


def notes_of(state: IndexState) -> list[str]:
    """The same, as lines under an answer or a refusal."""
    return [f"note: {text}" for text in in_words(state)]


def say_state(state: IndexState) -> None:
    """The same, printed under an answer."""
    for line in notes_of(state):
        click.echo(legible(line))


def state_told(state: IndexState) -> dict[str, Any]:
    """The same, as JSON members."""
    return {"complete": not state.gaps, "notes": in_words(state)}


def _lines(count: int, what: str = "line") -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"


async def names_of_keys(store: Store) -> Mapping[str, str]:
    """Key id -> name, of all that there are."""
    return {key.id: key.name for key, _ in (await KeyStore(store).list()).keys}


def when(moment: datetime) -> str:
    """A time in UTC, to the second."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def spans(seen: Occurrences) -> str:
    """How often, first and last."""
    times = "1 time" if seen.times == 1 else f"{seen.times} times"
    return f"{times}, first {when(seen.first)}, last {when(seen.last)}"


def between(days: Days) -> str:
    """The days in words, with a blank before."""
    since = f" since {days.since}" if days.since else ""
    return since + (f" until {days.until}" if days.until else "")
