"""How a backend parts a long list, and where in it we are: ways to go through it, in batches.

A place is a short text: the number or cursor of a row or page, and a mark of the last row that was
used. Going on, what was used is looked for again, so that rows which moved are neither lost nor
read twice.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

import orjson

from adapters.base import LONGEST_AFTER, AdapterError, BackendNonsense, IdTable
from adapters.ids.seal import uuid_of_digest
from adapters.mapping.models import Paging
from adapters.mapping.paths import path
from adapters.rest.backend import Answer, Ask, Params
from adapters.values.convert import Unreadable, whole

# Rows of a list that one call looks at.
MOST_ROWS = 5_000
# Pages of a list without a new row in them, after which it has no end.
MOST_BARREN = 3
# The same where cursors lead on: a backend that sifts its rows page by page gives empty ones.
# So many in a row are enough for one call, and so many over several calls have no end.
MOST_EMPTY = 10
MOST_EMPTY_IN_ALL = 100
# No server takes an address that is longer.
LONGEST_KEPT = 8_000
# Under this name long places stand among the ids of the resources.
SHELF = "places of lists"
MOST_NEAR = 3
EMPTY = "where the backend leaves an empty list out, write items: NAME || `[]`"
_NAME = re.compile(r"[^\W\d]\w{0,30}").fullmatch
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
    """Where the list should be is something else; `near` are the arrays elsewhere in the answer."""

    def __init__(self, text: str, near: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.near = tuple(near)


def may_be_empty(error: AdapterError) -> bool:
    """Whether an answer without the list may be one of a list that is empty."""
    return isinstance(error, NoArray) and not error.near


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

    async def first(self, ask: Ask, most: int) -> list[Any]:
        """The rows of the first pages: all of them, or at least so many."""
        rows: list[Any] = []
        async with aclosing(self.batches(ask, None, most)) as batches:
            async for batch in batches:
                rows += batch.rows
                if batch.last or len(rows) >= most:
                    break
        return rows

    def rows(self, answer: Answer) -> list[Any]:
        """The rows in an answer; BackendNonsense where there is no array."""
        rows = _found(self._items, answer)
        if not isinstance(rows, list):
            text = f"{self._label}: there is no array where the list should be"
            near = list(islice(arrays_in(answer.data), MOST_NEAR))
            raise NoArray(text if near else f"{text}; {EMPTY}", near)
        return rows

    def marked(self, answer: Answer) -> tuple[list[Any], list[str]]:
        """The rows in an answer, and a mark of each."""
        rows = self.rows(answer)
        return rows, self.marks(rows)

    def marks(self, rows: Sequence[Any]) -> list[str]:
        """A short text for each row, by its key."""
        keys = (json.dumps(self._mark(row)).encode() for row in rows)
        return [blake2b(key, digest_size=9).hexdigest() for key in keys]

    def _endless(self, name: str) -> Endless:
        return Endless(f"{self._label}: the list does not end; does the backend know {name}?")


def pager(
    paging: Paging | None, items: Callable[[Any], Any], mark: Callable[[Any], Any], label: str
) -> Pager:
    """The way through a list that pages so; without paging everything is in one answer."""
    if paging is None:
        return Whole(items, mark, label)
    return _STYLES[paging.by](paging, items, mark, label)


class Whole(Pager):
    """Everything in one answer."""

    async def batches(
        self, ask: Ask, after: str | None, wanted: int
    ) -> AsyncGenerator[Batch, None]:
        rows, marks = self.marked(await ask((), None))
        at, mark = _parts(after, (-1, ""))
        begin = _behind(marks, mark)
        begin = max(at, 0) if begin is None else begin
        places = [_place(number, marks[number]) for number in range(begin, len(rows))]
        yield Batch(rows=rows[begin:], places=places, last=True)


class _Page(NamedTuple):
    """Rows from the one of number `begin` on, a mark of each, and whether none follow."""

    begin: int
    rows: list[Any]
    marks: list[str]
    last: bool


class _Counted(Pager):
    """Pages by a number, in a list that may say how many rows there are."""

    def __init__(self, paging: Paging, *rest: Any) -> None:
        super().__init__(*rest)
        self._paging, self._most = paging, paging.most
        self._total = path(paging.total) if paging.total else None

    async def _page(self, ask: Ask, begin: int, *params: tuple[str | None, int]) -> _Page:
        """The page that begins there; of the parameters those that have a name are sent."""
        answer = await ask(tuple((name, number) for name, number in params if name), None)
        rows, marks = self.marked(answer)
        total = None if self._total is None else whole(_found(self._total, answer))
        return _Page(begin, rows, marks, total is not None and begin + len(rows) >= total)


class Offsets(_Counted):
    """By the number of the first row: each page begins with the row that was used last."""

    async def batches(
        self, ask: Ask, after: str | None, wanted: int
    ) -> AsyncGenerator[Batch, None]:
        at, mark = _parts(after, (-1, ""))
        barren = 0
        while barren < MOST_BARREN:
            size = max(2, min(self._most, wanted + 2))
            page, fresh = await self._around(ask, at, mark, size)
            begin, rows, marks, last = page
            until = begin + len(rows)
            if rows[fresh:]:
                barren = 0
                places = [_place(begin + row, marks[row]) for row in range(fresh, len(rows))]
                yield Batch(rows=rows[fresh:], places=places, last=last)
            elif until - 1 <= at:  # nothing behind the row that was used last
                return
            else:
                barren += 1
            if last or not rows:
                return
            at, mark = until - 1, marks[-1]
        raise self._endless(str(self._paging.offset))

    async def _around(self, ask: Ask, at: int, mark: str, size: int) -> tuple[_Page, int]:
        """A page from the row at `at` on, and the number in it of the first row that is new."""
        begin = max(at, 0)
        page = await self._sized(ask, begin, size)
        if at < 0:
            return page, 0
        fresh = _behind(page.marks, mark)
        if fresh is None and size < self._most:  # further away, since rows were added
            page = await self._sized(ask, begin, self._most)
            fresh = _behind(page.marks, mark)
        if fresh is None and begin:  # or nearer, since some were removed
            before = await self._sized(ask, max(0, begin - self._most + 1), self._most)
            nearer = _behind(before.marks, mark)
            if nearer is not None:
                return before, nearer
        # the row itself was removed: the next one has its number
        return page, fresh or 0

    async def _sized(self, ask: Ask, begin: int, size: int) -> _Page:
        paging = self._paging
        return await self._page(ask, begin, (paging.offset, begin), (paging.limit, size))


class Numbers(_Counted):
    """By the page's number; every page has the same size."""

    async def batches(
        self, ask: Ask, after: str | None, wanted: int
    ) -> AsyncGenerator[Batch, None]:
        number, index, mark = _parts(after, (0, -1, ""))
        barren = 0
        while barren < MOST_BARREN:
            _, rows, marks, last = await self._numbered(ask, number)
            if not rows:
                return
            fresh = _behind(marks, mark)
            if fresh is None:
                fresh = await self._moved(ask, number, index, mark)
            places = [_place(number, row, marks[row]) for row in range(fresh, len(rows))]
            yield Batch(rows=rows[fresh:], places=places, last=last)
            if last:
                return
            barren = 0 if places else barren + 1
            number, index, mark = number + 1, -1, marks[-1]
        raise self._endless(str(self._paging.page))

    async def _numbered(self, ask: Ask, number: int) -> _Page:
        page, size = self._paging.page, self._paging.size
        params = (page, number + self._paging.first), (size, self._most)
        return await self._page(ask, number * self._most, *params)

    async def _moved(self, ask: Ask, number: int, index: int, mark: str) -> int:
        """Where to go on in a page that the marked row is no longer in."""
        if index < 0:  # the page before ended with it
            return 0
        following = await self._numbered(ask, number + 1)
        # it moved on to the next page: nothing here is new; else it was removed
        return self._most if mark in following.marks else index


class CursorPages(Pager):
    """By a text of the backend's own, or by the address of the next page.

    An address is kept as a path behind that of the backend.
    """

    def __init__(self, paging: Paging, *rest: Any) -> None:
        super().__init__(*rest)
        self._name = paging.cursor if paging.by == "cursor" else None
        size = paging.limit or paging.size
        self._size: Params = ((size, paging.most),) if size else ()
        self._next = path(paging.next) if paging.next else None
        self._leads_on = self._name or "the address of the next page"

    async def batches(
        self, ask: Ask, after: str | None, wanted: int
    ) -> AsyncGenerator[Batch, None]:
        token, mark, *empty = _parts(after, (None, ""))
        seen: set[Any] = set()
        barren, before = 0, empty[0] if empty else 0
        while token not in seen:
            seen.add(token)
            answer = await self._page(ask, token)
            rows, marks = self.marked(answer)
            following = self._following(answer)
            fresh = _behind(marks, mark) or 0
            places = [_place(token, row) for row in marks]
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

    async def _page(self, ask: Ask, token: Any) -> Answer:
        if token is None:
            return await ask(self._size, None)
        if self._name is None:
            return await ask((), str(token))
        return await ask((*self._size, (self._name, token)), None)

    def _following(self, answer: Answer) -> Any:
        """The cursor of the next page, or its path; None where there is none."""
        if self._next is None:
            links = (link[1] for link in _NEXT(answer.link) if _REL_NEXT(link[2]))
            following = next(links, None)
        else:
            following = _found(self._next, answer)
        if following is None or following is False or (self._next and following == ""):
            return None
        if not isinstance(following, str | int):
            raise BackendNonsense(f"{self._label}: where the next page is cannot be read")
        return following if self._name else answer.behind(str(following))


_STYLES: Mapping[str, Callable[..., Pager]] = {
    "offset": Offsets,
    "page": Numbers,
    "cursor": CursorPages,
    "link": CursorPages,
}


def arrays_in(data: Any, depth: int = 3) -> Iterator[str]:
    """The ways to arrays in an answer, as far as their names are plain and not deep."""
    if not isinstance(data, dict) or not depth:
        return
    for name, member in data.items():
        if _NAME(name) and isinstance(member, list):
            yield name
        elif _NAME(name):
            yield from (f"{name}.{inner}" for inner in arrays_in(member, depth - 1))


def _found(way: Callable[[Any], Any], answer: Answer) -> Any:
    """What a path finds in an answer; None where it cannot be asked."""
    try:
        return way(answer.data)
    except Unreadable:
        return None


def _place(*parts: Any) -> str:
    return json.dumps(parts, separators=(",", ":"))


def _parts(place: str | None, beginning: Sequence[Any]) -> Sequence[Any]:
    """What a place was made of; without one the beginning."""
    parts: Sequence[Any] = beginning if place is None else orjson.loads(place)
    return parts


def _behind(marks: Sequence[str], mark: str) -> int | None:
    """The number of the first row behind the marked one; None where it is not there."""
    return marks.index(mark) + 1 if mark in marks else None


class PlaceShelf:
    """Places too long for a cursor of ours: the gateway's store keeps them under a keyed hash.

    A place is a JSON array, so a hash is told from it.
    """

    def __init__(self, secret: bytes, table: IdTable | None) -> None:
        self._key = blake2b(b"places of lists", key=secret, digest_size=32).digest()
        self._table = table

    async def short(self, place: str | None) -> str | None:
        """What stands for the place in LONGEST_AFTER; BackendNonsense beyond LONGEST_KEPT.

        Without a table no way leads back from a hash.
        """
        if place is None or len(place) <= LONGEST_AFTER:
            return place
        if len(place) > LONGEST_KEPT:
            raise BackendNonsense("where the next page begins is too long a text to be kept")
        name = uuid_of_digest(blake2b(place.encode(), key=self._key, digest_size=16).digest())
        if self._table is not None:
            await self._table.remember(SHELF, {name: place})
        return name

    async def whole(self, after: str | None) -> str | None:
        """The place that it stands for; BackendNonsense where nobody knows it any more."""
        if after is None or after.startswith("["):
            return after
        known = {} if self._table is None else await self._table.find(SHELF, [after])
        if after not in known:
            raise BackendNonsense(
                "the gateway's store does not know where the next page begins: was it put back"
                " from an older copy? Begin the list anew"
            )
        return known[after]
