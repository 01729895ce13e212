"""What commands on the audit rest on: the settings, the store with its index, and what it lacks."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click

from gateway.audit.chains import audit_folder, day_files
from gateway.audit.questions import IndexState, brought_up
from gateway.audit.verification import counted
from gateway.cli.lines import legible
from gateway.cli.options import fail
from gateway.settings import Settings, StartRefused, check_own_place, load_settings
from gateway.state import opened_if_begun
from gateway.store import Store, StoreError

# 1 says that the audit is not as it was written: what could not be read says nothing of that.
UNREAD = 2
# Bytes of lines that take long enough to take in that it is said.
MANY = 100_000_000
ANEW = "run `clinic-gateway audit index --anew`"


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
            fail_unbegun(settings)
        yield store


def fail_unbegun(settings: Settings) -> NoReturn:
    """The end of a command that has nothing to tell of yet."""
    fail(f"nothing has been served yet from the state folder {settings.state}", UNREAD)


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


def _notes(state: IndexState) -> Iterator[str]:
    """What an answer lacks, or rests on; nothing where there is nothing to say."""
    for gap in state.gaps:
        lines = counted(gap.lines, "line")
        lacks = f"the index lacks {lines} that were written after {gap.until}"
        if gap.here:
            yield f"{lacks}, and so does the folder: run `clinic-gateway audit verify`"
        else:
            yield (
                f"{lacks} on another machine ({gap.host}): its gateway takes them in within a"
                " minute; where none runs, run `clinic-gateway audit index` there"
            )
    if state.unknown:
        yield (
            f"{counted(state.unknown, 'chain')} of this folder count, though the store does not"
            " know them: run `clinic-gateway audit verify`"
        )


def say_state(state: IndexState) -> None:
    """What an answer lacks, printed under it."""
    for note in _notes(state):
        click.echo(legible(f"note: {note}"))


def fail_unknown(state: IndexState, text: str) -> NoReturn:
    """The end of the command, with what the index lacks under it."""
    fail("\n".join([text, *(f"note: {note}" for note in _notes(state))]))


def state_told(state: IndexState) -> dict[str, Any]:
    """What an answer lacks, as JSON members."""
    return {"complete": not state.gaps, "notes": list(_notes(state))}
