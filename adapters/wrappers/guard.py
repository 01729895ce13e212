"""An adapter around an adapter that adds a deadline, a limit of calls, a retry and a breaker."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import ceil
from time import perf_counter
from typing import Any, TypeVar

from adapters import base
from adapters.base import Adapter, AdapterError, BackendUnavailable, Draft, Page, Query, Record
from adapters.call_notes import CALL_NOTES, timed
from adapters.wrappers import Around
from adapters.wrappers.breaker import Breaker
from adapters.wrappers.call_limiter import CallLimiter, bookings_of, searches_of
from adapters.wrappers.deadline import CallSpan, Deadline

T = TypeVar("T")
Called = Callable[[str, str, str, float | None], None]

# Seconds before the retry, so that those who met in a crowd do not meet again.
PAUSE = (0.01, 0.02)

# Errors that say that the practice system is down or does not answer. All others that an adapter
# raises come from an answer: NotFound, SlotTaken, Rejected, BackendNonsense.
FAILURES = (BackendUnavailable, base.BackendTimeout, base.OutcomeUnknown)
# The same for a call that asks for much: that it took too long says nothing about others.
DOWN = (BackendUnavailable, base.OutcomeUnknown)
# A look at booked appointments has the time of so many reads.
LOOKS = ceil(base.WATCHED_AT_ONCE / base.WATCHED_IN_A_READ)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of what one practice system is asked; times in seconds.

    `timeout` bounds a read with its retry, `booking_timeout` a booking or the search for one.
    Adapters keep to both themselves and know best what became of a call, so they get `grace` in
    addition. Half of the `in_flight` calls may be bookings, and a quarter searches, so that neither
    bookings that wait for a lock nor searches that look at every row hold up all other reads.
    `queue` more calls wait for `patience`.
    """

    timeout: float = 3.0
    booking_timeout: float = 10.0
    in_flight: int = 20
    queue: int = 100
    failures: int = 5
    pause: float = 10.0
    patience: float = 1.0
    grace: float = 0.5


class Guarded(Around):
    """Guards the inner adapter.

    `called` hears of each call its verb, resource, outcome and seconds. The outcome is `answered`,
    the name of an AdapterError, `fault`, `given up` where the caller did not wait, or `not asked`
    where there was no room or the breaker was open; then the seconds are None. `changed` hears each
    new state of the breaker. The seconds are also added to CALL_NOTES. A `check` is never held
    back, as it wants the truth of this moment.
    """

    def __init__(
        self,
        inner: Adapter,
        limits: Limits,
        *,
        changed: Callable[[str], None] = lambda state: None,
        called: Called = lambda verb, resource, outcome, seconds: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(inner)
        self.breaker = Breaker(limits.failures, limits.pause, changed=changed, clock=clock)
        self._called = called
        self._patience = limits.patience
        self.room = CallLimiter(limits.in_flight, limits.queue, limits.patience)
        self._bookings, self._searches = (
            CallLimiter(share(limits.in_flight), limits.queue, limits.patience)
            for share in (bookings_of, searches_of)
        )
        reading = Deadline(limits.timeout + limits.grace)
        booking = Deadline(limits.booking_timeout + limits.grace)
        looking = Deadline(LOOKS * limits.timeout + limits.grace)
        self._one = CallKind("read_one", reading)
        self._many = CallKind("read_many", reading)
        self._look = CallKind("find_overwritten", looking, counted=DOWN)
        self._quick_look = replace(self._look, deadline=reading)
        self._find = CallKind("find_appointments", booking)
        self._create = CallKind("create_appointment", booking, base.OutcomeUnknown, retried=False)

    def read_one(self, query: Query) -> Coroutine[Any, Any, Record]:
        """Reads, and retries where nothing was done. Raises BackendUnavailable if not asked."""
        return self._ask(self._one, query.resource, self._inner.read_one, query)

    async def read_many(self, query: Query) -> Page:
        """Reads likewise. A search needs one of the places for searches too."""
        ask, kind = self._inner.read_many, self._many
        if "search" in [chosen.match for chosen in query.filters]:
            return await self._ask_among(self._searches, kind, query.resource, ask, query)
        return await self._ask(kind, query.resource, ask, query)

    async def create_appointment(self, draft: Draft) -> Record:
        """Books, without a retry. Raises OutcomeUnknown where the adapter does not end in time."""
        ask, kind = self._inner.create_appointment, self._create
        return await self._ask_among(self._bookings, kind, "appointments", ask, draft)

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        """Reads with the room and deadline of a booking, as it may wait for the same lock."""
        ask, kind = self._inner.find_appointments, self._find
        return await self._ask_among(self._bookings, kind, "appointments", ask, draft, since)

    async def find_overwritten(self, appointments: Sequence[str]) -> base.Watched:
        """Reads in the time of several reads, or of one as a probe; a timeout opens no breaker."""
        kind = self._look if self.breaker.closed else self._quick_look
        return await self._ask(kind, "appointments", self._inner.find_overwritten, appointments)

    async def ping(self) -> None:
        """Pings the backend. An answer ends the breaker's pause, and the next call is its probe."""
        await super().ping()
        self.breaker.end_pause()

    async def _ask_among(
        self,
        share: CallLimiter,
        kind: "CallKind",
        resource: str,
        ask: Callable[..., Awaitable[T]],
        *given: Any,
    ) -> T:
        """Asks once there is room among the calls of the same sort, and then among all."""
        await self._wait_for(share, kind, resource)
        try:
            return await self._ask(kind, resource, ask, *given)
        finally:
            share.leave()

    async def _wait_for(self, room: CallLimiter, kind: "CallKind", resource: str) -> None:
        """Takes a place in the room, once no probe is under way. Raises BackendUnavailable."""
        try:
            with timed("waited"):
                await self.breaker.probed(self._patience)
                self.breaker.check()
                await room.enter()
        except BackendUnavailable:
            self._called(kind.verb, resource, "not asked", None)
            raise

    async def _admit(self, kind: "CallKind", resource: str) -> int:
        """Returns the call's turn, once there is room; raises as `_wait_for` does."""
        await self._wait_for(self.room, kind, resource)
        try:
            return self.breaker.enter(kind.deadline.seconds)
        except BackendUnavailable:
            self.room.leave()
            self._called(kind.verb, resource, "not asked", None)
            raise

    # one long function, as each further await would cost every call
    async def _ask(
        self, kind: "CallKind", resource: str, ask: Callable[..., Awaitable[T]], *given: Any
    ) -> T:
        at_once = self.breaker.closed and self.room.take()
        turn = self.breaker.turn if at_once else await self._admit(kind, resource)
        outcome, asking, began = "given up", CALL_NOTES.get(), perf_counter()
        begun = asking.begin(kind.verb, resource) if asking.traced else None
        try:
            with CallSpan(kind.deadline) as span:
                try:
                    answer = await ask(*given)
                except BackendUnavailable:
                    left = span.until - asyncio.get_running_loop().time()
                    # one that took long met a crowd, which a second try would only enlarge;
                    # and a half-open breaker has one probe
                    worth_another = left >= kind.deadline.seconds / 2 and self.breaker.closed
                    if not (kind.retried and worth_another):
                        raise
                    await asyncio.sleep(random.uniform(*PAUSE))  # noqa: S311  # nosec B311
                    answer = await ask(*given)
        except Exception as error:
            was_late = isinstance(error, TimeoutError) and span.late
            known = kind.late(f"the adapter did not end {kind.verb} in time") if was_late else error
            self._learn(kind, turn, known)
            outcome = type(known).__name__ if isinstance(known, AdapterError) else "fault"
            if known is error:
                raise
            raise known from error
        except BaseException:
            self.breaker.left(turn)
            raise
        else:
            self.breaker.answered(turn)
            outcome = "answered"
            return answer
        finally:
            self.room.leave()
            seconds = perf_counter() - began
            self._called(kind.verb, resource, outcome, seconds)
            asking.seconds += seconds
            if begun is not None:
                asking.end(begun, outcome)

    def _learn(self, kind: "CallKind", turn: int, error: Exception) -> None:
        if isinstance(error, kind.counted):
            self.breaker.failed(turn)
        elif isinstance(error, AdapterError) and not isinstance(error, FAILURES):
            self.breaker.answered(turn)
        else:
            self.breaker.left(turn)
        if isinstance(error, BackendUnavailable):
            error.retry_after = self.breaker.wait


@dataclass(frozen=True, slots=True)
class CallKind:
    """How one verb is called; `counted` are the errors that count as failures for the breaker."""

    verb: str
    deadline: Deadline
    late: type[AdapterError] = base.BackendTimeout
    retried: bool = True
    counted: tuple[type[AdapterError], ...] = FAILURES
