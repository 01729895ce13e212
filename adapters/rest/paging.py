"""Goes through the pages of a backend's list, and remembers the place in it.

A place is a short text: the number or cursor of a row or page, and a mark of the last row that was
used. Going on from there, that row is looked for again, so that rows which moved are neither lost
nor read twice.
"""

import json
import re
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

import orjson

from adapters.base import LONGEST_AFTER, AdapterError, BackendNonsense, IdTable
from adapters.ids.seal import uuid_of_digest
from adapters.mapped.records import Barren, Batch, Batches, Endless
from adapters.mapping.models import Paging
from adapters.mapping.paths import path, value_at
from adapters.rest.backend import Answer, Ask, Params
from adapters.values.convert import whole

# The most rows of a list that one call looks at.
MOST_ROWS = 5_000
# After so many pages without a new row a list has no end.
MOST_BARREN = 3
# Where cursors lead on, a backend that filters page by page gives empty pages: so many in a row
# are enough for one call, and so many over several calls have no end.
MOST_EMPTY = 10
MOST_EMPTY_IN_ALL = 100
# Characters: no server takes a longer address.
LONGEST_KEPT = 8_000
# The name that long places have in the table of ids, beside the resources.
SHELF = "places of lists"
MOST_NEAR = 3
EMPTY = "where the backend leaves an empty list out, write items: NAME || `[]`"
FOLLOW = "write `page`, or next: '`null`' in a page by link where that is no page"
# Where backends tell of a next page, and how they call it.
_BESIDE = ("links", "link", "_links", "paging", "pagination", "meta", "page")
_NEXT_NAMES = (
    *("next", "nextLink", "next_link", "@odata.nextLink", "nextPage", "next_page", "nextUrl"),
    *("next_url", "nextPageToken", "next_page_token", "nextCursor", "next_cursor"),
)
_MORE_NAMES = ("hasMore", "has_more", "hasNext", "has_next", "hasNextPage", "has_next_page")
_MARKED = json.JSONEncoder().encode
_COMPACT = json.JSONEncoder(separators=(",", ":")).encode
_NAME = re.compile(r"[^\W\d]\w{0,30}").fullmatch
_NEXT = re.compile(r'<([^<>]*)>((?:\s*;\s*[\w*-]+=(?:"[^"]*"|[^\s;,"]*))*)').finditer
_REL_NEXT = re.compile(r';\s*rel="?(?:[^"]*\s)?next(?:\s[^"]*)?"?(?:\s*;|$)').search


class NoArray(BackendNonsense):
    """There is no array where the list should be; `near` are the arrays elsewhere in the answer."""

    def __init__(self, text: str, near: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.near = tuple(near)


class Unfollowed(BackendNonsense):
    """An answer tells of a next page, and the mapping does not say how it is asked for."""


def may_be_empty(error: AdapterError) -> bool:
    """Returns whether an answer without the list may stand for an empty list."""
    return isinstance(error, NoArray) and not error.near


class _Page(NamedTuple):
    """Rows of an answer; `begin` counts the rows before, `last` tells if none follow."""

    begin: int
    rows: list[Any]
    mark: Callable[[Any], str]
    last: bool

    def behind(self, mark: str) -> int | None:
        """Returns the number of the first row behind the marked one, or None if it is not there."""
        return _behind(self.rows, self.mark, mark)

    def batch(self, fresh: int, *position: int) -> Batch:
        """Returns the rows from number `fresh` on, placed in the page at `position`, if any."""
        begin = 0 if position else self.begin

        def place(number: int) -> str:
            return _place(*position, begin + fresh + number, self.mark(self.rows[fresh + number]))

        return Batch(self.rows[fresh:] if fresh else self.rows, place, self.last)


class Pager:
    """Goes through one list; `items` finds the rows in an answer, `key` tells them apart.

    `batches` yields the rows behind a place; its number is how many of them are enough for now.
    Without paging everything is in one answer.
    """

    def __init__(
        self,
        paging: Paging | None,
        items: Callable[[Any], Any],
        key: Callable[[Any], Any],
        label: str,
    ) -> None:
        self._items, self._key, self._label = items, key, label
        styles = {"offset": self._offsets, "page": self._numbers}
        self.batches: Callable[[Ask, str | None, int], Batches] = self._whole
        self._is_paged = paging is not None
        if paging is not None:
            self.batches = styles.get(paging.by, self._cursors)
        self._paging = paging = paging or Paging(by="link")
        self._total = path(paging.total) if paging.total else None
        self._next = path(paging.next) if paging.next else None

    async def first(self, ask: Ask, most: int) -> list[Any]:
        """Returns the rows of the first pages: all of them, or at least `most`."""
        rows: list[Any] = []
        async with aclosing(self.batches(ask, None, most)) as batches:
            async for batch in batches:
                rows += batch.rows
                if batch.last or len(rows) >= most:
                    break
        return rows

    def rows(self, answer: Answer) -> list[Any]:
        """Returns the rows in an answer. Raises BackendNonsense where there is no array."""
        rows = value_at(self._items, answer.data)
        if not isinstance(rows, list):
            text = f"{self._label}: there is no array where the list should be"
            near = list(islice(arrays_in(answer.data), MOST_NEAR))
            raise NoArray(text if near else f"{text}; {EMPTY}", near)
        return rows

    def mark(self, row: Any) -> str:
        """Returns a short text for a row, made of its key."""
        return blake2b(_MARKED(value_at(self._key, row)).encode(), digest_size=9).hexdigest()

    def _endless(self, name: str | None) -> str:
        return f"{self._label}: the list does not end; does the backend know {name}?"

    async def _page(self, ask: Ask, begin: int, *params: tuple[str | None, int]) -> _Page:
        """Returns the page that begins there. Parameters without a name are not sent."""
        answer = await ask([(name, number) for name, number in params if name], None)
        rows = self.rows(answer)
        if not self._is_paged and (told := next_told(answer)):
            text = f"{self._label}: {told} tells of a next page, which the mapping does not follow"
            raise Unfollowed(f"{text}; {FOLLOW}")
        total = None if self._total is None else whole(value_at(self._total, answer.data))
        last = total is not None and begin + len(rows) >= total
        return _Page(begin, rows, self.mark, last)

    async def _whole(self, ask: Ask, after: str | None, enough: int) -> Batches:
        page = (await self._page(ask, 0))._replace(last=True)
        at, mark = _parts(after, (-1, ""))
        fresh = page.behind(mark)
        yield page.batch(max(at, 0) if fresh is None else fresh)

    async def _offsets(self, ask: Ask, after: str | None, enough: int) -> Batches:
        """Yields pages by the number of a row. Each begins with the row that was used last."""
        at, mark = _parts(after, (-1, ""))
        barren, most = 0, self._paging.most
        while barren < MOST_BARREN:
            # one more tells whether more follow; further on there is the marked row as well
            size = enough + (1 if at < 0 else 2)
            page, fresh = await self._around(ask, at, mark, max(2, min(most, size)))
            until = page.begin + len(page.rows)
            if page.rows[fresh:]:
                barren = 0
                yield page.batch(fresh)
            elif until - 1 <= at:  # nothing behind the row that was used last
                return
            else:
                barren += 1
            if page.last or not page.rows:
                return
            at, mark = until - 1, self.mark(page.rows[-1])
            enough = most  # of these rows too few were of use
        raise Endless(self._endless(self._paging.offset))

    async def _around(self, ask: Ask, at: int, mark: str, size: int) -> tuple[_Page, int]:
        """Returns a page from the row at `at` on, and the number in it of the first new row."""
        begin, most = max(at, 0), self._paging.most
        page = await self._from(ask, begin, size)
        if at < 0:
            return page, 0
        fresh = page.behind(mark)
        if fresh is None and size < most:  # further away, since rows were added
            page = await self._from(ask, begin, most)
            fresh = page.behind(mark)
        if fresh is None and begin:  # or nearer, since some were removed
            before = await self._from(ask, max(0, begin - most + 1), most)
            nearer = before.behind(mark)
            if nearer is not None:
                return before, nearer
        # the row itself was removed: the next one has its number
        return page, fresh or 0

    def _from(self, ask: Ask, begin: int, size: int) -> Coroutine[Any, Any, _Page]:
        paging = self._paging
        return self._page(ask, begin, (paging.offset, begin), (paging.limit, size))

    async def _numbers(self, ask: Ask, after: str | None, enough: int) -> Batches:
        """Yields pages by their number. Every page has the same size."""
        number, index, mark = _parts(after, (0, -1, ""))
        barren, paging = 0, self._paging

        async def numbered(number: int) -> _Page:
            params = (paging.page, number + paging.first), (paging.size, paging.most)
            return await self._page(ask, number * paging.most, *params)

        while barren < MOST_BARREN:
            page = await numbered(number)
            if not page.rows:
                return
            fresh = page.behind(mark)
            if fresh is None and index < 0:  # the page before ended with the marked row
                fresh = 0
            elif fresh is None:
                # it moved on to the next page: nothing here is new; else it was removed
                moved = (await numbered(number + 1)).behind(mark) is not None
                fresh = len(page.rows) if moved else index
            batch = page.batch(fresh, number)
            yield batch
            if page.last:
                return
            barren = 0 if batch.rows else barren + 1
            number, index, mark = number + 1, -1, self.mark(page.rows[-1])
        raise Endless(self._endless(paging.page))

    async def _cursors(self, ask: Ask, after: str | None, enough: int) -> Batches:
        """Yields pages by the backend's own cursor, or by the path of the next page."""
        name = self._paging.cursor if self._paging.by == "cursor" else None
        size = self._paging.limit or self._paging.size
        sizes: Params = ((size, self._paging.most),) if size else ()
        token, mark, *empty = _parts(after, (None, ""))
        seen: set[Any] = set()
        barren, before = 0, empty[0] if empty else 0
        while token not in seen:
            seen.add(token)
            if token is None:
                answer = await ask(sizes, None)
            elif name is None:
                answer = await ask((), str(token))
            else:
                answer = await ask((*sizes, (name, token)), None)
            rows, following = self.rows(answer), self._following(answer, is_link=name is None)
            fresh = rows[_behind(rows, self.mark, mark) or 0 :]
            if following is None:
                place = partial(self._place_of, token, fresh, None)
                yield Batch(rows=fresh, place=place, last=True)
                return
            barren, before = (0, 0) if rows else (barren + 1, before)
            endless = self._endless(name or "the address of the next page")
            if before + barren >= MOST_EMPTY_IN_ALL:
                raise Endless(endless)
            end = _place(following, "", *([] if rows else [before + barren]))
            place = partial(self._place_of, token, fresh, end)
            yield Batch(rows=fresh, place=place, last=False, end=end)
            if barren == MOST_EMPTY:
                raise Barren(endless)
            token, mark = following, ""
        raise Endless(f"{self._label}: the next page is one that was read already")

    def _place_of(self, token: Any, rows: Sequence[Any], end: str | None, number: int) -> str:
        """Returns the place behind a row of the page at the token; behind the last one, `end`."""
        is_last = number == len(rows) - 1
        return end if is_last and end is not None else _place(token, self.mark(rows[number]))

    def _following(self, answer: Answer, *, is_link: bool) -> Any:
        """Returns the cursor of the next page, or its path; None where there is none."""
        if self._next is None:
            links = (link[1] for link in _NEXT(answer.link) if _REL_NEXT(link[2]))
            following = next(links, None)
        else:
            following = value_at(self._next, answer.data)
        if following is None or following is False or (self._next and following == ""):
            return None
        if not isinstance(following, str | int):
            raise BackendNonsense(f"{self._label}: where the next page is cannot be read")
        return answer.behind(str(following), answer.request) if is_link else following


def next_told(answer: Answer) -> str:
    """Returns what in an answer tells of a next page; "" where nothing does."""
    if any(_REL_NEXT(link[2]) for link in _NEXT(answer.link)):
        return "its header Link"
    data = answer.data if isinstance(answer.data, dict) else {}
    parts = [("", data), *((f"{name}.", data.get(name)) for name in _BESIDE)]
    told = (f"{begin}{name}" for begin, part in parts if (name := _next_in(part)))
    return next(told, "")


def _next_in(part: Any) -> str:
    """Returns the member of an object, or the link of a list, that leads to a next page."""
    if isinstance(part, list):
        links = (link for link in part if isinstance(link, dict))
        return "next" if any("next" in (it.get("rel"), it.get("relation")) for it in links) else ""
    members = part if isinstance(part, dict) else {}
    leading = (name for name in _NEXT_NAMES if _leads_on(members.get(name)))
    return next(leading, next((name for name in _MORE_NAMES if members.get(name) is True), ""))


def _leads_on(value: Any) -> bool:
    """Returns whether a member called `next` leads to a page: by an address, cursor or number."""
    if isinstance(value, dict):
        return isinstance(value.get("href"), str) or isinstance(value.get("url"), str)
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def arrays_in(data: Any, depth: int = 3) -> Iterator[str]:
    """Yields the paths of arrays in an answer whose names are plain, `depth` levels deep."""
    if not isinstance(data, dict) or not depth:
        return
    for name, member in data.items():
        if _NAME(name) and isinstance(member, list):
            if not _is_links(member):
                yield name
        elif _NAME(name):
            yield from (f"{name}.{inner}" for inner in arrays_in(member, depth - 1))


def _is_links(rows: list[Any]) -> bool:
    """Returns whether an array holds nothing but links to other pages."""
    return bool(rows) and all(
        isinstance(row, dict) and not {"rel", "relation"}.isdisjoint(row) for row in rows
    )


def _place(*parts: Any) -> str:
    text = orjson.dumps(parts).decode()
    return text if text.isascii() else _COMPACT(parts)


def _parts(place: str | None, beginning: Sequence[Any]) -> Sequence[Any]:
    parts: Sequence[Any] = beginning if place is None else orjson.loads(place)
    return parts


def _behind(rows: Sequence[Any], mark_of: Callable[[Any], str], mark: str) -> int | None:
    """Returns the number of the first row behind the marked one; None where it is not there."""
    if not mark:
        return None
    numbers = (number for number, row in enumerate(rows, 1) if mark_of(row) == mark)
    return next(numbers, None)


class PlaceShelf:
    """Keeps places too long for our cursors in the gateway's store, under a keyed hash.

    A place is a JSON array, which no hash looks like.
    """

    def __init__(self, secret: bytes, table: IdTable | None) -> None:
        self._key = blake2b(b"places of lists", key=secret, digest_size=32).digest()
        self._table = table

    async def short(self, place: str | None) -> str | None:
        """Returns what stands for the place, within LONGEST_AFTER characters.

        Raises BackendNonsense beyond LONGEST_KEPT. Without a table no way leads back from a hash.
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
        """Returns the place that a text stands for. Raises BackendNonsense for an unknown one."""
        if after is None or after.startswith("["):
            return after
        known = {} if self._table is None else await self._table.find(SHELF, [after])
        if after not in known:
            raise BackendNonsense(
                "the gateway's store does not know where the next page begins: was it put back"
                " from an older copy? Begin the list anew"
            )
        return known[after]
