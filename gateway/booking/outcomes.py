"""What became of rows: written at once, within bounds, or kept until it can be."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from adapters.base import Record
from gateway.booking.base import Told
from gateway.booking.room import PATIENCE
from gateway.booking.row import Outcome, Row
from gateway.booking.rows import Rows
from gateway.booking.values import done
from gateway.store.base import StoreError

T = TypeVar("T")
# Rows that may or may not have been written, of which the last are undone later.
MOST_DOUBTFUL = 1_000


class Outcomes:
    """The outcomes of one process's rows."""

    def __init__(self, rows: Rows, told: Told) -> None:
        self._rows = rows
        self._told = told
        self._unwritten: dict[str | None, tuple[Row, Outcome]] = {}
        self._writing = asyncio.Lock()

    def __len__(self) -> int:
        """How many there are; of those rows that may never have been written nobody knows."""
        return sum(row.id is not None for row, _ in self._unwritten.values())

    def __contains__(self, row: Row) -> bool:
        return row.claim in self._unwritten

    async def written(self, row: Row, outcome: Outcome) -> bool:
        """Whether the row was still its claim's, and is now as told. StoreError, in time."""
        return await in_time(self._rows.write(row, outcome))

    async def settle(self, row: Row, outcome: Outcome) -> bool:
        """What happened has happened: where it can't be written now, it is kept and written later.

        False where the row was its claim's no longer. Should this process end before, the row is
        looked up like any that was left behind.
        """
        try:
            return await self.written(row, outcome)
        except StoreError as error:
            self.keep(row, outcome)
            self._told.outcome_waits(error)
            return True

    async def hold(self, row: Row, record: Record) -> bool | None:
        """Settle the row with its new appointment; False where that is another row's.

        None where the row was its claim's no longer. Where it can't be written now, as `settle`.
        """
        try:
            return await in_time(self._rows.hold(row, record, told=True))
        except StoreError as error:
            self.keep(row, done(record))
            self._told.outcome_waits(error)
            return True

    def keep(self, row: Row, outcome: Outcome) -> None:
        """Write it when the rest is; of rows that may never have been written only so many."""
        if row.id is None:
            doubtful = [claim for claim, (each, _) in self._unwritten.items() if each.id is None]
            for claim in doubtful[: len(doubtful) + 1 - MOST_DOUBTFUL]:
                del self._unwritten[claim]
        self._unwritten[row.claim] = (row, outcome)

    async def flush(self) -> None:
        """Write what waits. StoreError."""
        # one at a time: a second that came late would undo what a retry has made of a row since
        async with self._writing:
            for claim, (row, outcome) in list(self._unwritten.items()):
                await self.written(row, outcome)
                if self._unwritten.get(claim) == (row, outcome):
                    del self._unwritten[claim]


async def in_time(work: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
    """Its answer; StoreError after PATIENCE, and then it goes on, unheard, to its own end."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(_heard)
    done, _ = await asyncio.wait([task], timeout=PATIENCE)
    if not done:
        raise StoreError("the store does not answer in time")
    return task.result()


def _heard(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()
