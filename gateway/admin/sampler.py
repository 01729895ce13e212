"""What the panel knows of the traffic: it follows the figures, so that it can tell of an hour."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from gateway.admin.chores import Question
from gateway.admin.context import PanelContext
from gateway.background import Periodic
from gateway.booking.lookup import ResolvedBooking, UnknownBooking, resolved, unknown
from gateway.booking.rows import LedgerRows
from gateway.inquiries.keys import KeyBook, KeyHours, key_hours
from gateway.inquiries.practice import first
from gateway.inquiries.traffic import Samples, gauge
from gateway.observe.metrics import Snapshot

EVERY = 10.0  # seconds between two samples
# Seconds for which an answer counts while somebody watches; and what keys called where nobody does.
FRESH, KEYS_FRESH, VETS_FRESH, KEYS_EVERY = 2.0, 5.0, 600.0, 60.0
# Bookings that are told of: of those that have ended, the latest of this time.
MOST, LATELY = 50, timedelta(days=7)
VETS_MOST = 1_000


@dataclass(frozen=True, slots=True)
class LedgerBookings:
    """Those of which nobody knows, and how those ended lately of which nobody knew.

    `states` says how many there are in each state.
    """

    states: Mapping[str, int]
    unknown: Sequence[UnknownBooking]
    resolved: Sequence[ResolvedBooking]


class Sampler(Periodic):
    """Begins with the panel; `clock` is steady, in seconds.

    `breaker_since` is when the practice system's breaker came into its state, None where it has
    been so for as long as it is watched, which is since `began_at`.
    """

    def __init__(
        self, context: PanelContext, book: KeyBook, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.began_at = context.now()
        self.breaker_since: datetime | None = None
        self.samples = Samples()
        self.figures = Question(self._figures, clock)
        self.readiness = Question(context.readiness, clock)
        self.keys = Question(self._keys, clock)
        self.bookings = Question(self._bookings, clock)
        self.vets = Question(self._vets, clock)
        self._context = context
        self._book = book
        self._clock = clock
        self._taken = clock() - EVERY
        super().__init__(EVERY, self._look, name="follow the figures", first=self._look)

    async def aclose(self) -> None:
        await super().aclose()
        for question in (self.figures, self.readiness, self.keys, self.bookings, self.vets):
            await question.aclose()

    async def look(self) -> None:
        """Asks all anew for somebody who watches, as far as it is told in a moment."""
        await asyncio.gather(
            self.figures.fresh(FRESH),
            self.readiness.fresh(FRESH),
            self.keys.fresh(KEYS_FRESH),
            self.bookings.fresh(FRESH),
        )
        bookings = self.bookings.value
        if bookings is not None and (bookings.unknown or bookings.resolved):
            await self.vets.fresh(VETS_FRESH)

    def steady(self, moment: datetime) -> float:
        """Returns a time as the samples have it."""
        return self._clock() - (self._context.now() - moment).total_seconds()

    def gauge(self, name: str) -> int:
        """Returns the last value of a figure without labels, `gateway_` left out; 0 of none."""
        figures = self.figures.value
        return 0 if figures is None else int(gauge(figures[1], f"gateway_{name}"))

    async def _figures(self) -> tuple[datetime, Snapshot]:
        snapshot = await self._context.snapshot()
        at, now = self._clock(), self._context.now()
        state = int(gauge(snapshot, "gateway_backend_breaker"))
        if self.figures.value is not None and self.gauge("backend_breaker") != state:
            self.breaker_since = now
        if at > self._taken:
            self.samples.add(at, snapshot)
            self._taken = at
        return now, snapshot

    async def _keys(self) -> KeyHours:
        context = self._context
        return await key_hours(context.store, self._book, context.used, context.now())

    async def _bookings(self) -> LedgerBookings:
        store, since = self._context.store, self._context.now() - LATELY
        states, _ = await LedgerRows(store).states()
        ended = await resolved(store, since, MOST)
        return LedgerBookings(states, await unknown(store, MOST), ended)

    async def _vets(self) -> Mapping[str, Any]:
        """Returns public id -> name."""
        records = await first(self._context.adapter, "vets", VETS_MOST, self._context.now())
        return {str(record.get("id")): record.get("name") for record in records}

    async def _look(self) -> None:
        await self.figures.fresh(EVERY / 2)
        # only once somebody has watched: reading all keys for the first time takes long
        if self.keys.value is not None:
            await self.keys.fresh(KEYS_EVERY)
