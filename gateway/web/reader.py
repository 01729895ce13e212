"""Reads the requests of one connection so that each head is bounded, however it arrives.

The parser bounds each line and their number, and tells neither of a head as a whole; nor does it
tell where in what it was given a head ended. So it is given one head, or the body that follows it,
at a time.
"""

from math import inf
from typing import Any

from aiohttp import hdrs, web
from aiohttp.http_exceptions import BadHttpMessage, HttpProcessingError, LineTooLong
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import RequestHandler, _ErrInfo

# Bytes that the head of a request may have, its first line and its last, empty one included.
LARGEST_HEAD = 16 * 1024
HEAD_END = b"\r\n\r\n"
# What stands between method, target and version; the parser takes several in a row for one.
BLANKS = 2
# Requests of a connection that are read while another is answered.
READ_AHEAD = 2
# Bytes that are thrown away behind a request that was refused.
LARGEST_REST = 1024 * 1024


class MoreBlanks(BadHttpMessage):
    """More than one blank between the parts of a request line."""


class HeadScanner:
    """Finds the end of one head after the other; `head` is what has come of the present one."""

    def __init__(self) -> None:
        self.head = b""

    def take(self, data: bytes, at: int) -> tuple[int, bool]:
        """Where the head ends in data that belongs to it from `at` on, and whether that is its end.

        LineTooLong where it is too large, MoreBlanks where its first line is malformed. Empty lines
        before the first line are ignored, as RFC 9112 2.2 asks, but count.
        """
        before = len(self.head)
        head = self.head + data[at : at + LARGEST_HEAD + 1]
        start = len(head) - len(head.lstrip(b"\r\n"))
        # the end may come in pieces too
        found = head.find(HEAD_END, max(start, before - len(HEAD_END) + 1))
        end = len(head) if found < 0 else found + len(HEAD_END)
        if end > LARGEST_HEAD:
            raise LineTooLong(b"head", LARGEST_HEAD)
        line_end = head.find(b"\n", start, end)
        if head.count(b" ", start, end if line_end < 0 else line_end) > BLANKS:
            raise MoreBlanks("a request line has one blank between its parts")
        self.head = head if found < 0 else b""
        return at + end - before, found >= 0


class BoundedReader(RequestHandler):
    """aiohttp's connection, with heads of at most LARGEST_HEAD bytes.

    A head that is larger, or whose first line is malformed, is refused after the requests that came
    before it are answered.
    """

    def __init__(self, manager: web.Server, **limits: Any) -> None:
        super().__init__(manager, **limits)
        self._max_msg_queue_size, self._msg_queue_resume_size = READ_AHEAD, READ_AHEAD // 2
        self._head = HeadScanner()
        # bytes of a body that are still to come; of one that nobody can count, without an end
        self._body: float = 0
        self._payload = EMPTY_PAYLOAD
        # what the parser has not been given yet, from `_at` on; later, how much was thrown away
        self._unread, self._at = b"", 0
        # a request was refused that could not be read: nothing that follows is one
        self.is_refused = False
        # what comes next is a head
        self._is_between = True
        # nothing has come yet
        self.is_silent = True

    def data_received(self, data: bytes) -> None:
        self.is_silent = False
        if (
            self._is_between
            and not self._buffer_paused
            and 4 < len(data) <= LARGEST_HEAD
            and data.find(HEAD_END) == len(data) - 4
            and data.count(b" ", 0, data.find(b"\r")) == BLANKS
        ):
            # one head and nothing else, as almost always
            super().data_received(data)
            if self._messages:
                self._check_head()
        else:
            self._read(data)

    def _read(self, data: bytes) -> None:
        """Give the parser head by head and body by body, as far as it takes them."""
        if not data:  # the parser may go on, which kept something back
            super().data_received(data)
        if self.is_refused:
            self._at += len(data)
            if self._at > LARGEST_REST:
                self.force_close()
            return
        self._unread, self._at = self._unread[self._at :] + data, 0
        # where the parser would keep something back, it is not given more
        while (
            self._at < len(self._unread)
            and len(self._messages) < self._max_msg_queue_size
            and not self._reading_paused
        ):
            self._read_piece()
        if self._at == len(self._unread):
            self._unread, self._at = b"", 0
        within = self._body or self._head.head or self._unread or self.is_refused
        self._is_between = not within and not self._reading_paused

    def _read_piece(self) -> None:
        start = self._at
        if self._body:
            self._at = int(min(len(self._unread), start + self._body))
            self._body -= self._at - start
            super().data_received(self._unread[start : self._at])
            if self._messages and isinstance(self._messages[-1][0], _ErrInfo):
                self._end_with(self._messages.pop()[0])
                # who waits for the body hears that the parser cannot read it
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
        """A body may follow; what could not be read is the last."""
        message, payload = self._messages[-1]
        if isinstance(message, _ErrInfo):
            self._end_with(self._messages.pop()[0])
        elif payload is not EMPTY_PAYLOAD:
            self._payload, self._is_between = payload, False
            is_endless = message.chunked or message.upgrade or message.method == hdrs.METH_CONNECT
            # where nobody knows beforehand how much comes, the connection ends with the answer
            self._body = inf if is_endless else int(message.headers[hdrs.CONTENT_LENGTH])

    def _end_with(self, refusal: Any) -> None:
        """It is answered after the requests that came before, and is the last.

        What follows is read and thrown away for a moment: a close with something unread would be a
        reset, which takes the answer from a caller who still sends.
        """
        self.is_refused, self._is_between = True, False
        self._unread, self._at = b"", 0
        self._rest = StreamReader(self, LARGEST_HEAD, loop=self._loop)
        self._messages.append((refusal, self._rest))
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self.is_refused:
            self._rest.feed_eof()
        super().connection_lost(exc)
