"""Pages by a number: that of the first row, or that of the page."""

import json
from collections.abc import AsyncGenerator
from typing import Any

from adapters.mapping.models import Paging
from adapters.mapping.paths import path
from adapters.rest.backend import Answer
from adapters.rest.paging.base import MOST_BARREN, Ask, Batch, Pager, behind, is_last, place


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
            last = is_last(self._total, answer, until)
            if rows[fresh:]:
                barren = 0
                places = [place(begin + each, marks[each]) for each in range(fresh, len(rows))]
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
        fresh = behind(marks, mark)
        if fresh is None and size < self._most:  # further away, since rows were added
            rows, marks, answer = await self._page(ask, begin, self._most)
            fresh = behind(marks, mark)
        if fresh is None and begin:  # or nearer, since some were removed
            back = max(0, begin - self._most + 1)
            found, their_marks, their_answer = await self._page(ask, back, self._most)
            nearer = behind(their_marks, mark)
            if nearer is not None:
                return back, found, their_marks, nearer, their_answer
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
            fresh = behind(marks, mark)
            if fresh is None:
                fresh = await self._moved(ask, number, index, mark)
            last = is_last(self._total, answer, number * self._most + len(rows))
            each = range(min(fresh, len(rows)), len(rows))
            places = [place(number, row, marks[row]) for row in each]
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
