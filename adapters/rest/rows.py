"""The list of a resource: its rows, and the records made of them."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from adapters.base import (
    AdapterError,
    BackendNonsense,
    Filter,
    NotFound,
    Only,
    Page,
    Record,
    Trouble,
)
from adapters.mapping.models import ListCall
from adapters.mapping.paths import path
from adapters.rest.asking import marked_by
from adapters.rest.filling import Filling, counts
from adapters.rest.paging import MOST_ROWS, Ask, Barren, Batch, pager
from adapters.rest.records import RecordMaker
from adapters.rest.together import AT_ONCE, for_each
from adapters.rest.toolbox import Toolbox
from adapters.values.convert import Unreadable

# Rows that cost a call each which one call looks at; then the page ends where it is.
MOST_DETAILS = 400
# The part of a read's time after which what has been found has to do.
ENOUGH = 0.6


class Reader(Protocol):
    """Who makes records of a resource, of what the backend gives."""

    name: str
    maker: RecordMaker

    def made(self, value: Any, only: Only = ()) -> Record | None:
        """The record of an answer; None without a usable id, NotFound where it is not to be."""

    async def one(self, public_id: str, only: Only = ()) -> Record:
        """The record with that id; NotFound."""

    async def answer(self, public_id: str) -> Any:
        """The JSON of the record with that id; NotFound."""


class Rows:
    """One list; `reader` makes the records."""

    def __init__(self, call: ListCall, reader: Reader, tools: Toolbox) -> None:
        self.endpoint = tools.templates.call(call, tools.shapes[reader.name])
        self._reader = reader
        self._report = tools.report
        self.has_details = call.details
        self._key = reader.maker.key
        if call.key is not None:
            self._key = tools.values.key(call.key, reader.name)
        self.pager = pager(call.page, path(call.items), marked_by(self._key), self.endpoint.label)
        self._patience = tools.timeout * ENOUGH

    async def page(
        self, ask: Ask, filters: Sequence[Filter], limit: int, after: str | None, only: Only = ()
    ) -> Page:
        """Goes through the rows until the page is full, or enough was looked at."""
        filling = Filling(limit, MOST_DETAILS if self.has_details else MOST_ROWS, self._patience)
        wanted = MOST_ROWS if filters or only else limit
        try:
            batches = self.pager.batches(ask, after, wanted)
            is_last = await self._fill(filling, batches, filters, only)
        except Barren:  # what was found is kept, and the next call goes on behind it
            is_last = False
        return filling.page(more=not is_last)

    async def _fill(
        self,
        filling: Filling,
        batches: AsyncGenerator[Batch, None],
        filters: Sequence[Filter],
        only: Only,
    ) -> bool:
        """Whether the list came to its end before the page was full, or enough was looked at.

        With conditions a full page looks for what follows it: it must not tell of hidden records.
        """
        size = AT_ONCE if self.has_details else 1
        async with aclosing(batches):
            async for batch in batches:
                for rows, places in _parts(batch.rows, batch.places, size):
                    if filling.is_enough or (filling.is_full and not only):
                        return False
                    for made, place in zip(await self._made(rows, only), places, strict=True):
                        if filling.is_full and (not only or counts(made, filters)):
                            return False
                        filling.take(made, place, filters)
                if batch.last:
                    return True
                filling.passed(batch.end)
                if filling.is_enough or (filling.is_full and not batch.rows and not only):
                    return False
        return True

    async def sample(self, ask: Ask, most: int) -> list[Any]:
        """The first rows; where they are no whole records, the records of the first few.

        One that cannot be read is left out; where none can, the AdapterError is raised.
        """
        rows: list[Any] = []
        async with aclosing(self.pager.batches(ask, None, most)) as batches:
            async for batch in batches:
                rows += batch.rows
                if batch.last or len(rows) >= most:
                    break
        if not self.has_details:
            return rows
        ids = [public_id for public_id in map(self._public_id, rows[:most]) if public_id]
        found = await for_each(self._answer, ids)
        errors = [each for each in found if isinstance(each, AdapterError)]
        if errors and len(errors) == len(found):
            raise errors[0]
        return [each for each in found if not isinstance(each, AdapterError)]

    async def _answer(self, public_id: str) -> Any:
        """The JSON of a record, or the error of one that is not there or is none."""
        try:
            return await self._reader.answer(public_id)
        except (NotFound, BackendNonsense) as error:
            return error

    async def _made(self, rows: Sequence[Any], only: Only) -> list[Record | Trouble | None]:
        """Each row's record; None for what is not to be, a trouble for what has no usable id."""
        if self.has_details:
            return await for_each(lambda row: self._detailed(row, only), rows)
        return [self._record(row, only) for row in rows]

    def _record(self, row: Any, only: Only) -> Record | Trouble | None:
        if only and not isinstance(row, dict):  # it has no value to be judged by
            return None
        try:
            made = self._reader.made(row, only)
        except NotFound:
            return None
        except BackendNonsense:  # one bad row fails no list
            bad = self._doubtful if isinstance(row, dict) else self._nameless
            self._report(bad)
            return bad
        return self._nameless if made is None else made

    async def _detailed(self, row: Any, only: Only) -> Record | Trouble | None:
        public_id = self._public_id(row)
        if public_id is None and only:  # nor has this one
            return None
        if public_id is None:
            self._report(self._nameless)
            return self._nameless
        try:
            return await self._reader.one(public_id, only)
        except NotFound:  # gone since the list was made
            return None

    def _public_id(self, row: Any) -> str | None:
        try:
            found: str | None = self._key.read(row)
        except Unreadable:
            return None
        return found

    @property
    def _doubtful(self) -> Trouble:
        return Trouble("unreadable", self._reader.name, "where", "")

    @property
    def _nameless(self) -> Trouble:
        return Trouble("no id", self._reader.name, "id", "")


def _parts(
    rows: Sequence[Any], places: Sequence[str], size: int
) -> Iterator[tuple[Sequence[Any], Sequence[str]]]:
    for begin in range(0, len(rows), size):
        yield rows[begin : begin + size], places[begin : begin + size]
