"""What outlives a request: one gateway as its panel sees it, and its traffic for an hour."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from aiohttp import web
from multidict import MultiMapping

from adapters.base import Adapter
from adapters.examination import Finding
from gateway.admin.chores import Chore, Question
from gateway.administrators.administrator import AdministratorStore
from gateway.administrators.passwords import AttemptLimiter, Passwords
from gateway.administrators.sessions import SessionStore
from gateway.audit.buffer import Buffer
from gateway.background import Periodic
from gateway.booking.base import LedgerRow
from gateway.booking.rows import LedgerRows
from gateway.events import Events
from gateway.inquiries.deeds import Deeds
from gateway.inquiries.keys import KeyBook, KeyHours, key_hours
from gateway.inquiries.practice import first
from gateway.inquiries.traffic import Samples, gauge
from gateway.inquiries.verification import VerifyProgress
from gateway.keys.store import KeyStore
from gateway.limits.base import Used
from gateway.observe.metrics import Snapshot
from gateway.policy.running.keeper import PolicyStatus
from gateway.settings import Settings
from gateway.store import Store

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
    unknown: Sequence[LedgerRow]
    resolved: Sequence[Any]


class Sampler(Periodic):
    """Begins with the panel; `clock` is steady, in seconds.

    `breaker_since` is when the practice system's breaker came into its state, None where it has
    been so for as long as it is watched, which is since `began_at`.
    """

    def __init__(self, panel: "Panel", clock: Callable[[], float] = time.monotonic) -> None:
        self.began_at = panel.now()
        self.breaker_since: datetime | None = None
        self.samples = Samples()
        self.figures = Question(self._figures, clock)
        self.readiness = Question(panel.readiness, clock)
        self.keys = Question(self._keys, clock)
        self.bookings = Question(self._bookings, clock)
        self.vets = Question(self._vets, clock)
        self._panel = panel
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
        return self._clock() - (self._panel.now() - moment).total_seconds()

    def gauge(self, name: str) -> int:
        """Returns the last value of a figure without labels, `gateway_` left out; 0 of none."""
        figures = self.figures.value
        return 0 if figures is None else int(gauge(figures[1], f"gateway_{name}"))

    async def _figures(self) -> tuple[datetime, Snapshot]:
        snapshot = await self._panel.snapshot()
        at, now = self._clock(), self._panel.now()
        state = int(gauge(snapshot, "gateway_backend_breaker"))
        if self.figures.value is not None and self.gauge("backend_breaker") != state:
            self.breaker_since = now
        if at > self._taken:
            self.samples.add(at, snapshot)
            self._taken = at
        return now, snapshot

    async def _keys(self) -> KeyHours:
        panel = self._panel
        return await key_hours(panel.store, panel.book, panel.used, panel.now())

    async def _bookings(self) -> LedgerBookings:
        rows, since = LedgerRows(self._panel.store), self._panel.now() - LATELY
        states, _ = await rows.states()
        ended = await rows.latest_resolved(since, MOST)
        return LedgerBookings(states, await rows.oldest_unknown(MOST), ended)

    async def _vets(self) -> Mapping[str, Any]:
        """Returns public id -> name."""
        records = await first(self._panel.adapter, "vets", VETS_MOST, self._panel.now())
        return {str(record.get("id")): record.get("name") for record in records}

    async def _look(self) -> None:
        await self.figures.fresh(EVERY / 2)
        # only once somebody has watched: reading all keys for the first time takes long
        if self.keys.value is not None:
            await self.keys.fresh(KEYS_EVERY)


@dataclass(kw_only=True)
class Panel:
    """One gateway, as its panel sees it.

    `origins` are the addresses under which browsers may reach the panel; `more_headers` stand on
    every answer; `zone` is the clock on the clinic's wall; `standing` gives the policy that runs;
    `snapshot` the figures of all processes of this machine, those of the ledger as they were told
    last; `used` what keys have used of their hour, None where what counts is down.
    """

    settings: Settings
    store: Store
    now: Callable[[], datetime]
    zone: ZoneInfo
    public_url: str
    origins: frozenset[str]
    is_secure: bool
    more_headers: Mapping[str, str]
    only_through_proxies: bool
    trusts: Callable[[str], bool]
    caller: Callable[[str, MultiMapping[str]], str]
    standing: Callable[[], PolicyStatus]
    adapter: Adapter
    readiness: Callable[[], Awaitable[Mapping[str, Any]]]
    snapshot: Callable[[], Awaitable[Snapshot]]
    used: Callable[[Sequence[str]], Awaitable[Mapping[str, Used] | None]]
    audit: Buffer
    events: Events

    def __post_init__(self) -> None:
        self.deeds = Deeds(self.store, self.audit, self.now)
        self.administrators = AdministratorStore(self.store)
        self.sessions = SessionStore(self.store)
        self.attempts = AttemptLimiter(self.store)
        self.passwords = Passwords()
        self.keys = KeyStore(self.store)
        self.book = KeyBook(self.keys)
        self.sampler = Sampler(self)
        # the audit, and the practice system, are looked through for one administrator at a time
        self.verifying = Chore[VerifyProgress](self.events)
        self.examining = Chore[list[Finding]](self.events)

    def address_of(self, request: web.Request) -> str:
        """Returns who asks, whether or not through a proxy."""
        remote = request.remote or ""
        return self.caller(remote, request.headers) if self.trusts(remote) else remote

    def set_cookie(
        self, response: web.StreamResponse, name: str, value: str, max_age: int | None = None
    ) -> None:
        """Sets a cookie of the browser's session; to take one away needs the same marks."""
        secure, site = self.is_secure, "Strict"
        response.set_cookie(
            name, value, max_age=max_age, path="/", secure=secure, httponly=True, samesite=site
        )
