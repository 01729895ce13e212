"""The store that the configuration names, opened for its administrators."""

import asyncio
import os
import pwd
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from gateway.audit.buffer import Unwritten
from gateway.audit.files import audit_folder
from gateway.audit.journal import open_chain
from gateway.audit.troubles import AuditTroubles
from gateway.cli.options import fail
from gateway.inquiries.deeds import Deeds, Unended
from gateway.observe.logs import Events
from gateway.observe.metrics import Metrics
from gateway.settings import Settings, check_own_place, load_settings
from gateway.state import opened
from gateway.store import Store

T = TypeVar("T")


class Deed(Protocol):
    """Around what is done, so that the audit has it; see Deeds.deed."""

    def __call__(
        self, deed: str, subject: str = "", **details: Any
    ) -> AbstractAsyncContextManager[dict[str, Any]]: ...


def with_store(config: Path | None, work: Callable[[Store], Awaitable[T]]) -> T:
    """Run work on the configured store."""

    async def run() -> T:
        async with _opened(config) as (_, store):
            return await work(store)

    return asyncio.run(run())


def with_deeds(config: Path | None, work: Callable[[Store, Deed], Awaitable[T]]) -> T:
    """Run work that changes something; the end of the command where the audit cannot have it."""

    async def run() -> T:
        async with _opened(config) as (settings, store):
            troubles = AuditTroubles(Metrics(()), Events())
            try:
                async with open_chain(settings, store, troubles, _now) as audit:
                    deeds = Deeds(store, audit, _now)
                    return await work(store, partial(deeds.deed, _who()))
            finally:
                _hand_over(audit_folder(settings))

    try:
        return asyncio.run(run())
    except Unwritten as error:
        fail(f"the audit cannot be written ({error}), so nothing was done; look at its disk")
    except Unended:
        fail("it is done, but how it ended could not be written into the audit; look at its disk")


@asynccontextmanager
async def _opened(config: Path | None) -> AsyncIterator[tuple[Settings, Store]]:
    check_own_place(config)
    settings = load_settings(config)
    async with opened(settings) as store:
        yield settings, store


def _now() -> datetime:
    return datetime.now(UTC)


def _who() -> str:
    """No administrator can have that name: theirs have no brackets."""
    account = os.getuid()
    try:
        return f"command line ({pwd.getpwuid(account).pw_name})"
    except KeyError:
        return f"command line ({account})"


def _hand_over(folder: Path) -> None:
    """What root wrote is the folder owner's: the gateway, which may not be root, has to read it."""
    if os.geteuid() != 0 or not folder.is_dir():
        return
    owner = folder.stat()
    for file in folder.iterdir():
        found = file.lstat()
        is_ours = found.st_uid == 0 and stat.S_ISREG(found.st_mode) and found.st_nlink == 1
        if owner.st_uid != 0 and is_ours:
            os.chown(file, owner.st_uid, owner.st_gid, follow_symlinks=False)


def unknown(name: str) -> None:
    """The end of the command: nobody has that name."""
    fail(f"nobody has the name {name}; `clinic-gateway admin list` shows all")
