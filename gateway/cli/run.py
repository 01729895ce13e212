"""One run of a command: its configuration, the store that it opens, what it changes as deeds.

A deed is in the audit before it is done, under the system account that ran the command.
"""

import os
import pwd
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.cli.output import fail, say, say_json

if TYPE_CHECKING:  # to import them takes long: a command does, where it opens a store
    from gateway.settings import Settings
    from gateway.store import Store

# The user who logged in, which neither su nor sudo changes; this number where nobody did.
_LOGIN, _NOBODY = Path("/proc/self/loginuid"), 2**32 - 1


# Goes around what is done: the deed, its subject and its details; see Deeds.deed.
RecordDeed = Callable[..., AbstractAsyncContextManager[dict[str, Any]]]


@dataclass(frozen=True)
class Run:
    """What every command is given: where its configuration is, and whether it prints JSON."""

    config: Path | None
    as_json: bool

    @cached_property
    def settings(self) -> "Settings":
        """DocumentErrors where the configuration is wrong."""
        from gateway.settings import load_settings

        return load_settings(self.config)

    @cached_property
    def own_settings(self) -> "Settings":
        """The same; StartRefused where nothing says where the gateway's state is."""
        from gateway.settings import check_own_place

        check_own_place(self.config)
        return self.settings

    def say(self, data: Any, lines: Iterable[str], *, indent: int | None = None) -> None:
        """Prints the data as JSON, or the lines for people."""
        if self.as_json:
            say_json(data, indent=indent)
        else:
            say(*lines)

    @asynccontextmanager
    async def store(
        self, where_none: str = "", code: int = 1, *, may_begin: bool = False
    ) -> AsyncIterator["Store"]:
        """The configured store. Where there is none yet, one is made if it `may_begin`.

        Else the command ends with `where_none` and that exit code; StartRefused without one.
        """
        from gateway.state import opened, opened_if_begun

        settings = self.own_settings
        opening = opened_if_begun if where_none else partial(opened, may_begin=may_begin)
        async with opening(settings) as store:
            if store is None:
                fail(where_none, code)
            yield store

    @asynccontextmanager
    async def deed(
        self, store: "Store", deed: str, subject: str = "", **details: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """Goes around what is done, and yields the details of the deed, which may be added to."""
        async with recording(self.settings, store) as begin, begin(deed, subject, **details) as of:
            yield of


@asynccontextmanager
async def recording(settings: "Settings", store: "Store") -> AsyncIterator[RecordDeed]:
    """Writes deeds into a chain of this command's own, while a gateway may write into others.

    Where the audit cannot be written, the command ends with a sentence before it does anything.
    """
    from gateway.audit.buffer import Unwritten
    from gateway.audit.chains import audit_folder
    from gateway.audit.journal import open_audit
    from gateway.inquiries.deeds import Deeds, Unended
    from gateway.observe.event_log import EventLog
    from gateway.state import hand_over

    folder = audit_folder(settings)
    try:
        async with open_audit(settings, store, EventLog(), now) as (audit, _):
            yield partial(Deeds(store, audit, now).deed, actor(), **_origin(store))
    except Unwritten as error:
        fail(f"the audit in {folder} cannot be written ({error}): nothing was done; free its disk")
    except Unended:
        fail(f"it is done, but the audit in {folder} could not take how it ended; free its disk")
    finally:
        hand_over(folder)


def actor() -> str:
    """Who does it, as the system says. No administrator has such a name: theirs have no colon."""
    return f"shell: {_name(os.getuid())}"


def _origin(store: "Store") -> dict[str, str]:
    """The login behind another account, and the machine where several share the store."""
    from gateway.audit.chains import Chains

    origin = {"host": socket.gethostname()} if Chains(store).shared else {}
    with suppress(OSError, ValueError):
        login = int(_LOGIN.read_text("ascii"))
        if login not in (_NOBODY, os.getuid()):
            origin["login"] = _name(login)
    return origin


def _name(account: int) -> str:
    try:
        return pwd.getpwuid(account).pw_name
    except KeyError:
        return str(account)


def now() -> datetime:
    """This machine's time."""
    return datetime.now(UTC)
