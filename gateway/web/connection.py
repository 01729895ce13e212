"""Reads requests from one connection, and bounds the sizes of heads, times, and unsent answers.

The parser bounds each line of a head and the number of lines, but not the head as a whole, and it
does not tell where a head ended. So it is given one head, or the body that follows it, at a time.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from math import inf
from types import CoroutineType
from typing import Any, Protocol

from aiohttp import hdrs, web
from aiohttp.http_exceptions import BadHttpMessage, HttpProcessingError, LineTooLong
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import RequestHandler, _ErrInfo

from gateway.pipeline.call import Call
from gateway.web.plain import Head, head_of, target_in

# The most bytes of a request's head, with its first line and the empty line behind it.
LARGEST_HEAD = 16 * 1024
HEAD_END = b"\r\n\r\n"
# Blanks in a request line. The parser would take several in a row for one.
BLANKS = 2
_empty_lines = re.compile(rb"[\r\n]*").match
# Requests of a connection that are read while an earlier one is answered.
READ_AHEAD = 2
# The most bytes that are read and thrown away behind a refused request.
LARGEST_REST = 1024 * 1024

# Seconds that a connection may be idle, and that a head may take to arrive.
KEEP_ALIVE = 10.0
# Seconds after which a reader who does not take its answer makes room as if it were idle.
SLOW_READER = 1.0
# Seconds between two looks at what a reader over TLS has taken.
SIP = 0.1
# Bytes that are read at once. The rest waits at the caller's side and takes no memory here.
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
# The most requests of one connection.
MOST_REQUESTS = 10_000
# Where more bytes than these have come while a plain request is answered, no more are read.
MOST_BEHIND = TAKEN_AT_ONCE
# Answers unreadable requests and faults; called with the error and the status of aiohttp's answer.
Refuse = Callable[[BaseException | None, int], web.StreamResponse]


class PlainAnswer(Protocol):
    """A whole answer; `closes` says whether it is the last of its connection."""

    closes: bool

    def encoded(self, more: str = "") -> bytes:
        """Returns the bytes to send, with `more` lines in their head."""


Plain = PlainAnswer | Coroutine[Any, Any, PlainAnswer]
# Answers plain requests, called with the head and the target; None for what the parser is to read.
TakePlain = Callable[["Connection", Head, str], Plain | None]


class MoreBlanks(BadHttpMessage):
    """A request line has more than one blank between its parts."""


class HeadScanner:
    """Finds the end of one head after another; `size` counts the bytes of the present one.

    Of a head in pieces it keeps no more than the last three bytes: the parser holds the others.
    """

    def __init__(self) -> None:
        self.size = self._blanks = 0
        self._has_begun = self._has_line = False
        self._last = b""

    def take(self, data: bytes, at: int) -> tuple[int, bool]:
        """Reads on at `at`; returns where in `data` it stopped, and whether the head ends there.

        Raises LineTooLong for a head that is too large, MoreBlanks for a malformed first line.
        Empty lines before the first line are ignored, as RFC 9112 2.2 asks, but their bytes count.
        """
        start = at
        if not self._has_begun:
            start = _empty_lines(data, at).end()  # type: ignore[union-attr]
            self._has_begun = start < len(data)
        end, is_end = self._end(data, start)
        self.size += end - at
        if self.size > LARGEST_HEAD:
            raise LineTooLong(b"head", LARGEST_HEAD)
        if not self._has_line:
            line_end = data.find(b"\n", start, end)
            self._has_line = line_end >= 0
            self._blanks += data.count(b" ", start, line_end if self._has_line else end)
            if self._blanks > BLANKS:
                raise MoreBlanks("a request line has one blank between its parts")
        if is_end:
            HeadScanner.__init__(self)
        else:
            self._last = (self._last + data[max(start, end - 3) : end])[-3:]
        return end, is_end

    def _end(self, data: bytes, start: int) -> tuple[int, bool]:
        """Returns where the head ends in `data`, or its length; the end may come in pieces."""
        before = len(self._last)
        if before and (split := (self._last + data[start : start + 3]).find(HEAD_END)) >= 0:
            return start + split + len(HEAD_END) - before, True
        position = data.find(HEAD_END, start)
        return (len(data), False) if position < 0 else (position + len(HEAD_END), True)


@dataclass(eq=False)
class WriteBufferLimit:
    """Bounds the answers of one process that wait for their readers, `most` bytes in all.

    Beyond that it cuts off the reader with the most unsent bytes. A reader with a valid key is cut
    off only where such readers together hold more than half. A reader who has not taken its whole
    answer after `patience` seconds is cut off too. `on_refusal` is called for each.
    """

    most: int = 16 * 1024 * 1024
    patience: float = 8.0
    on_refusal: Callable[[str], None] = lambda reason: None

    def __post_init__(self) -> None:
        self.bytes = 0
        self._waiting: dict[Connection, int] = {}

    async def sent(self, reader: "Connection") -> None:
        """Waits until the reader has taken all; raises ConnectionError where it is cut off."""
        size = reader.unsent_bytes()
        self._waiting[reader] = size
        self.bytes += size
        if self.bytes > self.most:
            # the readers have taken some of it meanwhile
            self._waiting = {waiting: waiting.unsent_bytes() for waiting in self._waiting}
            self.bytes = sum(self._waiting.values())
        while self.bytes > self.most:
            # the readers with a key, or those without one: the group that holds more
            known = {waiting for waiting in self._waiting if waiting.is_known}
            is_known = 2 * sum(self._waiting[waiting] for waiting in known) > self.bytes
            among = (waiting for waiting in self._waiting if (waiting in known) == is_known)
            greediest = max(among, key=self._waiting.__getitem__)
            self._forget(greediest)
            self._cut_off(greediest)
        try:
            async with asyncio.timeout(self.patience):
                await reader.drained()
        except TimeoutError:
            self._cut_off(reader)
            raise ConnectionResetError("the reader took too long") from None
        finally:
            self._forget(reader)

    def _cut_off(self, reader: "Connection") -> None:
        self.on_refusal("reader")
        reader.cut_off()

    def _forget(self, reader: "Connection") -> None:
        self.bytes -= self._waiting.pop(reader, 0)


class Connection(RequestHandler):
    """A connection, whose parse errors are answered like every other error.

    A head that is larger than LARGEST_HEAD, or whose first line is malformed, is refused after the
    requests before it are answered. `address` is that of the other end, and `is_proxy` says
    whether it may name the callers it speaks for. `on_end` is called when the connection is lost.

    A plain request is answered by `take` without the parser, where that takes it and nothing else
    goes on. All that a request is bounded by holds for it too.
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
        take: TakePlain | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(server, loop=loop, **LIMITS)
        self._max_msg_queue_size, self._msg_queue_resume_size = READ_AHEAD, READ_AHEAD // 2
        self._head = HeadScanner()
        # bytes of the body that are still to come; infinite where its length is unknown
        self._body: float = 0
        self._payload = EMPTY_PAYLOAD
        # what the parser has not been given yet, from `_at` on; once refused, `_at` counts the rest
        self._unread, self._at = b"", 0
        # an unreadable request was refused, so that nothing behind it is read as a request
        self.is_refused = False
        # a head comes next
        self._is_between = True
        # nothing has come yet
        self.is_silent = True
        self._refuse = refuse
        self._on_end = on_end
        self._line: asyncio.Transport | None = None
        # what TLS writes to, which has a buffer of its own
        self.beneath: asyncio.WriteTransport | None = None
        self._arrived = loop.time()
        self._write_limit = write_limit
        # the loop's time since which an answer waits for its reader
        self._unsent_since: float | None = None
        # the present call, and whether the call before it had a valid key
        self.call: Call | None = None
        self.had_key = False
        # answers that were written whole
        self.answers = 0
        self.address, self.is_proxy = address, is_proxy
        self._take = take
        # the head that was read last, which most callers send again and again
        self._last_head: Head | None = None
        # the task of the plain request that is being answered, and what came behind that
        self._plain: asyncio.Task[None] | None = None
        self._behind = b""
        # the task that lets it in, until it has a transport
        self.welcome: asyncio.Task[None] | None = None

    @property
    def is_known(self) -> bool:
        """Whether it has a valid key, or is a proxy, which speaks for many."""
        if self.is_proxy:
            return True
        return self.had_key if self.call is None else self.call.key is not None

    @property
    def waits_for(self) -> str | None:
        """The key's id where the call waits for room or its body, "" without a key; else None."""
        if self.call is None or self.call.waits_since is None:
            return None
        return "" if self.call.key is None else self.call.key.id

    @property
    def has_more(self) -> bool:
        """Whether further requests have come that wait for the answer to this one."""
        return bool(self._messages or self._behind)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.welcome = None
        line: Any = transport
        self._line = line
        # a writer waits until all is taken, not most of it; with high=0 TLS would wait forever
        line.set_write_buffer_limits(high=1, low=0)
        if self.beneath is not None:
            line.set_read_buffer_limits(TAKEN_AT_ONCE)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self.is_silent = False
        if self._plain is not None:
            self._wait_behind(data)
        elif not self._is_between or self._buffer_paused:
            self._read(data)
        elif self._answer_plain(data):
            pass
        elif (
            4 < len(data) <= LARGEST_HEAD
            and data.find(HEAD_END) == len(data) - 4
            and data.count(b" ", 0, data.find(b"\r")) == BLANKS
        ):
            # one head and nothing else
            super().data_received(data)
            if self._messages:
                self._check_head()
        else:
            self._read(data)

    def _answer_plain(self, data: bytes) -> bool:
        """Answers a plain request; returns False, with nothing done, for everything else."""
        waiter, head, line = self._waiter, self._last_head, target_in(data)
        if line is None or self._take is None or self._request_count >= MOST_REQUESTS - 1:
            return False
        # aiohttp waits for a request, or is about to do so for the first
        waits = not self._request_count if waiter is None else not waiter.done()
        if not waits or self._close or self._force_close:
            return False
        target, end = line
        block = data[end:]
        if head is None or head.block != block:
            head = self._last_head = head_of(block)
        answer: Any = None if head is None else self._take(self, head, target)
        if answer is None:
            return False
        self._request_count += 1
        if isinstance(answer, CoroutineType):
            self._plain = self._loop.create_task(self._finish_plain(answer))
        elif self._write_plain(answer):
            self._plain = self._loop.create_task(self._finish_plain(self.sent(), answer.closes))
        else:
            self._end_plain(closes=answer.closes)
        return True

    def _write_plain(self, answer: PlainAnswer) -> bool:
        """Writes an answer; returns whether its reader has not taken all of it yet."""
        if self.transport is not None:
            self.transport.write(answer.encoded("Connection: close\r\n" if answer.closes else ""))
        return self.unsent_bytes() > 0

    async def _finish_plain(
        self, making: Coroutine[Any, Any, PlainAnswer | None], closes: bool = False
    ) -> None:
        """Sends the answer that is made, if any, and waits until its reader has taken all."""
        is_whole = False
        try:
            answer = await making
            if answer is not None:
                closes = answer.closes
                if self._write_plain(answer):
                    await self.sent()
            is_whole = True
        except ConnectionError:  # the reader is gone
            pass
        finally:
            self._plain = None
            self._end_plain(closes=closes or not is_whole)

    def _end_plain(self, *, closes: bool) -> None:
        """Goes on with what came behind a plain request, or ends the connection."""
        if closes or self._force_close:
            self._behind = b""
            self.force_close()
            return
        self.answers += 1
        self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        if self._behind:
            behind, self._behind = self._behind, b""
            if self.transport is None or self.transport.is_closing():  # it was cut off just now
                return
            if len(behind) > MOST_BEHIND:
                self.transport.resume_reading()
            self.data_received(behind)

    def _wait_behind(self, data: bytes) -> None:
        """Keeps what comes while a plain request is answered; stops reading beyond a bound."""
        was_full = len(self._behind) > MOST_BEHIND
        self._behind += data
        if len(self._behind) > MOST_BEHIND and not was_full and self.transport is not None:
            self.transport.pause_reading()

    def _process_keepalive(self) -> None:
        if self._plain is not None:
            self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        super()._process_keepalive()

    async def shutdown(self, timeout: float | None = 15.0) -> None:  # noqa: ASYNC109 - aiohttp's
        """Lets a plain request be answered within that time, then ends as aiohttp does."""
        if self._plain is not None:
            plain = self._plain
            await asyncio.wait([plain], timeout=timeout)
            plain.cancel()
        await super().shutdown(timeout)

    def _read(self, data: bytes) -> None:
        """Gives the parser one head or body after another, as far as it takes them."""
        if not data:  # the parser resumes with what it kept back
            super().data_received(data)
        if self.is_refused:
            self._at += len(data)
            if self._at > LARGEST_REST:
                self.force_close()
            return
        self._unread, self._at = self._unread[self._at :] + data, 0
        # a parser that is full would keep the rest back itself
        while (
            self._at < len(self._unread)
            and len(self._messages) < self._max_msg_queue_size
            and not self._reading_paused
        ):
            self._read_piece()
        if self._at == len(self._unread):
            self._unread, self._at = b"", 0
        within = self._body or self._head.size or self._unread or self.is_refused
        self._is_between = not within and not self._reading_paused

    def _read_piece(self) -> None:
        start = self._at
        if self._body:
            self._at = int(min(len(self._unread), start + self._body))
            self._body -= self._at - start
            super().data_received(self._unread[start : self._at])
            if self._messages and isinstance(self._messages[-1][0], _ErrInfo):
                self._end_with(self._messages.pop()[0])
                # the handler that waits for the body gets the error
                if not self._payload.is_eof():
                    self._payload.set_exception(web.RequestPayloadError("the body cannot be read"))
            return
        try:
            self._at, is_head = self._head.take(self._unread, start)
        except HttpProcessingError as error:
            self._end_with(_ErrInfo(400, error, ""))
            return
        super().data_received(self._unread[start : self._at])
        if self._messages and (is_head or isinstance(self._messages[-1][0], _ErrInfo)):
            self._check_head()

    def _check_head(self) -> None:
        message, payload = self._messages[-1]
        if isinstance(message, _ErrInfo):
            self._end_with(self._messages.pop()[0])
        elif payload is not EMPTY_PAYLOAD:
            self._payload, self._is_between = payload, False
            is_endless = message.chunked or message.upgrade or message.method == hdrs.METH_CONNECT
            # a body of unknown length takes all that comes: the connection ends with the answer
            self._body = inf if is_endless else int(message.headers[hdrs.CONTENT_LENGTH])

    def _end_with(self, refusal: Any) -> None:
        """Queues the refusal behind the earlier requests, as the last answer of the connection.

        What follows is read and thrown away for a moment: to close with unread data would be a
        reset, which takes the answer from a caller who still sends.
        """
        self.is_refused, self._is_between = True, False
        self._unread, self._at = b"", 0
        self._rest = StreamReader(self, LARGEST_HEAD, loop=self._loop)
        self._messages.append((refusal, self._rest))
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._line = self._last_head = None
        if self.is_refused:
            self._rest.feed_eof()
        if self.call is not None:
            self.call.gone = True
        super().connection_lost(exc)
        self._on_end(self)

    def unsent_bytes(self) -> int:
        """Returns how many bytes of what was written the reader has not taken yet."""
        if self._line is None:
            return 0
        size = self._line.get_write_buffer_size()
        return size if self.beneath is None else size + self.beneath.get_write_buffer_size()

    async def sent(self) -> None:
        """Waits until the reader has taken what was written; cuts off one who takes too long."""
        self._unsent_since = asyncio.get_running_loop().time()
        try:
            await self._write_limit.sent(self)
        finally:
            self._unsent_since = None

    async def drained(self) -> None:
        """Waits for that without a limit; raises ConnectionError where the connection is lost."""
        await super()._drain_helper()
        while self.unsent_bytes():  # noqa: ASYNC110 - the transport under TLS notifies nobody
            await asyncio.sleep(SIP)
        if self._line is None:
            raise ConnectionResetError("the caller is gone")

    # aiohttp calls this when it writes an answer itself
    _drain_helper = sent

    def idle_since(self) -> float | None:
        """Returns the loop's time since which it is idle, or its call waits for room or its body.

        Idle is also a connection whose reader does not take the answer. None for all others.
        """
        if self._line is None:
            return self._arrived if self.welcome is not None else None
        if (since := self._unsent_since) is not None:
            return since if asyncio.get_running_loop().time() - since >= SLOW_READER else None
        if self.call is not None and self.call.waits_since is not None:
            return self.call.waits_since
        if self._plain is not None:
            return None
        waits = self._waiter is not None and not self._waiter.done()
        # what comes after the answer to the last request is skipped: such a connection is idle
        skips = self.answers == self._request_count and not self._request_in_progress
        if not waits and not skips:
            return None
        return self._next_keepalive_close_time - self._keepalive_timeout

    def cut_off(self) -> None:
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
        """Logs nothing: the message quotes what was sent, secrets included."""


class BoundedReader(asyncio.BufferedProtocol):
    """Reads for a connection at most TAKEN_AT_ONCE bytes at once, on any event loop.

    The event loops would read up to 256 KiB for a protocol without a buffer. The connections of one
    event loop share `buffer`: it is in use only while one of them is given what came.
    """

    def __init__(self, connection: Connection, buffer: memoryview) -> None:
        self._buffer = buffer
        self._data_received = connection.data_received
        # the connection is told all else directly
        self.connection_made = connection.connection_made  # type: ignore[method-assign]
        self.connection_lost = connection.connection_lost  # type: ignore[method-assign]
        self.pause_writing = connection.pause_writing  # type: ignore[method-assign]
        self.resume_writing = connection.resume_writing  # type: ignore[method-assign]
        self.eof_received = connection.eof_received  # type: ignore[method-assign]

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._data_received(bytes(self._buffer[:nbytes]))
