"""What the panel knows of the traffic: it follows the figures, so that it can tell of an hour."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from aiohttp import web

from gateway.admin.asked import Asked
from gateway.admin.parts import Parts
from gateway.background import ended
from gateway.booking.lookup import ResolvedBooking, UnknownBooking, resolved, unknown
from gateway.booking.rows import LedgerRows
from gateway.inquiries import key_hours
from gateway.inquiries.directory import first
from gateway.inquiries.key_book import KeyBook
from gateway.inquiries.key_hours import KeyHours
from gateway.inquiries.traffic import Samples, gauge
from gateway.observe.merged import Snapshot

EVERY = 10.0  # seconds between two samples
# Seconds for which an answer counts while somebody watches; and what keys called where nobody does.
FRESH, KEYS_FRESH, VETS_FRESH, KEYS_EVERY = 2.0, 5.0, 600.0, 60.0
# Bookings that are told of: of those that have ended, the latest of this time.
MOST, LATELY = 50, timedelta(days=7)
VETS_MOST = 1_000


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures as they were at a moment."""

    at: datetime
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Bookings:
    """Those of which nobody knows, and how those ended lately of which nobody knew.

    `states` says how many there are in each state.
    """

    states: Mapping[str, int]
    unknown: Sequence[UnknownBooking]
    resolved: Sequence[ResolvedBooking]


class Sampler:
    """Begins with the panel; `clock` is steady, in seconds.

    `breaker_since` is when the practice system's breaker came into its state, None where it has
    been so for as long as it is watched, which is since `began_at`.
    """

    def __init__(
        self, parts: Parts, book: KeyBook, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.began_at = parts.now()
        self.breaker_since: datetime | None = None
        self.samples = Samples()
        self.figures = Asked(self._figures, clock)
        self.readiness = Asked(parts.readiness, clock)
        self.keys = Asked(self._keys, clock)
        self.bookings = Asked(self._bookings, clock)
        self.vets = Asked(self._vets, clock)
        self._parts = parts
        self._book = book
        self._clock = clock
        self._taken = clock() - EVERY
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Take a sample every ten seconds, until `aclose`."""
        self._task = asyncio.create_task(self._keep_looking(), name="follow the figures")

    async def aclose(self) -> None:
        """Look no more."""
        await ended(self._task)
        for each in (self.figures, self.readiness, self.keys, self.bookings, self.vets):
            await each.aclose()

    async def look(self) -> None:
        """Somebody watches: all as it is now, as far as it is told in a moment."""
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
        """A time as the samples have it."""
        return self._clock() - (self._parts.now() - moment).total_seconds()

    async def _figures(self) -> Figures:
        snapshot = await self._parts.snapshot()
        at, now = self._clock(), self._parts.now()
        before = self.figures.value
        if before is not None and _breaker(before.snapshot) != _breaker(snapshot):
            self.breaker_since = now
        if at > self._taken:
            self.samples.add(at, snapshot)
            self._taken = at
        return Figures(now, snapshot)

    async def _keys(self) -> KeyHours:
        parts = self._parts
        return await key_hours.read(parts.store, self._book, parts.used, parts.now())

    async def _bookings(self) -> Bookings:
        store, now = self._parts.store, self._parts.now()
        states, _ = await LedgerRows(store).states()
        return Bookings(
            states, await unknown(store, MOST), await resolved(store, now - LATELY, MOST)
        )

    async def _vets(self) -> Mapping[str, Any]:
        """Public id -> name."""
        records = await first(self._parts.adapter, "vets", VETS_MOST, self._parts.now())
        return {str(each.get("id")): each.get("name") for each in records}

    async def _keep_looking(self) -> None:
        while True:
            with contextlib.suppress(Exception):
                await self.figures.fresh(EVERY / 2)
                # only once somebody has watched: reading all keys for the first time takes long
                if self.keys.value is not None:
                    await self.keys.fresh(KEYS_EVERY)
            await asyncio.sleep(EVERY)


def _breaker(snapshot: Snapshot) -> float:
    return gauge(snapshot, "gateway_backend_breaker")


SAMPLER = web.AppKey("sampler", Sampler)


def add_sampler(app: web.Application, sampler: Sampler) -> None:
    """It begins and ends with the application."""
    app[SAMPLER] = sampler

    async def start(_: web.Application) -> None:
        sampler.start()

    async def close(_: web.Application) -> None:
        await sampler.aclose()

    app.on_startup.append(start)
    app.on_cleanup.append(close)
