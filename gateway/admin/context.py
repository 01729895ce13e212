"""Holds what outlives a request to the panel: the gateway's parts, traffic samples, and chores."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

from aiohttp import web
from multidict import MultiMapping

from adapters.base import Adapter
from gateway.administrators.administrator import AdministratorStore
from gateway.administrators.passwords import AttemptLimiter, Passwords
from gateway.administrators.sessions import SessionStore
from gateway.audit.buffer import Buffer
from gateway.background import Periodic, ended
from gateway.booking.ledger import BOOKED_KEPT
from gateway.booking.rows import LedgerRows
from gateway.contract.operations import offered
from gateway.events import Events
from gateway.inquiries import deeds, keys, practice, traffic
from gateway.keys.store import KeyStore
from gateway.limits.base import Used
from gateway.observe.metrics import Snapshot
from gateway.policy.running.keeper import PolicyStatus
from gateway.settings import Settings, StartRefused
from gateway.store import Store

EVERY = 10.0  # seconds between two samples
# Seconds for which an answer is fresh while somebody watches, and the keys' hours otherwise.
FRESH, KEYS_FRESH, VETS_FRESH, KEYS_EVERY = 2.0, 5.0, 600.0, 60.0
# The most bookings that are shown, and how far back the resolved ones go.
MOST, LATELY = 50, BOOKED_KEPT
VETS_MOST = 1_000
# Seconds that a page waits for an answer, where it has an older one to show, and where it has not.
MOMENT, FIRST = 0.25, 2.5
# A question is not asked again before this many times the time that its answer took.
REST = 20.0
T = TypeVar("T")
# What the last line of a deed in the audit says beside its first.
Noted = dict[str, Any]
NotedDeed = AbstractAsyncContextManager[Noted]
Work = Callable[[Noted], Awaitable[None]]


class UnderWay(NamedTuple):
    """A run of a chore: who began it, since when, and how far it is."""

    who: str
    since: datetime
    progress: Any


class Chore:
    """Work in the background, one run at a time; `under_way` is None where none goes on."""

    def __init__(self, events: Events) -> None:
        self.under_way: UnderWay | None = None
        self._events = events
        self._task: asyncio.Task[None] | None = None

    async def begin(self, run: UnderWay, deed: NotedDeed, work: Work) -> bool:
        """Begins a run once the audit has the deed; returns False where another run goes on."""
        if self.under_way is not None:
            return False
        self.under_way, ending = run, AsyncExitStack()
        try:
            noted = await ending.enter_async_context(deed)
        except BaseException:
            self.under_way = None
            raise
        self._task = asyncio.create_task(self._do(ending, work, noted), name="a chore of the panel")
        return True

    async def _do(self, ending: AsyncExitStack, work: Work, noted: Noted) -> None:
        try:
            async with ending:
                try:
                    await work(noted)
                except (OSError, StartRefused) as error:
                    noted["why"] = str(error)
                    raise
        except Exception as error:  # noqa: BLE001 - reported; it can be tried again
            self._events.report("panel_chore_failed", error)
        finally:
            self.under_way = None

    async def aclose(self) -> None:
        await ended(self._task)


class Question(Generic[T]):
    """Something that takes a while to find out, and is asked once at a time.

    `value` is the last answer, None before the first; `has_failed` says that the last try failed.
    `clock` gives monotonic seconds.
    """

    def __init__(
        self, ask: Callable[[], Awaitable[T]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.value: T | None = None
        self.has_failed = False
        self._ask = ask
        self._clock = clock
        self._asked: float | None = None
        self._took = 0.0
        self._task: asyncio.Task[None] | None = None

    async def fresh(self, seconds: float) -> None:
        """Asks again where the last answer is that old, and waits for the answer for a moment."""
        rest = max(seconds, self._took * REST)
        is_due = self._asked is None or self._clock() - self._asked >= rest
        if self._task is None and is_due:
            self._task = asyncio.create_task(self._run(), name="find something out for the panel")
        if self._task is not None:
            await asyncio.wait([self._task], timeout=FIRST if self.value is None else MOMENT)

    async def aclose(self) -> None:
        await ended(self._task)

    async def _run(self) -> None:
        self._asked = began = self._clock()
        try:
            self.value = await self._ask()
            self.has_failed, self._took = False, self._clock() - began
        except Exception:  # noqa: BLE001 - the page says so, and it is asked again
            self.has_failed, self._took = True, 0.0
        finally:
            self._task = None


class Sampler(Periodic):
    """Samples the figures for the panel's pages; `clock` gives monotonic seconds.

    `breaker_since` is when the practice system's breaker changed its state, None where it has not
    changed since `began_at`.
    """

    def __init__(self, panel: "Panel", clock: Callable[[], float] = time.monotonic) -> None:
        self.began_at = panel.now()
        self.breaker_since: datetime | None = None
        self.samples = traffic.Samples()
        self.figures = Question(self._figures, clock)
        self.readiness = Question(panel.readiness, clock)
        self.keys = Question(
            lambda: keys.key_hours(panel.store, panel.book, panel.used, panel.now()), clock
        )
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
        """Refreshes the answers for somebody who watches, and waits for them for a moment."""
        await asyncio.gather(
            self.figures.fresh(FRESH),
            self.readiness.fresh(FRESH),
            self.keys.fresh(KEYS_FRESH),
            self.bookings.fresh(FRESH),
        )
        bookings = self.bookings.value
        if bookings is not None and (bookings["unknown"] or bookings["resolved"]):
            await self.vets.fresh(VETS_FRESH)

    def steady(self, moment: datetime) -> float:
        """Returns a time on the clock of the samples."""
        return self._clock() - (self._panel.now() - moment).total_seconds()

    def gauge(self, name: str) -> int:
        """Returns the last value of gateway_<name>, a figure without labels; 0 before one."""
        figures = self.figures.value
        return 0 if figures is None else int(traffic.gauge(figures[1], f"gateway_{name}"))

    async def _figures(self) -> tuple[datetime, Snapshot]:
        snapshot = await self._panel.snapshot()
        at, now = self._clock(), self._panel.now()
        state = int(traffic.gauge(snapshot, "gateway_backend_breaker"))
        if self.figures.value is not None and self.gauge("backend_breaker") != state:
            self.breaker_since = now
        if at > self._taken:
            self.samples.add(at, snapshot)
            self._taken = at
        return now, snapshot

    async def _bookings(self) -> Mapping[str, Any]:
        rows, since = LedgerRows(self._panel.store), self._panel.now() - LATELY
        states, _ = await rows.states()
        resolved = await rows.latest_resolved(since, MOST)
        return {"states": states, "unknown": await rows.oldest_unknown(MOST), "resolved": resolved}

    async def _vets(self) -> Mapping[str, Any]:
        """Returns the veterinarians, as public id -> name."""
        records = await practice.first(self._panel.adapter, "vets", VETS_MOST, self._panel.now())
        return {str(record.get("id")): record.get("name") for record in records}

    async def _look(self) -> None:
        await self.figures.fresh(EVERY / 2)
        # only after somebody has watched: to read all keys for the first time takes long
        if self.keys.value is not None:
            await self.keys.fresh(KEYS_EVERY)


@dataclass(kw_only=True)
class Panel:
    """The parts of one gateway that its panel uses.

    `origins` are the addresses under which browsers may reach the panel. `more_headers` stand on
    every answer. `zone` is the clinic's. `standing` gives the policy that runs, `snapshot` the
    figures of all processes of this machine, and `used` what keys have used of their hour, None
    where the limiter is down. `offered` are the operations that the practice system answers.
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
        self.offered = tuple(offered(self.adapter.resources, books=self.adapter.books))
        self.deeds = deeds.Deeds(self.store, self.audit, self.now)
        self.administrators = AdministratorStore(self.store)
        self.sessions = SessionStore(self.store)
        self.attempts = AttemptLimiter(self.store)
        self.passwords = Passwords()
        self.keys = KeyStore(self.store)
        self.book = keys.KeyBook(self.keys)
        self.sampler = Sampler(self)
        # the audit is verified, and the practice system examined, for one administrator at a time
        self.verifying = Chore(self.events)
        self.examining = Chore(self.events)

    def address_of(self, request: web.Request) -> str:
        """Returns the caller's address, also through a proxy; may raise NotARequest."""
        remote = request.remote or ""
        return self.caller(remote, request.headers) if self.trusts(remote) else remote

    def set_cookie(
        self, response: web.StreamResponse, name: str, value: str, max_age: int | None = None
    ) -> None:
        """Sets a cookie, for the browser's session without `max_age`; deletes it with 0."""
        secure, site = self.is_secure, "Strict"
        response.set_cookie(
            name, value, max_age=max_age, path="/", secure=secure, httponly=True, samesite=site
        )
