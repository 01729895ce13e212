"""How a backend parts a long list, and where in it we are: ways to go through it, in batches.

A place is a short text: the number or cursor of a row or page, and a mark of the last row that was
used. Going on, what was used is looked for again, so that rows which moved are neither lost nor
read twice.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from adapters.base import BackendNonsense
from adapters.convert import Unreadable, whole
from adapters.rest.backend import Answer
from adapters.rest.mapping import Paging
from adapters.rest.paths import path

# Rows of a list that one call looks at.
MOST_ROWS = 5_000
# Pages of a list without a new row in them, after which it has no end.
MOST_BARREN = 3
# The same where cursors lead on: a backend that sifts its rows page by page gives empty ones.
# So many in a row are enough for one call, and so many over several calls have no end.
MOST_EMPTY = 10
MOST_EMPTY_IN_ALL = 100

Params = tuple[tuple[str, Any], ...]
# Asks for a page: by further parameters, or by a link instead.
Ask = Callable[[Params, str | None], Awaitable[Answer]]
_NEXT = re.compile(r'<([^<>]*)>((?:\s*;\s*[\w*-]+=(?:"[^"]*"|[^\s;,"]*))*)').finditer
_REL_NEXT = re.compile(r';\s*rel="?(?:[^"]*\s)?next(?:\s[^"]*)?"?(?:\s*;|$)').search


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows that are new, the place behind each, and whether it is known that none follow.

    `end` is the place behind all of it, where one can go on from a page without rows.
    """

    rows: Sequence[Any]
    places: Sequence[str]
    last: bool
    end: str | None = None


class NoArray(BackendNonsense):
    """Where the list should be is something else."""


class Endless(BackendNonsense):
    """The list does not come to an end."""


class Barren(Endless):
    """It may yet: so many pages without rows are enough for one call."""


class Pager(ABC):
    """Goes through one list; `items` finds the rows in an answer, `mark` says which row it is."""

    def __init__(self, items: Callable[[Any], Any], mark: Callable[[Any], Any], label: str) -> None:
        self._items = items
        self._mark = mark
        self._label = label

    @abstractmethod
    def batches(self, ask: Ask, after: str | None, wanted: int) -> AsyncGenerator[Batch, None]:
        """The rows behind the place `after`; `wanted` is how many are enough for the moment."""

    def rows(self, answer: Answer) -> list[Any]:
        """The rows in an answer; BackendNonsense where there is no array."""
        try:
            found = self._items(answer.data)
        except Unreadable:
            found = None
        if not isinstance(found, list):
            raise NoArray(f"{self._label}: there is no array where the list should be")
        return found

    def marks(self, rows: Sequence[Any]) -> list[str]:
        """A short text for each row, by its key."""
        return [_digest(self._mark(row)) for row in rows]

    def _endless(self, name: str) -> Endless:
        return Endless(f"{self._label}: the list does not end; does the backend know {name}?")


def _place(*parts: Any) -> str:
    return json.dumps(parts, separators=(",", ":"))


def _digest(key: Any) -> str:
    return blake2b(json.dumps(key).encode(), digest_size=9).hexdigest()


def _behind(marks: Sequence[str], mark: str) -> int | None:
    """The number of the first row behind the marked one; None where it is not there."""
    return marks.index(mark) + 1 if mark in marks else None


class Whole(Pager):
    """Everything in one answer."""

    async def batches(
        self, ask: Ask, after: str | None, wanted: int
    ) -> AsyncGenerator[Batch, None]:
        rows = self.rows(await ask((), None))
        marks = self.marks(rows)
        at, mark = json.loads(after) if after is not None else (-1, "")
        begin = _behind(marks, mark)
        begin = max(at, 0) if begin is None else begin
        places = [_place(number, marks[number]) for number in range(begin, len(rows))]
        yield Batch(rows=rows[begin:], places=places, last=True)


class Offsets(Pager):
    """By the number of the first row: each page begins with the row that was used last."""

    def __init__(self, paging: Paging, *rest: Any) -> None:
        super().__init__(*rest)
        self._offset, self._limit = paging.offset or "", paging.limit
        self._most = paging.most
        self._total = path(paging.total) if paging.total else None

    async def batches(
        self, ask: Ask, after: str | None, wanted: int
    ) -> AsyncGenerator[Batch, None]:
        at, mark = json.loads(after) if after is not None else (-1, "")
        barren = 0
        while barren < MOST_BARREN:
            size = max(2, min(self._most, wanted + 2))
            begin, rows, marks, fresh, answer = await self._around(ask, at, mark, size)
            until = begin + len(rows)
            last = _is_last(self._total, answer, until)
            if rows[fresh:]:
                barren = 0
                places = [_place(begin + each, marks[each]) for each in range(fresh, len(rows))]
                yield Batch(rows=rows[fresh:], places=places, last=last)
            elif until - 1 <= at:  # nothing behind the row that was used last
                return
            else:
                barren += 1
            if last or not rows:
                return
            at, mark = until - 1, marks[-1]
        raise self._endless(self._offset)

    async def _around(
        self, ask: Ask, at: int, mark: str, size: int
    ) -> tuple[int, list[Any], list[str], int, Answer]:
        """A page from the row at `at` on, and the number in it of the first row that is new."""
        begin = max(at, 0)
        rows, marks, answer = await self._page(ask, begin, size)
        if at < 0:
            return begin, rows, marks, 0, answer
        fresh = _behind(marks, mark)
        if fresh is None and size < self._most:  # further away, since rows were added
            rows, marks, answer = await self._page(ask, begin, self._most)
            fresh = _behind(marks, mark)
        if fresh is None and begin:  # or nearer, since some were removed
            back = max(0, begin - self._most + 1)
            found, their_marks, their_answer = await self._page(ask, back, self._most)
            behind = _behind(their_marks, mark)
            if behind is not None:
                return back, found, their_marks, behind, their_answer
        # the row itself was removed: the next one has its number
        return begin, rows, marks, fresh or 0, answer

    async def _page(self, ask: Ask, begin: int, size: int) -> tuple[list[Any], list[str], Answer]:
        limit = ((self._limit, size),) if self._limit else ()
        answer = await ask(((self._offset, begin), *limit), None)
        rows = self.rows(answer)
        return rows, self.marks(rows), answer


class Numbers(Pager):
    """By the page's number; every page has the same size."""

    def __init__(self, paging: Paging, *rest: Any) -> None:
        super().__init__(*rest)
        self._page, self._size, self._first = paging.page or "", paging.size, paging.first
        self._most = paging.most
        self._total = path(paging.total) if paging.total else None

    async def batches(
        self, ask: Ask, after: str | None, wanted: int
    ) -> AsyncGenerator[Batch, None]:
        number, index, mark = json.loads(after) if after is not None else (0, -1, "")
        barren = 0
        while barren < MOST_BARREN:
            size = ((self._size, self._most),) if self._size else ()
            answer = await ask(((self._page, number + self._first), *size), None)
            rows = self.rows(answer)
            marks = self.marks(rows)
            if not rows:
                return
            fresh = _behind(marks, mark)
            if fresh is None:
                fresh = await self._moved(ask, number, index, mark)
            last = _is_last(self._total, answer, number * self._most + len(rows))
            each = range(min(fresh, len(rows)), len(rows))
            places = [_place(number, row, marks[row]) for row in each]
            yield Batch(rows=[rows[row] for row in each], places=places, last=last)
            if last:
                return
            barren = 0 if places else barren + 1
            number, index, mark = number + 1, -1, marks[-1]
        raise self._endless(self._page)

    async def _moved(self, ask: Ask, number: int, index: int, mark: str) -> int:
        """Where to go on in a page that the marked row is no longer in."""
        if index < 0:  # the page before ended with it
            return 0
        size = ((self._size, self._most),) if self._size else ()
        following = self.rows(await ask(((self._page, number + 1 + self._first), *size), None))
        # it moved on to the next page: nothing here is new; else it was removed
        return self._most if mark in self.marks(following) else index


class Cursors(Pager):
    """By a text of the backend's own, or by the address of the next page.

    An address is kept as a path behind that of the backend.
    """

    def __init__(self, paging: Paging, *rest: Any) -> None:
        super().__init__(*rest)
        self._name = paging.cursor if paging.by == "cursor" else None
        self._size, self._most = paging.limit or paging.size, paging.most
        self._next = path(paging.next) if paging.next else None
        self._leads_on = self._name or "the address of the next page"

    async def batches(
        self, ask: Ask, after: str | None, wanted: int
    ) -> AsyncGenerator[Batch, None]:
        token, mark, *empty = json.loads(after) if after is not None else (None, "")
        seen: set[Any] = set()
        barren, before = 0, empty[0] if empty else 0
        while token not in seen:
            seen.add(token)
            answer = await self._ask(ask, token)
            rows = self.rows(answer)
            marks = self.marks(rows)
            following = self._following(answer)
            fresh = _behind(marks, mark) or 0
            places = [_place(token, each) for each in marks]
            if following is None:
                yield Batch(rows=rows[fresh:], places=places[fresh:], last=True)
                return
            barren, before = (0, 0) if rows else (barren + 1, before)
            if before + barren >= MOST_EMPTY_IN_ALL:
                raise self._endless(self._leads_on)
            end = _place(following, "", *([] if rows else [before + barren]))
            if places:
                places[-1] = end
            yield Batch(rows=rows[fresh:], places=places[fresh:], last=False, end=end)
            if barren == MOST_EMPTY:
                raise Barren(str(self._endless(self._leads_on)))
            token, mark = following, ""
        raise Endless(f"{self._label}: the next page is one that was read already")

    async def _ask(self, ask: Ask, token: Any) -> Answer:
        size: Params = ((self._size, self._most),) if self._size else ()
        if token is None:
            return await ask(size, None)
        return await ask((*size, (self._name, token)) if self._name else (), self._link(token))

    def _link(self, token: Any) -> str | None:
        return None if self._name else str(token)

    def _following(self, answer: Answer) -> Any:
        found = self._found(answer)
        return found if self._name or found is None else answer.behind(str(found))

    def _found(self, answer: Answer) -> Any:
        if self._next is None:
            return _link_next(answer.link)
        try:
            found = self._next(answer.data)
        except Unreadable:
            found = None
        if found is None or found == "" or found is False:
            return None
        if not isinstance(found, str | int):
            raise BackendNonsense(f"{self._label}: where the next page is cannot be read")
        return found


def _link_next(header: str) -> str | None:
    """The address in a Link header whose rel is next."""
    return next((each[1] for each in _NEXT(header) if _REL_NEXT(each[2])), None)


def _is_last(total: Callable[[Any], Any] | None, answer: Answer, until: int) -> bool:
    """Whether the backend says that there are no more rows than those up to here."""
    if total is None:
        return False
    try:
        number = whole(total(answer.data))
    except Unreadable:
        number = None
    return number is not None and until >= number


_STYLES: Mapping[str, Callable[..., Pager]] = {
    "offset": Offsets,
    "page": Numbers,
    "cursor": Cursors,
    "link": Cursors,
}


def pager(
    paging: Paging | None, items: Callable[[Any], Any], mark: Callable[[Any], Any], label: str
) -> Pager:
    """The way through a list that pages so; without paging everything is in one answer."""
    if paging is None:
        return Whole(items, mark, label)
    return _STYLES[paging.by](paging, items, mark, label)
