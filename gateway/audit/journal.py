"""The two lines of each call, for the access log and the audit: the door to both."""

import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from datetime import datetime
from uuid import uuid4

from gateway.audit.buffer import Buffer
from gateway.audit.chain import Head
from gateway.audit.chains import Chains
from gateway.audit.entries import Entry
from gateway.audit.files import audit_folder, made, named_place, place_of
from gateway.audit.recorder import Recorder
from gateway.audit.secrets import Newest, key_file, secrets_at_start
from gateway.audit.troubles import AuditTroubles
from gateway.audit.writer import Writer
from gateway.observe.access import Access
from gateway.observe.lines import Lines
from gateway.settings import Settings, StartRefused
from gateway.store import Store


class Journal:
    """What each call leaves; every verb is for the event loop's thread."""

    def __init__(self, access: Lines, audit: Buffer, recorder: Recorder) -> None:
        self._access = access
        self._recorder = recorder
        self.audit = audit

    @property
    def files(self) -> Mapping[str, Lines | Buffer]:
        """Both, by what they are called in the figures."""
        return {"access": self._access, "audit": self.audit}

    @property
    def unrecorded(self) -> bool:
        """Whether the store does not know the newest head."""
        return self._recorder.failing

    def note(self, access: Access, entry: Entry | None) -> None:
        """Both lines of one call; no entry where it has one already."""
        self._access.add(access)
        if entry is not None:
            self.audit.note(entry)

    async def flush(self) -> None:
        """Write at once what waits in both; Unwritten where the audit cannot be."""
        self._access.flush()
        await self.audit.commit()

    async def aclose(self) -> None:
        """Write the rest, and let go of both."""
        self._access.close()
        await self.audit.aclose()
        await self._recorder.aclose()


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
    chains, chain = Chains(store), str(uuid4())
    folder = audit_folder(settings)
    async with AsyncExitStack() as undone:
        undone.callback(access.close)
        try:
            place = place_of(made(folder))
            begun = place is not None and await chains.any_at(place)
            path = key_file(settings)
            secrets = secrets_at_start(path, may_make=not begun and settings.audit.key_file is None)
            writer = Writer(folder, chain, Newest(path, secrets), now())
            undone.callback(writer.close)
            await chains.begin(chain, named_place(folder), socket.gethostname(), os.getpid(), now())
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
    return Journal(access, buffer, recorder)


def _record(
    chains: Chains, chain: str, now: Callable[[], datetime]
) -> Callable[[Head, bool], Awaitable[None]]:
    async def record(head: Head, ended: bool) -> None:
        await chains.record(chain, head, now(), ended=ended)

    return record
