"""The two lines of each call, for the access log and the audit: the door to both."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from uuid import uuid4

from gateway.audit.buffer import Buffer
from gateway.audit.chain import Head
from gateway.audit.chains import Chains
from gateway.audit.entries import SPARED, Entry, Mark
from gateway.audit.files import audit_folder, made, named_place
from gateway.audit.recorder import Recorder
from gateway.audit.secrets import Newest, key_file, secrets_at_start
from gateway.audit.sparing import Sparing
from gateway.audit.troubles import AuditTroubles
from gateway.audit.writer import Writer
from gateway.identity import META
from gateway.observe.lines import Lines
from gateway.observe.logs import Access
from gateway.settings import Settings, StartRefused
from gateway.store import Store

# Seconds after which it is said how many calls had no lines of their own.
TELL_AFTER = 10.0


class Journal:
    """What each call leaves; every verb is for the event loop's thread."""

    def __init__(
        self, access: Lines, audit: Buffer, recorder: Recorder, now: Callable[[], datetime]
    ) -> None:
        self._access = access
        self._recorder = recorder
        self._now = now
        self._sparing = Sparing()
        self._telling: asyncio.TimerHandle | None = None
        self.audit = audit

    @property
    def files(self) -> Mapping[str, Lines | Buffer]:
        """Both, by what they are called in the figures."""
        return {"access": self._access, "audit": self.audit}

    @property
    def unrecorded(self) -> bool:
        """Whether the store does not know the newest head."""
        return self._recorder.failing

    def note(self, access: Access, entry: Entry | None, *, counted: bool = True) -> None:
        """Both lines of one call; no entry where it has one already.

        Of calls that no limit has `counted` only some: of the others the audit says how many.
        """
        if not counted and self._sparing.spares(access.key_id):
            if self._telling is None:
                loop = asyncio.get_running_loop()
                self._telling = loop.call_later(TELL_AFTER, self._tell_spared)
            return
        self._access.add(access)
        if entry is not None:
            self.audit.note(entry)

    def record_soon(self) -> None:
        """A booking is on disk: the store is told of the audit's head now, beside the answer."""
        self._recorder.hasten()

    async def flush(self) -> None:
        """Write at once what waits in both; Unwritten where the audit cannot be."""
        self._access.flush()
        await self.audit.commit()

    async def aclose(self) -> None:
        """Write the rest, and let go of both."""
        if self._telling is not None:
            self._telling.cancel()
            self._tell_spared()
        self._access.close()
        await self.audit.aclose()
        await self._recorder.aclose()

    def _tell_spared(self) -> None:
        self._telling = None
        for key_id, calls in self._sparing.told().items():
            self.audit.mark(Mark(SPARED, self._now(), lines=calls, key_id=key_id or ""))


async def open_journal(
    settings: Settings,
    store: Store,
    access: Lines,
    troubles: AuditTroubles,
    now: Callable[[], datetime],
) -> Journal:
    """A journal with a chain of its own, which the store knows and which has its first line.

    StartRefused, in a sentence, where the audit cannot be written; StoreError.
    """
    async with AsyncExitStack() as undone:
        undone.callback(access.close)
        buffer, recorder = await _begun(settings, store, troubles, now)
        undone.pop_all()
    return Journal(access, buffer, recorder, now)


@asynccontextmanager
async def open_chain(
    settings: Settings, store: Store, troubles: AuditTroubles, now: Callable[[], datetime]
) -> AsyncIterator[Buffer]:
    """The audit alone, with a chain that ends with the block; else as `open_journal`."""
    buffer, recorder = await _begun(settings, store, troubles, now)
    try:
        yield buffer
    finally:
        await buffer.aclose()
        await recorder.aclose()


async def _begun(
    settings: Settings, store: Store, troubles: AuditTroubles, now: Callable[[], datetime]
) -> tuple[Buffer, Recorder]:
    """Both of a new chain, running."""
    chains, chain = Chains(store), str(uuid4())
    folder = audit_folder(settings)
    async with AsyncExitStack() as undone:
        try:
            state = await store.meta(META)
            place = named_place(made(folder), state)
            path, begun = key_file(settings), await chains.any_at(place)
            may_make = not begun and settings.audit.key_file is None
            secrets = secrets_at_start(path, may_make=may_make, state=state)
            writer = Writer(folder, chain, Newest(path, secrets), now())
            undone.callback(writer.close)
            await chains.begin(chain, place, socket.gethostname(), os.getpid(), now())
            first = writer.write((), now())
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise StartRefused(f"the audit in {folder} cannot be written: {reason}") from error
        undone.pop_all()
    recorder = Recorder(_record(chains, chain, now), troubles)
    recorder.written(first)
    recorder.start()
    buffer = Buffer(writer, troubles, recorder.written, now)
    buffer.start()
    return buffer, recorder


def _record(
    chains: Chains, chain: str, now: Callable[[], datetime]
) -> Callable[[Head, bool], Awaitable[None]]:
    async def record(head: Head, ended: bool) -> None:
        await chains.record(chain, head, now(), ended=ended)

    return record
