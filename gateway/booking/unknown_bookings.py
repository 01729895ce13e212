"""Settles bookings of unknown outcome: each was made, was certainly not made, or stays unknown."""

import asyncio
from functools import partial
from math import ceil

from adapters.base import Adapter, BackendUnavailable, OutcomeUnknown
from gateway.booking.base import Told
from gateway.booking.deadlines import Deadlines
from gateway.booking.drafts import read_draft
from gateway.booking.looking import Lost, look
from gateway.booking.outcomes import in_time
from gateway.booking.row import Row
from gateway.booking.rows import Rows
from gateway.contract.errors import Unavailable
from gateway.store.base import StoreError

# Seconds after which it is worth asking again where the practice system cannot be asked now.
AGAIN = 5.0


class UnknownBookings:
    """Looks rows up in the practice system, and writes and tells what came of them."""

    def __init__(self, rows: Rows, deadlines: Deadlines, told: Told) -> None:
        self._rows = rows
        self._deadlines = deadlines
        self._told = told
        self._looks: dict[str, asyncio.Task[float]] = {}

    async def settle(self, row: Row, adapter: Adapter) -> None:
        """As `look`, once for all who meet the row at the same time; return once it is settled.

        Unavailable, with the seconds until it can be settled, where that is not yet possible.
        """
        looking = self._looks.get(row.sending)
        if looking is None:
            looking = self._looks[row.sending] = asyncio.create_task(self.look(row, adapter))
            looking.add_done_callback(partial(self._looked, row.sending))
        seconds = await asyncio.shield(looking)
        if seconds > 0:
            raise Unavailable(ceil(seconds))

    async def look(self, row: Row, adapter: Adapter) -> float:
        """Settle the row where that is possible now; the seconds until it can be settled.

        They are 0 once it is settled, or another process has taken it.
        """
        left = self._deadlines.left(adapter, row)  # before it is asked: the answer may be older
        draft = read_draft(row.draft, row.reference)
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
