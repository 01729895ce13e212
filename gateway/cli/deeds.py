"""The configured store, opened for a command, and what the command changes there as deeds.

A deed is in the audit before it is done, under the system account that ran the command.
"""

import asyncio
import os
import pwd
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gateway.cli.options import fail

if TYPE_CHECKING:  # to import them takes long: a command does, where it opens a store
    from gateway.settings import Settings
    from gateway.store import Store

# The user who logged in, which neither su nor sudo changes; this number where nobody did.
_LOGIN, _NOBODY = Path("/proc/self/loginuid"), 2**32 - 1
T = TypeVar("T")


class RecordDeed(Protocol):
    """Goes around what is done; see Deeds.deed."""

    def __call__(
        self, deed: str, subject: str = "", **details: Any
    ) -> AbstractAsyncContextManager[dict[str, Any]]: ...


def with_store(
    config: Path | None, work: Callable[["Store"], Awaitable[T]], *, where_none: str = ""
) -> T:
    """Runs work on the configured store.

    Where there is no store yet, the command ends with `where_none`; StartRefused without one.
    """

    async def run() -> T:
        async with _opened(config, where_none=where_none) as (_, store):
            return await work(store)

    return asyncio.run(run())


def with_deeds(
    config: Path | None,
    work: Callable[["Store", RecordDeed], Awaitable[T]],
    *,
    may_begin: bool = False,
) -> T:
    """Runs work that changes something in the configured store.

    Where there is no state yet, one is made if it `may_begin`.
    """

    async def run() -> T:
        async with (
            _opened(config, may_begin=may_begin) as (settings, store),
            recording(settings, store) as deed,
        ):
            return await work(store, deed)

    return asyncio.run(run())


@asynccontextmanager
async def _opened(
    config: Path | None, *, may_begin: bool = False, where_none: str = ""
) -> AsyncIterator[tuple["Settings", "Store"]]:
    from gateway.settings import check_own_place, load_settings
    from gateway.state import opened, opened_if_begun

    check_own_place(config)
    settings = load_settings(config)
    opening = opened_if_begun(settings) if where_none else opened(settings, may_begin=may_begin)
    async with opening as store:
        if store is None:
            fail(where_none)
        yield settings, store


@asynccontextmanager
async def recording(settings: "Settings", store: "Store") -> AsyncIterator[RecordDeed]:
    """Writes deeds into a chain of this command's own, while a gateway may write into others.

    Where the audit cannot be written, the command ends with a sentence before it does anything.
    """
    from gateway.audit.buffer import Unwritten
    from gateway.audit.chains import audit_folder
    from gateway.audit.journal import open_chain
    from gateway.audit.troubles import AuditTroubles
    from gateway.inquiries.deeds import Deeds, Unended
    from gateway.observe.logs import Events
    from gateway.observe.metrics import Metrics
    from gateway.state import hand_over

    folder = audit_folder(settings)
    try:
        async with open_chain(settings, store, AuditTroubles(Metrics(()), Events()), now) as audit:
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

    origin = {}
    with suppress(OSError, ValueError):
        login = int(_LOGIN.read_text("ascii"))
        if login not in (_NOBODY, os.getuid()):
            origin["login"] = _name(login)
    if Chains(store).shared:
        origin["host"] = socket.gethostname()
    return origin


def _name(account: int) -> str:
    try:
        return pwd.getpwuid(account).pw_name
    except KeyError:
        return str(account)


def now() -> datetime:
    """This machine's time."""
    return datetime.now(UTC)
