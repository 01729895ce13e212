"""Bookings of unknown outcome: looked up in the practice system, and settled.

Since when one is seen that nobody works on is counted by the machine's steady clock, which is the
same in all of its processes and which nobody sets: a wall clock that jumps would free a time while
its booking may still come, and so would two machines whose clocks differ.
"""

import asyncio
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import timedelta
from math import ceil
from pathlib import Path

from msgspec import DecodeError, Struct, json

from adapters.base import Adapter, AdapterError, BackendUnavailable, Draft, OutcomeUnknown, Record
from gateway.booking.base import LedgerRow, LostClaim, done
from gateway.booking.rows import LedgerRows
from gateway.booking.takeover import boot
from gateway.contract.errors import Unavailable
from gateway.events import Events
from gateway.identity import replace_text
from gateway.store.base import StoreError, in_time

# Seconds after which it is worth asking again where the practice system cannot be asked now.
AGAIN = 5.0
# So many attempts are remembered; of those seen longest ago the counting begins anew.
MOST = 10_000
# A clock that was set back or forth by an hour hides no booking that was made in between.
SLACK = timedelta(hours=1, minutes=5)


class _FirstSeen(Struct):
    boot: str
    since: dict[str, float]


class UnknownBookings:
    """Looks rows up in the practice system, and writes and tells what came of them.

    Until when an attempt that nobody works on any more may still be made counts from when it was
    first seen left behind: when it was sent only another clock says. `lands` is the seconds of the
    longest attempt. `me` is this process where it asks the adapter through which it books, else "".
    `file` is where the process that reconciles the ledger keeps since when it has seen them.
    """

    def __init__(
        self,
        rows: LedgerRows,
        events: Events,
        lands: float,
        clock: Callable[[], float],
        file: Path | None = None,
        me: str = "",
    ) -> None:
        self._rows = rows
        self._events = events
        self._lands = lands
        self._clock = clock
        self._file = file
        self._me = me
        self._since: dict[str, float] = {}
        self._looks: dict[str, asyncio.Task[float]] = {}

    def left(self, adapter: Adapter, row: LedgerRow) -> float:
        """Seconds in which it may still be made, where a look-up finds nothing; 0 for none.

        An adapter knows this of its own calls, and of another process's where it locks.
        """
        if adapter.excludes or row.sender == self._me:
            return 0.0
        now = self._clock()
        if row.sending not in self._since:
            self._since[row.sending] = self._seen_before(now).get(row.sending, now)
            if len(self._since) > MOST:
                del self._since[next(iter(self._since))]
        return max(0.0, self._since[row.sending] + self._lands + adapter.settle - now)

    async def count_only(self, sendings: AbstractSet[str]) -> None:
        """Count for just these, from now or from earlier, and write that for other processes.

        Who only looks for one, and finds nothing, does not make it younger. StoreError.
        """
        if self._since.keys() == sendings:
            return
        now = self._clock()
        known = self._seen_before(now) | self._since
        self._since = {sending: known.get(sending, now) for sending in sendings}
        if self._file is not None:
            kept = json.encode(_FirstSeen(boot(), self._since)).decode()
            await in_time(asyncio.to_thread(_replace, self._file, kept))

    def _seen_before(self, now: float) -> dict[str, float]:
        """What was sent -> the second at which an earlier process saw first that it is not known.

        What is of another boot, cannot be read or was not written counts for nothing.
        """
        try:
            kept = json.decode(self._file.read_bytes() if self._file else b"", type=_FirstSeen)
        except (OSError, DecodeError):
            return {}
        is_of_now = kept.boot == boot()
        return {sent: since for sent, since in kept.since.items() if is_of_now and since <= now}

    async def settle(self, row: LedgerRow, adapter: Adapter) -> None:
        """As `look`, once for all who meet the row at the same time; return once it is settled.

        Unavailable, with the seconds until it can be settled, where that is not yet possible.
        """
        looking = self._looks.get(row.sending)
        if looking is None:
            looking = self._looks[row.sending] = asyncio.create_task(self.look(row, adapter))
            looking.add_done_callback(lambda _: self._looks.pop(row.sending))
        seconds = await asyncio.shield(looking)
        if seconds > 0:
            raise Unavailable(ceil(seconds))

    async def find(
        self, row: LedgerRow, adapter: Adapter, draft: Draft, *, told: bool = True
    ) -> Record | None:
        """What the attempt left behind, and the row now holds; None where it left nothing so far.

        An appointment that another row holds is somebody else's. OutcomeUnknown where the practice
        system can't be asked; StoreError; LostClaim.
        """
        try:
            found = await adapter.find_appointments(draft, row.created_at - SLACK)
        except AdapterError as error:
            raise OutcomeUnknown("the practice system can't be asked") from error
        except Exception as error:
            raise OutcomeUnknown("the adapter failed while it looked a booking up") from error
        for record in found:
            if await self._rows.write(row, done(record, told=told)):
                return record
        return None

    async def look(self, row: LedgerRow, adapter: Adapter) -> float:
        """Settle the row where that is possible now; the seconds until it can be settled.

        They are 0 once it is settled, or another process has taken it.
        """
        left = self.left(adapter, row)  # before it is asked: the answer may be older
        draft = row.read_draft()
        if draft is None:  # only people can look it up; the reconciler tells them
            return AGAIN
        try:
            found = await self.find(row, adapter, draft, told=False)
            if found is not None:
                self._events.report("booking_made", appointment=str(found.get("id")))
                return 0.0
            if left == 0:
                await self._rows.write(row, None)
                self._events.report("booking_not_made", reference=row.reference)
        except LostClaim:
            return 0.0
        except OutcomeUnknown as error:
            cause = error.__cause__
            pause = cause.retry_after if isinstance(cause, BackendUnavailable) else 0.0
            return max(left, pause or AGAIN)
        except StoreError as error:
            return max(left, error.retry_after or AGAIN)
        return left


def _replace(file: Path, text: str) -> None:
    """Where it cannot be written nothing is left that is old."""
    try:
        replace_text(file, text)
    except OSError:
        with suppress(OSError):
            file.unlink(missing_ok=True)
