"""Writes two lines for each call: one in the access log, one in the audit."""

import asyncio
import os
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from uuid import uuid4

from gateway.audit import entries
from gateway.audit.buffer import Buffer, Writer
from gateway.audit.chains import Chains, audit_folder, named_place
from gateway.audit.entries import ChainHead, Entry, Mark
from gateway.background import Periodic
from gateway.events import Events
from gateway.identity import META, reason_of
from gateway.observe.lines import Access, AccessLog
from gateway.settings import Settings, StartRefused
from gateway.store import Store, StoreError

# Seconds after which the audit says how many calls got no line.
TELL_AFTER = 10.0
# Calls of one key, or of all without one, that get lines at once, and how many more each second.
AT_ONCE, PER_SECOND = 100.0, 1.0
# Seconds between two records of the head, unless a booking asks for one.
RECORD_EVERY = 1.0
# Seconds after each in any case: while much is booked the store has other things to write.
PAUSE = 0.05
# Seconds that the last one may take at the end.
LAST = 2.0


class Sparing:
    """Bounds the lines of calls that no limit counts, by key id; None is all without a usable key.

    Such calls need no key and can come as fast as the network carries them. A line for each would
    fill the disk, and without room there nobody is served.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # the time at which each has all of its lines again
        self._full_at: dict[str | None, float] = {}
        self._spared: Counter[str | None] = Counter()

    def spares(self, key_id: str | None) -> bool:
        """Returns whether this call gets no line, and is only counted."""
        now = self._clock()
        full_at = max(now, self._full_at.get(key_id, now)) + 1 / PER_SECOND
        if full_at - now > AT_ONCE / PER_SECOND:
            self._spared[key_id] += 1
            return True
        self._full_at[key_id] = full_at
        return False

    def take_spared(self) -> Mapping[str | None, int]:
        """Returns how many calls got no line, and counts them anew from 0."""
        spared, self._spared = self._spared, Counter()
        return spared


class Journal:
    """What all calls leave in the access log and the audit; for the event loop's thread."""

    def __init__(
        self, access: AccessLog, audit: Buffer, recorder: Periodic, now: Callable[[], datetime]
    ) -> None:
        self._access = access
        self._now = now
        self.audit = audit
        self.recorder = recorder
        self._sparing = Sparing()
        self._telling: asyncio.TimerHandle | None = None

    def note(self, access: Access, entry: Entry | None, *, counted: bool = True) -> None:
        """Queues both lines of one call; `entry` is None where the audit has one already.

        Of calls that no limit has `counted` only some get lines. The audit says how many did not.
        """
        if not counted and self._sparing.spares(access.key_id):
            if self._telling is None:
                self._telling = asyncio.get_running_loop().call_later(TELL_AFTER, self._tell_spared)
            return
        self._access.add(access)
        if entry is not None:
            self.audit.note(entry)

    async def flush(self) -> None:
        """Writes what waits in both at once; raises Unwritten where the audit cannot be written."""
        self._access.flush()
        await self.audit.commit()

    async def aclose(self) -> None:
        """Notes the last calls that got no line."""
        if self._telling is not None:
            self._telling.cancel()
            self._tell_spared()

    def _tell_spared(self) -> None:
        self._telling = None
        for key_id, calls in self._sparing.take_spared().items():
            self.audit.note(Mark(entries.SPARED, self._now(), lines=calls, key_id=key_id or ""))


@asynccontextmanager
async def open_audit(
    settings: Settings, store: Store, events: Events, now: Callable[[], datetime]
) -> AsyncIterator[tuple[Buffer, Periodic]]:
    """Yields the buffer of a new chain, which ends with the block, and what records its head.

    The store knows the chain, and its first line is written. Raises StartRefused where the audit
    cannot be written, and StoreError.
    """
    chains, chain, folder = Chains(store), str(uuid4()), audit_folder(settings)
    try:
        state = await store.meta(META)
        place, path = named_place(folder, state), entries.key_file(settings)
        is_new = all(known.place != place for known in await chains.known())
        may_make = settings.audit.key_file is None and is_new
        secrets = entries.secrets_at_start(path, may_make=may_make, state=state)
        writer = Writer(folder, chain, entries.newest_secret(path, secrets[0]), now())
        await chains.begin(chain, place, socket.gethostname(), os.getpid(), now())
        writer.write((), now())
    except OSError as error:
        reason = reason_of(error)
        raise StartRefused(f"the audit in {folder} cannot be written: {reason}") from error
    recorder = _recorder(writer, chains, events, now)
    recorder.start()
    buffer = Buffer(writer, events, now)
    buffer.start()
    try:
        yield buffer, recorder
    finally:
        await buffer.aclose()
        await recorder.aclose()
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(LAST):
                await chains.record(chain, writer.head, now(), ended=True)


def _recorder(
    writer: Writer, chains: Chains, events: Events, now: Callable[[], datetime]
) -> Periodic:
    """Returns the task that tells the store the newest head, beside the writing."""
    recorded = ChainHead()

    async def tell() -> None:
        nonlocal recorded
        if (head := writer.head) != recorded:
            await chains.record(writer.chain, head, now(), ended=False)
            recorded = head
            await asyncio.sleep(PAUSE)

    return Periodic(
        lambda: RECORD_EVERY,
        tell,
        events,
        name="record the audit's head",
        first=tell,
        failed="audit_head_unrecorded",
        back="audit_head_recorded",
    )
