"""What a command changes: in the audit before it is done, under the system account that ran it."""

import os
import pwd
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from gateway.audit.buffer import Unwritten
from gateway.audit.chains import Chains, audit_folder
from gateway.audit.journal import open_chain
from gateway.audit.troubles import AuditTroubles
from gateway.cli.options import fail
from gateway.inquiries.deeds import Deeds, Unended
from gateway.observe.logs import Events
from gateway.observe.metrics import Metrics
from gateway.settings import Settings
from gateway.state import hand_over
from gateway.store import Store

# The user who logged in, which neither su nor sudo changes; this number where nobody did.
_LOGIN, _NOBODY = Path("/proc/self/loginuid"), 2**32 - 1


class Deed(Protocol):
    """Goes around what is done; see Deeds.deed."""

    def __call__(
        self, deed: str, subject: str = "", **details: Any
    ) -> AbstractAsyncContextManager[dict[str, Any]]: ...


@asynccontextmanager
async def recording(settings: Settings, store: Store) -> AsyncIterator[Deed]:
    """Writes deeds into a chain of this command's own, while a gateway may write into others.

    Where the audit cannot be written, the command ends with a sentence before it does anything.
    """
    folder = audit_folder(settings)
    try:
        async with open_chain(settings, store, AuditTroubles(Metrics(()), Events()), _now) as audit:
            yield partial(Deeds(store, audit, _now).deed, actor(), **_origin(store))
    except Unwritten as error:
        fail(f"the audit in {folder} cannot be written ({error}): nothing was done; free its disk")
    except Unended:
        fail(f"it is done, but the audit in {folder} could not take how it ended; free its disk")
    finally:
        hand_over(folder)


def actor() -> str:
    """Who does it, as the system says. No administrator has such a name: theirs have no colon."""
    return f"shell: {_name(os.getuid())}"


def _origin(store: Store) -> dict[str, str]:
    """The login behind another account, and the machine where several share the store."""
    told = {}
    with suppress(OSError, ValueError):
        login = int(_LOGIN.read_text("ascii"))
        if login not in (_NOBODY, os.getuid()):
            told["login"] = _name(login)
    if Chains(store).shared:
        told["host"] = socket.gethostname()
    return told


def _name(account: int) -> str:
    try:
        return pwd.getpwuid(account).pw_name
    except KeyError:
        return str(account)


def _now() -> datetime:
    return datetime.now(UTC)
