"""An adapter around an adapter: a deadline, at most so many calls at once, a retry, a breaker."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import ceil
from typing import Any, TypeVar

import stamina
from stamina.instrumentation import set_on_retry_hooks

from adapters.base import (
    WATCHED_AT_ONCE,
    WATCHED_IN_A_READ,
    Adapter,
    AdapterError,
    BackendTimeout,
    BackendUnavailable,
    Draft,
    Only,
    OutcomeUnknown,
    Page,
    Query,
    Record,
    Watched,
)
from adapters.breaker import Breaker
from adapters.deadline import Deadline, Span
from adapters.problems import Problem

T = TypeVar("T")
Ask = Callable[[], Awaitable[T]]

# What says that the practice system is down or does not answer. Whatever else an adapter raises
# was made of an answer: NotFound, SlotTaken, Rejected, BackendNonsense.
FAILURES = (BackendUnavailable, BackendTimeout, OutcomeUnknown)
# The same of a call that is about much: that it took too long says nothing of the others.
DOWN = (BackendUnavailable, OutcomeUnknown)
# Seconds before the retry, and at most as many again.
PAUSE = 0.01

# it would write a line with the error's text for each retry, and count it where nobody looks
set_on_retry_hooks(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one practice system is asked at most; times in seconds.

    `timeout` bounds a read with its retry, `booking_timeout` a booking or the search for one.
    Adapters hold to both by themselves and know best what became of a call: `grace` is what they
    get beyond. Of the `in_flight` calls half may be bookings, so that neither bookings that wait
    for a lock hold up all reads nor the other way round; `queue` more wait for `patience`.
    """

    timeout: float = 3.0
    booking_timeout: float = 10.0
    in_flight: int = 20
    queue: int = 100
    failures: int = 5
    pause: float = 10.0
    patience: float = 1.0
    grace: float = 0.5


class Guarded:
    """The inner adapter, asked with care.

    `called` hears the verb, the resource and the outcome of each call: `answered`, the name of an
    AdapterError, `not asked` where there was no room or the breaker was open, or `fault`.
    `changed` hears each new state of the breaker.
    """

    def __init__(
        self,
        inner: Adapter,
        limits: Limits,
        *,
        changed: Callable[[str], None] = lambda state: None,
        called: Callable[[str, str, str], None] = lambda verb, resource, outcome: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._breaker = Breaker(limits.failures, limits.pause, changed=changed, clock=clock)
        self._called = called
        self._room = Room(limits.in_flight, limits.queue, limits.patience)
        bookings = max(1, limits.in_flight // 2)
        self._bookings = Room(bookings, limits.queue, limits.patience)
        self._reading = Deadline(limits.timeout + limits.grace)
        self._booking = Deadline(limits.booking_timeout + limits.grace)
        self._one = Kind("read_one", self._reading, _late_read)
        self._many = Kind("read_many", self._reading, _late_read)
        looks = ceil(WATCHED_AT_ONCE / WATCHED_IN_A_READ)
        self._looking = Deadline(looks * limits.timeout + limits.grace)
        self._look = Kind("find_overwritten", self._looking, _late_read, counted=DOWN)
        self._quick_look = replace(self._look, deadline=self._reading)
        self._find = Kind("find_appointments", self._booking, _late_read)
        self._create = Kind("create_appointment", self._booking, _late_booking, retried=False)

    @property
    def resources(self) -> frozenset[str]:
        return self._inner.resources

    @property
    def filterable(self) -> Mapping[str, frozenset[str]]:
        return self._inner.filterable

    @property
    def breaker(self) -> str:
        """The breaker's state: `closed`, `open` or `half-open`."""
        return self._breaker.state

    def narrows(self, resource: str, only: Only) -> Sequence[Problem]:
        """As it is: nothing is asked of the practice system."""
        return self._inner.narrows(resource, only)

    async def read_one(self, query: Query) -> Record:
        """Retried once where nothing was done; BackendUnavailable too where it was not asked."""
        return await self._ask(self._one, query.resource, self._inner.read_one, query)

    async def read_many(self, query: Query) -> Page:
        """The same of a page."""
        return await self._ask(self._many, query.resource, self._inner.read_many, query)

    async def create_appointment(self, draft: Draft) -> Record:
        """Never retried; OutcomeUnknown where the adapter itself says nothing in time."""
        return await self._book(self._create, self._inner.create_appointment, draft)

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        """A read, with the room and the deadline of a booking: it may wait for the same lock."""
        return await self._book(self._find, self._inner.find_appointments, draft, since)

    async def find_overwritten(self, appointments: Sequence[str]) -> Watched:
        """As several reads of appointments; that it took too long opens no breaker.

        The call that tries whether the practice system is back keeps others out, and has the time
        of one read.
        """
        kind = self._look if self._breaker.closed else self._quick_look
        return await self._ask(kind, "appointments", self._inner.find_overwritten, appointments)

    async def check(self) -> None:
        """As it is: whoever asks wants the truth of this moment."""
        await self._inner.check()

    async def ping(self) -> None:
        """As it is; an answer ends the breaker's pause, and the next call tries."""
        await self._inner.ping()
        self._breaker.end_pause()

    async def aclose(self) -> None:
        """Let go of the inner adapter."""
        self._reading.aclose()
        self._booking.aclose()
        self._looking.aclose()
        await self._inner.aclose()

    async def _book(self, kind: "Kind", ask: Callable[..., Awaitable[T]], *given: Any) -> T:
        try:
            # what cannot go through must not wait for room
            self._breaker.check()
            await self._bookings.enter()
        except BackendUnavailable:
            self._called(kind.verb, "appointments", "not asked")
            raise
        try:
            return await self._ask(kind, "appointments", ask, *given)
        finally:
            self._bookings.leave()

    # one function, and long: each more that is awaited would cost every call
    async def _ask(
        self, kind: "Kind", resource: str, ask: Callable[..., Awaitable[T]], *given: Any
    ) -> T:
        if self._breaker.closed and self._room.take():
            turn = self._breaker.turn
        else:
            turn = await self._admit(kind.verb, resource)
        try:
            with kind.deadline.span() as span:
                try:
                    answer = await ask(*given)
                except BackendUnavailable as error:
                    if not self._worth_another(kind, span):
                        raise
                    answer = await _again(lambda: ask(*given), error)
        except Exception as error:
            known = kind.late() if isinstance(error, TimeoutError) and span.late else error
            self._learn(kind, turn, known)
            own = isinstance(known, AdapterError)
            self._called(kind.verb, resource, type(known).__name__ if own else "fault")
            if known is error:
                raise
            raise known from error
        except BaseException:
            self._breaker.left(turn)
            raise
        else:
            self._breaker.answered(turn)
            self._called(kind.verb, resource, "answered")
            return answer
        finally:
            self._room.leave()

    async def _admit(self, verb: str, resource: str) -> int:
        """The call's turn, once there is room; BackendUnavailable where it can't go through."""
        try:
            self._breaker.check()
            await self._room.enter()
            try:
                return self._breaker.enter()
            except BackendUnavailable:
                self._room.leave()
                raise
        except BackendUnavailable:
            self._called(verb, resource, "not asked")
            raise

    def _worth_another(self, kind: "Kind", span: Span) -> bool:
        """Whether a read is tried once more.

        One that took long met a crowd, which a second try would only make larger; and of a
        half-open breaker there is one probe.
        """
        left = span.until - asyncio.get_running_loop().time()
        return kind.retried and left >= kind.deadline.seconds / 2 and self._breaker.closed

    def _learn(self, kind: "Kind", turn: int, error: Exception) -> None:
        if isinstance(error, kind.counted):
            self._breaker.failed(turn, error)
        elif isinstance(error, FAILURES):
            self._breaker.left(turn)
        elif isinstance(error, AdapterError):
            self._breaker.answered(turn)
        else:
            self._breaker.left(turn)


@dataclass(frozen=True, slots=True)
class Kind:
    """How one verb is asked: its deadline, what it is to be late, whether it is tried again.

    `counted` are the errors that count as failures for the breaker.
    """

    verb: str
    deadline: Deadline
    late: Callable[[], AdapterError]
    retried: bool = True
    counted: tuple[type[AdapterError], ...] = FAILURES


def _late_read() -> AdapterError:
    return BackendTimeout("the adapter did not end a read in time")


def _late_booking() -> AdapterError:
    return OutcomeUnknown("the adapter did not end a booking in time")


async def _again(ask: Ask[T], first: BackendUnavailable) -> T:
    """The second try, after a moment; `first` is what became of the first."""
    tries = stamina.retry_context(
        on=BackendUnavailable,
        attempts=2,
        timeout=None,
        wait_initial=PAUSE,
        wait_max=2 * PAUSE,
        wait_jitter=PAUSE,
    )
    async for each in tries:
        with each:
            if each.num == 1:
                raise first
            return await ask()
    raise first


class Room:
    """At most `most` are inside at once; at most `queue` wait, none longer than `patience`.

    Who waits comes in by turn. `take` is for the call that need not wait: it costs no task switch,
    nor a coroutine, as a semaphore does.
    """

    def __init__(self, most: int, queue: int, patience: float) -> None:
        self._free = most
        self._queue = queue
        self._patience = patience
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take(self) -> bool:
        """Whether there is room for this call, at once."""
        if self._free <= 0:
            return False
        self._free -= 1
        return True

    async def enter(self) -> None:
        """BackendUnavailable where there is no room, nor in time."""
        if self.take():
            return
        if len(self._waiting) >= self._queue:
            raise BackendUnavailable("too much is waiting for the practice system already")
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            async with asyncio.timeout(self._patience):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled():  # it came at that very moment
                self.leave()
            elif place in self._waiting:
                self._waiting.remove(place)
            if isinstance(error, TimeoutError):
                text = "the practice system was busy with other calls"
                raise BackendUnavailable(text) from error
            raise

    def leave(self) -> None:
        """Make room: for who has waited longest, if anybody does."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._free += 1
