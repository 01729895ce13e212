"""An adapter around an adapter: a deadline, at most so many calls at once, a retry, a breaker."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import stamina
from stamina.instrumentation import set_on_retry_hooks

from adapters.base import (
    Adapter,
    AdapterError,
    BackendTimeout,
    BackendUnavailable,
    Draft,
    OutcomeUnknown,
    Page,
    Query,
    Record,
)
from adapters.breaker import Breaker
from adapters.deadline import Deadline

T = TypeVar("T")
Ask = Callable[[], Awaitable[T]]

# What says that the practice system is down or does not answer. Whatever else an adapter raises
# was made of an answer: NotFound, SlotTaken, Rejected, BackendNonsense.
FAILURES = (BackendUnavailable, BackendTimeout, OutcomeUnknown)
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

    async def read_one(self, query: Query) -> Record:
        """Retried once where nothing was done; BackendUnavailable too where it was not asked."""
        return await self._through(
            "read_one",
            query.resource,
            lambda: self._read(lambda: self._inner.read_one(query), self._reading),
        )

    async def read_many(self, query: Query) -> Page:
        """The same of a page."""
        return await self._through(
            "read_many",
            query.resource,
            lambda: self._read(lambda: self._inner.read_many(query), self._reading),
        )

    async def create_appointment(self, draft: Draft) -> Record:
        """Never retried; OutcomeUnknown where the adapter itself says nothing in time."""
        return await self._book("create_appointment", lambda: self._create(draft))

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        """A read, with the room and the deadline of a booking: it may wait for the same lock."""

        def find() -> Awaitable[Sequence[Record]]:
            return self._inner.find_appointments(draft, since)

        return await self._book("find_appointments", lambda: self._read(find, self._booking))

    async def find_overwritten(self, appointments: Sequence[str]) -> Sequence[str]:
        """As a read of appointments."""

        def find() -> Awaitable[Sequence[str]]:
            return self._inner.find_overwritten(appointments)

        return await self._through(
            "find_overwritten", "appointments", lambda: self._read(find, self._reading)
        )

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
        await self._inner.aclose()

    async def _book(self, verb: str, ask: Ask[T]) -> T:
        try:
            # what cannot go through must not wait for room
            self._breaker.check()
            await self._bookings.enter()
        except BackendUnavailable:
            self._called(verb, "appointments", "not asked")
            raise
        try:
            return await self._through(verb, "appointments", ask)
        finally:
            self._bookings.leave()

    async def _through(self, verb: str, resource: str, ask: Ask[T]) -> T:
        try:
            turn = await self._admit()
        except BackendUnavailable:
            self._called(verb, resource, "not asked")
            raise
        try:
            answer = await ask()
        except Exception as error:
            self._learn(turn, error)
            own = isinstance(error, AdapterError)
            self._called(verb, resource, type(error).__name__ if own else "fault")
            raise
        except BaseException:
            self._breaker.left(turn)
            raise
        else:
            self._breaker.answered(turn)
            self._called(verb, resource, "answered")
            return answer
        finally:
            self._room.leave()

    async def _admit(self) -> int:
        """The call's turn, once there is room; BackendUnavailable where it can't go through."""
        if not self._breaker.closed:
            self._breaker.check()
        await self._room.enter()
        try:
            return self._breaker.enter()
        except BackendUnavailable:
            self._room.leave()
            raise

    def _learn(self, turn: int, error: Exception) -> None:
        if isinstance(error, FAILURES):
            self._breaker.failed(turn, error)
        elif isinstance(error, AdapterError):
            self._breaker.answered(turn)
        else:
            self._breaker.left(turn)

    async def _read(self, ask: Ask[T], deadline: Deadline) -> T:
        try:
            with deadline.span() as span:
                try:
                    return await ask()
                except BackendUnavailable as error:
                    # one that took long met a crowd, which a second try would only make larger;
                    # and of a half-open breaker there is one probe
                    left = span.until - asyncio.get_running_loop().time()
                    if left < deadline.seconds / 2 or not self._breaker.closed:
                        raise
                    return await _again(ask, error)
        except TimeoutError as error:
            if not span.late:
                raise
            raise BackendTimeout("the adapter did not end a read in time") from error

    async def _create(self, draft: Draft) -> Record:
        try:
            with self._booking.span() as span:
                return await self._inner.create_appointment(draft)
        except TimeoutError as error:
            if not span.late:
                raise
            raise OutcomeUnknown("the adapter did not end a booking in time") from error


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
    """At most `most` are inside at once; at most `queue` wait, none longer than `patience`."""

    def __init__(self, most: int, queue: int, patience: float) -> None:
        self._free = asyncio.Semaphore(most)
        self._queue = queue
        self._patience = patience
        self._waiting = 0

    async def enter(self) -> None:
        """BackendUnavailable where there is no room, nor in time."""
        if not self._free.locked():
            await self._free.acquire()
            return
        if self._waiting >= self._queue:
            raise BackendUnavailable("too much is waiting for the practice system already")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience):
                await self._free.acquire()
        except TimeoutError as error:
            raise BackendUnavailable("the practice system was busy with other calls") from error
        finally:
            self._waiting -= 1

    def leave(self) -> None:
        self._free.release()
