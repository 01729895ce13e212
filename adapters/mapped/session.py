"""What a mapped adapter asks of a practice system, whichever way it is asked.

The core (adapters/mapped) is written once, as coroutines that put their questions to a `Session`
and do no I/O themselves. The session of JSON over HTTP awaits its answers on the event loop. That
of a database answers at once, inside one transaction and in one of its threads, where no event
loop runs: `complete` runs a coroutine there that never has to wait.
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
    """Whose time is asked for: a vet, by public id, in one of the vet's schedules, if any.

    `schedule` is the raw key.
    """

    vet: str
    schedule: Any = None


@dataclass(frozen=True, slots=True)
class DiarySpan:
    """A calendar's time that is asked about, and what for: an appointment of that type."""

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
    """A row of working hours: the raw weekday or day, and when they begin and end."""

    when: Any
    start: Any
    end: Any


@dataclass(frozen=True, slots=True)
class Offer:
    """A free time: in which calendar, and which row of the practice's own, where it is one."""

    interval: Interval
    calendar: Calendar
    slot: Any = None


@dataclass(slots=True)
class BookingProgress:
    """How far a booking came: what it made, and where the mapping says what is being done."""

    made: dict[str, Any] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)
    place: Place = ("booking",)


class Session(Protocol):
    """The questions of one call. Each raises AdapterErrors and nothing else to be expected."""

    progress: BookingProgress

    async def together(self, *asked: Coroutine[Any, Any, Any]) -> list[Any]:
        """All answers in order; over HTTP they are asked for at once."""

    def reader(self, resource: str) -> ResourceReader:
        """What reads the records of a resource."""

    async def schedules(self, vet: str) -> Sequence[Any]:
        """The raw keys of the vet's schedules, in their order."""

    def keys(self, vet: str) -> Sequence[str]:
        """The spellings of the vet's key, as texts."""

    def appointment(self, key: Any) -> str | None:
        """The public id of a raw key in the diary; None where it makes none."""

    async def hours(self, source: int, calendar: Calendar) -> Sequence[HoursRow | None]:
        """The rows of `diary.hours`; None for one that cannot be read at all."""

    async def busy(self, source: int, span: DiarySpan) -> Sequence[TimeRow | None]:
        """The rows of `diary.busy` that may block in the window; None for an unreadable one."""

    async def slots(self, source: int, span: DiarySpan) -> Sequence[TimeRow | None]:
        """The rows of `diary.slots` that may begin in the window."""

    async def durations(self, source: int, calendar: Calendar, type_id: str) -> Sequence[Any]:
        """How long the type lasts there, as it is written, by the rows of `diary.durations`."""

    def kept(self, draft: Draft) -> Draft:
        """The draft as the practice system can keep it."""

    async def lock(self, calendar: Calendar) -> None:
        """Wait for other bookings of the vet, or of the schedule; held until the call ends."""

    def before_writing(self) -> AbstractAsyncContextManager[None]:
        """What is done inside leaves nothing behind, however it ends."""

    async def write(self, draft: Draft, offer: Offer) -> str:
        """Do what the mapping's steps say; the public id of the new appointment."""

    def after_writing(self) -> AbstractAsyncContextManager[None]:
        """What is done inside is about an appointment that was made."""

    async def withdraw(self) -> None:
        """Take back what `write` made, as far as no transaction does."""

    async def left_behind(
        self, draft: Draft, interval: Interval, since: datetime
    ) -> Sequence[Record]:
        """The appointments that carry the draft's reference.

        Where none is kept, those that may be the draft's, made at `since` or later.
        """


def complete(answer: Awaitable[T]) -> T:
    """Returns an answer that never has to be waited for; raises what it raises."""
    steps = answer.__await__()
    try:
        next(steps)
    except StopIteration as stop:
        found: T = stop.value
        return found
    steps.close()
    raise RuntimeError("a session of a database answers at once")
