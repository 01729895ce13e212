"""Settles bookings of unknown outcome as soon as another one meets their time."""

import asyncio
from collections.abc import Sequence
from functools import partial
from math import ceil

from adapters.base import Adapter, BackendUnavailable, Draft, OutcomeUnknown
from gateway.booking.base import Told
from gateway.booking.drafts import read
from gateway.booking.landings import Landings
from gateway.booking.looking import Lost, look
from gateway.booking.outcomes import in_time
from gateway.booking.row import Row
from gateway.booking.rows import Rows
from gateway.contract.errors import Unavailable
from gateway.store.base import StoreError

# Seconds after which it is worth asking again where the practice system cannot be asked now.
AGAIN = 5.0


class Doubts:
    """Looks a row up in the practice system, once for all who meet it at the same time."""

    def __init__(self, rows: Rows, landings: Landings, told: Told) -> None:
        self._rows = rows
        self._landings = landings
        self._told = told
        self._looks: dict[str, asyncio.Task[float]] = {}

    async def settle(self, row: Row, adapter: Adapter) -> None:
        """Return once the row is settled, or another process has taken it.

        Unavailable, with the seconds until it can be settled, where that is not yet possible.
        """
        looking = self._looks.get(row.sending)
        if looking is None:
            looking = self._looks[row.sending] = asyncio.create_task(self._look(row, adapter))
            looking.add_done_callback(partial(self._looked, row.sending))
        seconds = await asyncio.shield(looking)
        if seconds > 0:
            raise Unavailable(ceil(seconds))

    async def settle_all(self, rows: Sequence[Row], adapter: Adapter) -> None:
        """The same of several."""
        for row in rows:
            await self.settle(row, adapter)

    async def _look(self, row: Row, adapter: Adapter) -> float:
        """Seconds until it can be settled."""
        left = self._landings.left(adapter, row)  # before it is asked: the answer may be older
        draft = _draft(row)
        if draft is None:  # only people can look it up; the reconciler tells them
            return AGAIN
        try:
            found = await look(self._rows, adapter, draft, row, told=False)
            if found is not None:
                self._told.found(str(found.get("id")))
                return 0.0
            if left == 0 and await in_time(self._rows.write(row, None)):
                self._told.released(row.reference)
        except Lost:
            return 0.0
        except OutcomeUnknown as error:
            return max(left, _pause(error) or AGAIN)
        except StoreError as error:
            return max(left, error.retry_after or AGAIN)
        return left

    def _looked(self, sending: str, _: object) -> None:
        del self._looks[sending]


def _pause(error: OutcomeUnknown) -> float:
    """Seconds for which the practice system is not asked; 0 where nothing keeps it from that."""
    cause = error.__cause__
    return cause.retry_after if isinstance(cause, BackendUnavailable) else 0.0


def _draft(row: Row) -> Draft | None:
    try:
        return read(row.draft or b"", row.reference)
    except (ValueError, TypeError, KeyError):
        return None
