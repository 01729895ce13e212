"""The head of a request while it arrives: how long it is, and whether its first line is sound.

aiohttp's parser bounds each line and their number, and tells neither of a head as a whole.
"""

import re

from aiohttp.http_exceptions import BadHttpMessage, LineTooLong

# Bytes that the head of a request may have, its first line and its last, empty one included.
LARGEST_HEAD = 16 * 1024
HEAD_END = b"\r\n\r\n"
# What stands between method, target and version; the parser takes several in a row for one.
BLANKS = 2
_empty_lines = re.compile(rb"[\r\n]*").match


class MoreBlanks(BadHttpMessage):
    """More than one blank between the parts of a request line."""


class Head:
    """Counts the bytes of one head after the other."""

    __slots__ = ("_blanks", "_has_begun", "_in_first_line", "_last", "size")

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.size = 0
        self._has_begun = False
        self._blanks, self._in_first_line = 0, True
        # of what came before: the end may come in pieces too
        self._last = b""

    def take(self, data: bytes, at: int) -> tuple[int, bool]:
        """Where the head ends in data that belongs to it from `at` on, and whether that is its end.

        LineTooLong where it is too large, MoreBlanks where its first line is malformed. Empty lines
        before the first line are ignored, as RFC 9112 2.2 asks, but count.
        """
        start = at
        if not self._has_begun:
            start = _empty_lines(data, at).end()  # type: ignore[union-attr]
            self._has_begun = start < len(data)
        end, is_end = self._end(data, start)
        self.size += end - at
        if self.size > LARGEST_HEAD:
            raise LineTooLong(b"head", LARGEST_HEAD)
        self._check_first_line(data, start, end)
        if is_end:
            self._begin()
        else:
            self._last = (self._last + data[max(start, end - 3) : end])[-3:]
        return end, is_end

    def _end(self, data: bytes, start: int) -> tuple[int, bool]:
        before = len(self._last)
        if before and (found := (self._last + data[start : start + 3]).find(HEAD_END)) >= 0:
            return start + found + len(HEAD_END) - before, True
        found = data.find(HEAD_END, start)
        return (len(data), False) if found < 0 else (found + len(HEAD_END), True)

    def _check_first_line(self, data: bytes, start: int, end: int) -> None:
        if not self._in_first_line:
            return
        line_end = data.find(b"\n", start, end)
        self._in_first_line = line_end < 0
        self._blanks += data.count(b" ", start, end if line_end < 0 else line_end)
        if self._blanks > BLANKS:
            raise MoreBlanks("a request line has one blank between its parts")
