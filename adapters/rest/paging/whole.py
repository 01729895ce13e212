"""No pages at all: the whole list is one answer."""

import json
from collections.abc import AsyncGenerator

from adapters.rest.paging.base import Ask, Batch, Pager, behind, place


class Whole(Pager):
    """Everything in one answer."""

    async def batches(
        self, ask: Ask, after: str | None, wanted: int
    ) -> AsyncGenerator[Batch, None]:
        rows = self.rows(await ask((), None))
        marks = self.marks(rows)
        at, mark = json.loads(after) if after is not None else (-1, "")
        begin = behind(marks, mark)
        begin = max(at, 0) if begin is None else begin
        places = [place(number, marks[number]) for number in range(begin, len(rows))]
        yield Batch(rows=rows[begin:], places=places, last=True)
