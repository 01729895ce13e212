"""Pages by what the one before says of the next: a cursor, or an address."""

import json
import re
from collections.abc import AsyncGenerator
from typing import Any

from adapters.base import BackendNonsense
from adapters.mapping.models import Paging
from adapters.mapping.paths import path
from adapters.rest.backend import Answer
from adapters.rest.paging.base import Ask, Barren, Batch, Endless, Pager, Params, behind, place
from adapters.values.convert import Unreadable

# The same where cursors lead on: a backend that sifts its rows page by page gives empty ones.
# So many in a row are enough for one call, and so many over several calls have no end.
MOST_EMPTY = 10

MOST_EMPTY_IN_ALL = 100

_NEXT = re.compile(r'<([^<>]*)>((?:\s*;\s*[\w*-]+=(?:"[^"]*"|[^\s;,"]*))*)').finditer

_REL_NEXT = re.compile(r';\s*rel="?(?:[^"]*\s)?next(?:\s[^"]*)?"?(?:\s*;|$)').search


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
            fresh = behind(marks, mark) or 0
            places = [place(token, each) for each in marks]
            if following is None:
                yield Batch(rows=rows[fresh:], places=places[fresh:], last=True)
                return
            barren, before = (0, 0) if rows else (barren + 1, before)
            if before + barren >= MOST_EMPTY_IN_ALL:
                raise self._endless(self._leads_on)
            end = place(following, "", *([] if rows else [before + barren]))
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
