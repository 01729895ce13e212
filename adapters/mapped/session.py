"""Declares what a mapped adapter asks of a practice system, whichever way it is asked.

The core (adapters/mapped) is written once, as coroutines that put their questions to a `Session`
and do no I/O. The session over HTTP awaits its answers on the event loop. The session of a database
answers at once, inside a transaction and in a thread without an event loop. There `complete` runs
the coroutines.
"""

from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol, TypeVar

from adapters.base import Draft, Record
from adapters.documents.document import Place
from adapters.mapped.records import ResourceReader
from adapters.mapped.slots import Interval

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Calendar:
    """A vet's time, or with `schedule`, a raw key, the vet's time in that schedule.

    A schedule may have a `step` of its own, a length of appointments (`lasts`), and the public id
    of the `type` that is booked where none is asked for. Nothing is free where it `is_closed`, as
    these cannot be read.
    """

    vet: str
    schedule: Any = None
    step: timedelta | None = None
    lasts: timedelta | None = None
    type: str | None = None
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class DiarySpan:
    """The time of a calendar that is asked about, for an appointment of a length and type."""

    calendar: Calendar
    window: Interval
    lasts: timedelta
    type: str | None = None


class TimeRow(NamedTuple):
    """A row of the diary as the practice system keeps it; `key` is its raw key, if it has one."""

    start: Any
    end: Any
    minutes: Any
    key: Any


class HoursRow(NamedTuple):
    """A row of working hours: the raw weekday or day, the start and the end."""

    when: Any
    start: Any
    end: Any


class ScheduleRow(NamedTuple):
    """A schedule of a vet: its raw key, step, length of appointments and key of a type."""

    key: Any
    step: Any = None
    lasts: Any = None
    type: Any = None


@dataclass(frozen=True, slots=True)
class Offer:
    """A free time in a calendar, for an appointment of the `type`.

    `slots` are the raw keys of the practice's own rows that it takes, if it takes any.
    """

    interval: Interval
    calendar: Calendar
    type: str | None = None
    slots: tuple[Any, ...] = ()

    @property
    def slot(self) -> Any:
        """The raw key of its only row, or of the first; None where it takes none."""
        return self.slots[0] if self.slots else None


@dataclass(slots=True)
class BookingProgress:
    """How far a booking came: what its steps kept, and where the current step is in the mapping.

    `taken` are the numbers of the steps that were taken, and `tables` what they wrote. `groups`
    tells of each group with a condition whether it was written, by its step's number and its own.
    """

    made: dict[str, Any] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)
    taken: set[int] = field(default_factory=set)
    groups: set[tuple[int, int, bool]] = field(default_factory=set)
    place: Place = ("booking",)


class Session(Protocol):
    """The questions of one call. The errors to expect of each are AdapterErrors."""

    progress: BookingProgress

    async def together(self, *questions: Coroutine[Any, Any, Any]) -> list[Any]:
        """Returns all answers in order; over HTTP they are asked for at once."""

    def reader(self, resource: str) -> ResourceReader:
        """Returns what reads the records of a resource."""

    async def schedules(self, vet: str) -> Sequence[ScheduleRow]:
        """Returns the vet's schedules, in the order of their keys."""

    async def sharing(self, calendar: Calendar) -> Sequence[str]:
        """Returns other vets of its schedule, by public id, as far as one question tells them."""

    def keys(self, vet: str) -> Sequence[str]:
        """Returns the spellings of the vet's key, as texts."""

    def appointment(self, key: Any) -> str | None:
        """Returns the public id of a raw key in the diary; None where it makes none."""

    async def hours(self, source: int, calendar: Calendar) -> Sequence[HoursRow | None]:
        """Returns the rows of `diary.hours`; None for one that cannot be read at all."""

    async def busy(self, source: int, span: DiarySpan) -> Sequence[TimeRow | None]:
        """Returns the rows of `diary.busy` that may block in the window; None where unreadable."""

    async def slots(self, source: int, span: DiarySpan) -> Sequence[TimeRow | None]:
        """Returns the rows of `diary.slots` that may begin in the window."""

    async def durations(self, source: int, calendar: Calendar, type_id: str) -> Sequence[Any]:
        """Returns how long the type lasts there, as the rows of `diary.durations` write it.

        Raises Unreadable where nobody can tell whether a row is one of the type's.
        """

    def kept(self, draft: Draft) -> Draft:
        """Returns the draft as the practice system can keep it."""

    async def lock(self, calendar: Calendar) -> None:
        """Waits for other bookings of the vet or schedule; holds the lock until the call ends."""

    async def lock_alone(self, vet: str) -> None:
        """Does the same for a vet without a schedule, where the lock of a vet is not enough."""

    def before_writing(self) -> AbstractAsyncContextManager[None]:
        """Surrounds what leaves nothing behind, however it ends."""

    async def write(self, draft: Draft, offer: Offer) -> str:
        """Does what the mapping's steps say; returns the new appointment's public id."""

    def after_writing(self) -> AbstractAsyncContextManager[None]:
        """Surrounds what concerns an appointment that was made."""

    async def withdraw(self) -> None:
        """Takes back what `write` made, as far as no transaction does."""

    async def left_behind(
        self, draft: Draft, interval: Interval, since: datetime
    ) -> Sequence[Record]:
        """Returns the appointments that carry the draft's reference.

        Where none is kept: those that may be the draft's, made at `since` or later.
        """


def complete(answer: Awaitable[T]) -> T:
    """Returns an answer that never has to be waited for; raises what it raises."""
    steps = answer.__await__()
    try:
        next(steps)
    except StopIteration as stop:
        value: T = stop.value
        return value
    steps.close()
    raise RuntimeError("a session of a database answers at once")
