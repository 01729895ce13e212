"""What stands in the ledger of a row that its claim has lost: to another process, or altogether.

So it goes for a process that was stopped for long, or cut off, and taken for dead meanwhile.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson

from adapters.base import OutcomeUnknown
from gateway.booking.base import Booked, Told
from gateway.booking.outcomes import in_time
from gateway.booking.row import LEFT, Row
from gateway.booking.rows import Rows
from gateway.booking.values import ANOTHERS
from gateway.contract.errors import Unavailable
from gateway.store.base import StoreError

# Seconds that the row's new claim has to come to an end, and between two looks.
WAIT, PAUSE = 10.0, 0.25


class Stand:
    """Reads what became of a lost row, and adds what its first claim knows."""

    def __init__(self, rows: Rows, told: Told) -> None:
        self._rows = rows
        self._told = told

    async def of(self, row: Row, outcome: Mapping[str, Any] | None) -> Booked | None:
        """What the row now says; None where nothing was sent, so that the call begins anew.

        Refused; OutcomeUnknown; Unavailable while another is still at work on it.
        """
        if outcome is None:
            return None
        try:
            return await self._of(row, outcome)
        except StoreError as error:
            raise OutcomeUnknown("the ledger can't be asked what became of a booking") from error

    async def _of(self, row: Row, outcome: Mapping[str, Any]) -> Booked | None:
        until = asyncio.get_running_loop().time() + WAIT
        while True:
            now = await in_time(self._rows.read(row))
            if now is None:
                return await self._gone(row, outcome)
            if now.settled:
                self._compare(now, outcome)
                return now.outcome_again()
            if now.owner is None and await self._written(now, outcome):
                return _booked(outcome)
            if asyncio.get_running_loop().time() >= until:
                raise Unavailable(1)
            await asyncio.sleep(PAUSE)

    async def _written(self, now: Row, outcome: Mapping[str, Any]) -> bool:
        if "appointment_id" not in outcome:
            return await in_time(self._rows.write(now, outcome))
        held = await in_time(self._rows.hold(now, orjson.loads(outcome["record"]), told=True))
        if held is False:
            raise OutcomeUnknown(ANOTHERS)
        return bool(held)

    async def _gone(self, row: Row, outcome: Mapping[str, Any]) -> Booked | None:
        """Written anew; where its key has another row by now, that one answers."""
        restored = await in_time(self._rows.restore(row, outcome))
        if restored is None:
            raise OutcomeUnknown(ANOTHERS)
        if restored:
            return _booked(outcome)
        self._compare(row, outcome)
        return None

    def _compare(self, now: Row, outcome: Mapping[str, Any]) -> None:
        made = outcome.get("appointment_id")
        if made is not None and made != now.appointment_id:
            self._told.made_twice(made)


def _booked(outcome: Mapping[str, Any]) -> Booked:
    if outcome == LEFT:
        raise OutcomeUnknown("the booking was sent by a process that was taken for dead")
    return Booked(orjson.loads(outcome["record"]), replayed=False)
