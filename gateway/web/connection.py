"""One connection: how long it may take for anything, and how much may wait in it."""

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web

from gateway.pipeline.call import Call
from gateway.web.reader import BoundedReader

# A reader who takes longer than this for what is left of an answer is cut off.
READER_PATIENCE = 8.0
# Bytes that answers of one process may take which wait for their readers.
MOST_UNSENT = 16 * 1024 * 1024

# Why a connection was closed.
READER = "reader"


# The keep-alive time is also the time that a head may take to arrive.
KEEP_ALIVE = 10.0
# Seconds after which somebody who does not take an answer makes room like one who is idle.
SLOW_READER = 1.0
# Seconds between two looks at what a reader of TLS has taken.
SIP = 0.1
# Bytes that are taken of a line at once: the rest waits with the caller, and takes no memory here.
TAKEN_AT_ONCE = 16 * 1024
LIMITS: dict[str, Any] = {
    "keepalive_timeout": KEEP_ALIVE,
    "lingering_time": 2.0,
    "max_line_size": 4096,
    "max_field_size": 4096,
    "max_headers": 64,
    "read_bufsize": 16 * 1024,
    "auto_decompress": False,
    "access_log": None,
}
# Answers what could not be read, and faults, with the status that aiohttp would have given.
Refuse = Callable[[BaseException | None, int], web.StreamResponse]


class WriteBufferLimit:
    """The answers of one process that wait for their readers; too many cut off who holds most.

    That is one with a key that counts only where such readers together hold more than the others.
    `on_refusal` hears of each that was cut off.
    """

    def __init__(
        self,
        most: int = MOST_UNSENT,
        patience: float = READER_PATIENCE,
        on_refusal: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self.bytes = 0
        self.patience = patience
        self._most = most
        self._on_refusal = on_refusal
        self._waiting: dict[Connection, int] = {}

    async def sent(self, reader: "Connection") -> None:
        """Wait until all has been taken, or the patience ends; ConnectionError where it is cut."""
        self._note(reader)
        try:
            async with asyncio.timeout(self.patience):
                await reader.drained()
        except TimeoutError:
            self._cut_off(reader)
        finally:
            self._forget(reader)

    def _note(self, reader: "Connection") -> None:
        size = reader.unsent_bytes()
        self._waiting[reader] = size
        self.bytes += size
        if self.bytes > self._most:
            # some of what waited has been taken meanwhile
            self._waiting = {waiting: waiting.unsent_bytes() for waiting in self._waiting}
            self.bytes = sum(self._waiting.values())
        while self.bytes > self._most:
            # of those with a key, or of those without, who together hold more
            known = {reader for reader in self._waiting if reader.is_known}
            is_known = 2 * sum(self._waiting[reader] for reader in known) > self.bytes
            among = (reader for reader in self._waiting if (reader in known) == is_known)
            greediest = max(among, key=self._waiting.__getitem__)
            self._forget(greediest)
            self._cut_off(greediest)

    def _cut_off(self, reader: "Connection") -> None:
        self._on_refusal(READER)
        reader.cut_off()

    def _forget(self, reader: "Connection") -> None:
        self.bytes -= self._waiting.pop(reader, 0)


class Connection(BoundedReader):
    """One connection; its parse errors are answered like every other error.

    `address` is the other end's, `is_proxy` whether that end may say whom it speaks for. `on_end`
    is called when it is gone.
    """

    def __init__(
        self,
        server: web.Server,
        refuse: Refuse,
        write_limit: WriteBufferLimit,
        on_end: Callable[["Connection"], None],
        address: str,
        *,
        is_proxy: bool = False,
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(server, loop=loop, **LIMITS)
        self._refuse = refuse
        self._on_end = on_end
        self._line: asyncio.Transport | None = None
        self._beneath: asyncio.WriteTransport | None = None
        self._arrived = loop.time()
        self._write_limit = write_limit
        # since when an answer waits for its reader
        self._unsent_since: float | None = None
        # what is answered at present, and whether the call before had a key that counts
        self.call: Call | None = None
        self.had_key = False
        # so many were written whole
        self.answers = 0
        self.address, self.is_proxy = address, is_proxy
        # lets it in, from when that has begun until it has a line
        self.welcome: asyncio.Task[None] | None = None

    @property
    def is_known(self) -> bool:
        """Whether it speaks for somebody with a key that counts, or for many."""
        if self.is_proxy:
            return True
        return self.had_key if self.call is None else self.call.key is not None

    @property
    def waits_for(self) -> str | None:
        """The id of the key whose call waits for room or for its body; "" without one, or None."""
        if self.call is None or self.call.waits_since is None:
            return None
        return "" if self.call.key is None else self.call.key.id

    @property
    def has_more(self) -> bool:
        """Whether further requests have come, which wait for the answer to this one."""
        return bool(self._messages)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.welcome = None
        line: Any = transport
        self._line = line
        # whoever writes waits until all has been taken, not most of it; TLS reads 0 as always
        line.set_write_buffer_limits(high=1, low=0)
        # beneath TLS lies a line with a buffer of its own
        tls = getattr(transport, "_ssl_protocol", None)
        self._beneath = getattr(tls, "_transport", None)
        # TAKEN_AT_ONCE of a line at once, not the 256 KiB that asyncio would
        if tls is None:
            line.max_size = TAKEN_AT_ONCE
        else:
            # asyncio makes the buffer anew where it is too small
            tls.max_size, tls._ssl_buffer = TAKEN_AT_ONCE, b""  # noqa: SLF001 - asyncio's own
            line.set_read_buffer_limits(TAKEN_AT_ONCE)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._line = None
        if self.call is not None:
            self.call.gone = True
        super().connection_lost(exc)
        self._on_end(self)

    def unsent_bytes(self) -> int:
        """How much of what was written the reader has not taken yet."""
        if self._line is None:
            return 0
        size = self._line.get_write_buffer_size()
        return size if self._beneath is None else size + self._beneath.get_write_buffer_size()

    async def sent(self) -> None:
        """Wait until the reader has taken what was written; who takes too long is cut off."""
        self._unsent_since = asyncio.get_running_loop().time()
        try:
            await self._write_limit.sent(self)
        finally:
            self._unsent_since = None

    async def drained(self) -> None:
        """Wait for that, however long it takes; ConnectionError where the line is cut."""
        await super()._drain_helper()
        while self.unsent_bytes():  # noqa: ASYNC110 - that line beneath tells nobody
            await asyncio.sleep(SIP)
        if self._line is None:
            raise ConnectionResetError("the caller is gone")

    # what aiohttp waits for when it writes by itself
    _drain_helper = sent

    def idle_since(self) -> float | None:
        """The loop's time since which no request is whole, or no answer taken; else None.

        So long does a call wait, too, for room or for its body.
        """
        if self._line is None:
            return self._arrived if self.welcome is not None else None
        if (since := self._unsent_since) is not None:
            waited = asyncio.get_running_loop().time() - since
            return since if waited >= SLOW_READER else None
        if self.call is not None and self.call.waits_since is not None:
            return self.call.waits_since
        waits = self._waiter is not None and not self._waiter.done()
        # what comes after the answer to the last request is skipped, and of no use to anybody
        skips = self.answers == self._request_count and not self._request_in_progress
        if not waits and not skips:
            return None
        return self._next_keepalive_close_time - self._keepalive_timeout

    def cut_off(self) -> None:
        """Close at once."""
        if self._line is not None:
            self._line.abort()
        elif self.welcome is not None:
            self.welcome.cancel()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        return self._refuse(exc, status)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Nothing: the message quotes what was sent, secrets included."""
