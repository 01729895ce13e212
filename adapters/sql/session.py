"""One call inside a practice database: a session that answers at once, in one transaction."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection

from adapters.base import BackendNonsense, Draft, Filter, NotFound, Only, Page, Record
from adapters.mapped.booked import draft_values
from adapters.mapped.repeated import RepeatedHours
from adapters.mapped.session import (
    BookedVisit,
    BookingProgress,
    Calendar,
    DiarySpan,
    HoursRow,
    Offer,
    TimeRow,
    complete,
)
from adapters.mapped.slots import Interval
from adapters.sql.booking import BookingWrites, Done
from adapters.sql.diary import DiaryRows, SpanRows
from adapters.sql.engines.base import Engine, Expression
from adapters.sql.records import SqlReader
from adapters.values.convert import Unreadable

T = TypeVar("T")
# So many appointments of one patient at one time with one vet are looked through at the most.
MOST_ALIKE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlPlan:
    """What is asked of a database: the statements of resources, of the diary, and of a booking."""

    readers: Mapping[str, SqlReader]
    diary: DiaryRows
    writes: BookingWrites
    hours: RepeatedHours
    reference: Expression | None


class SqlSession:
    """Answers by statements on one connection."""

    def __init__(
        self,
        plan: SqlPlan,
        engine: Engine,
        connection: Connection,
        progress: BookingProgress | None,
    ) -> None:
        self._plan = plan
        self._engine = engine
        self.connection = connection
        self._done = Done(progress or BookingProgress())
        self.progress = self._done.progress
        self._appointments = plan.readers["appointments"]
        self._vets: dict[str, list[Any]] = {}

    async def together(self, *asked: Coroutine[Any, Any, Any]) -> list[Any]:
        """One after the other: a connection does one thing at a time."""
        try:
            return [await question for question in asked]
        finally:
            for question in asked:
                question.close()

    async def one(self, resource: str, public_id: str, only: Only = ()) -> Record:
        reader = self._plan.readers[resource]
        return reader.one(self.connection, reader.key_of(public_id), only)

    async def exists(self, resource: str, public_id: str, only: Only = ()) -> None:
        reader = self._plan.readers[resource]
        reader.must_exist(self.connection, reader.key_of(public_id), only)

    async def page(
        self, resource: str, filters: Sequence[Filter], limit: int, after: str | None, only: Only
    ) -> Page:
        pages = self._plan.readers[resource].pages
        return pages.read(self.connection, filters, limit, after, only)

    async def standing(self, appointments: Sequence[str]) -> Mapping[str, BookedVisit | None]:
        """All in one statement."""
        found: dict[str, BookedVisit | None] = {}
        picked = self._appointments.pick(self.connection, appointments, ("vetId", "scheduledAt"))
        for shown, values in picked:
            if values is None:
                found[shown] = None
            elif all(values):  # else the desk has given it to nobody
                vet, begins = values
                found[shown] = BookedVisit(shown, vet, datetime.fromisoformat(begins))
        return found

    async def schedules(self, vet: str) -> Sequence[Any]:
        return self._plan.diary.schedules(self.connection, self._vet(vet))

    def keys(self, vet: str) -> Sequence[str]:
        return [str(each) for each in self._vet(vet)]

    def _vet(self, vet: str) -> list[Any]:
        """A vet's raw key in all its spellings."""
        if vet not in self._vets:
            reader = self._plan.readers["vets"]
            self._vets[vet] = reader.spelt_as(reader.key_of(vet))
        return self._vets[vet]

    def appointment(self, key: Any) -> str | None:
        with suppress(Unreadable):
            return self._appointments.table.ids.referred(key)
        return None

    async def hours(self, source: int, calendar: Calendar) -> Sequence[HoursRow | None]:
        rows = self._plan.diary.hours[source]
        if rows is None:
            return []
        return rows.read(self.connection, self._vet(calendar.vet), calendar.schedule)

    async def busy(self, source: int, span: DiarySpan) -> Sequence[TimeRow | None]:
        return self._times(self._plan.diary.busy[source], span)

    async def slots(self, source: int, span: DiarySpan) -> Sequence[TimeRow | None]:
        return self._times(self._plan.diary.slots[source], span)

    def _times(self, rows: SpanRows, span: DiarySpan) -> list[TimeRow]:
        vets, schedule = self._vet(span.calendar.vet), span.calendar.schedule
        return rows.read(self.connection, vets, schedule, span.window)

    async def durations(self, source: int, calendar: Calendar, type_id: str) -> Sequence[Any]:
        key = self._plan.readers["appointmentTypes"].key_of(type_id)
        rows, vets = self._plan.diary.durations[source], self._vet(calendar.vet)
        return rows.read(self.connection, vets, calendar.schedule, key)

    def kept(self, draft: Draft) -> Draft:
        """Its encoding may lack letters of the reason."""
        return self._plan.writes.kept(draft)

    async def lock(self, calendar: Calendar) -> None:
        """Held by the database until the transaction ends, whoever else asks for it.

        A database may take two spellings of a key for one row: the lock takes them for one too.
        """
        name = f"schedule:{calendar.schedule}"
        if calendar.schedule is None:
            reader = self._plan.readers["vets"]
            parts = reader.value_of(self._vet(calendar.vet)[0])
            name = "vet:" + ";".join(part.strip().casefold() for part in parts)
        self._engine.speech.lock(self.connection, name)

    @asynccontextmanager
    async def before_writing(self) -> AsyncIterator[None]:
        """Nothing is written before."""
        yield

    async def write(self, draft: Draft, offer: Offer) -> str:
        """Every row that is for such a time."""
        values = draft_values(draft, offer.interval)
        values |= {"schedule": offer.calendar.schedule, "slot": offer.slot}
        async with self.after_writing():
            key = self._plan.writes.write(
                self.connection, values, self._done, of_slot=offer.slot is not None
            )
            public_id = self._appointments.table.public_id(key)
            if public_id is None:
                raise BackendNonsense("the new appointment has no usable id")
        return public_id

    @asynccontextmanager
    async def after_writing(self) -> AsyncIterator[None]:
        """Take back, when it fails, what no transaction would undo."""
        try:
            yield
        except NotFound as error:
            await self.withdraw()
            raise BackendNonsense("the new appointment cannot be read back") from error
        except Exception:
            await self.withdraw()
            raise

    async def withdraw(self) -> None:
        self._plan.writes.withdraw(self.connection, self._done)

    async def carrying(self, draft: Draft, interval: Interval) -> Sequence[Record]:
        if self._plan.reference is None:
            return []
        return self._appointments.marked(
            self.connection, self._plan.reference, draft.reference, MOST_ALIKE
        )

    async def left_behind(
        self, draft: Draft, interval: Interval, since: datetime
    ) -> Sequence[Record]:
        if self._plan.reference is not None and draft.reference:
            return await self.carrying(draft, interval)
        reader = self._appointments
        wanted = [
            Filter("equals", ("vetId",), draft.vet_id),
            Filter("around", ("scheduledAt",), draft.scheduled_at),
            Filter("equals", ("patientId",), draft.patient_id),
        ]
        if "createdAt" in reader.filterable:
            wanted.append(Filter("written since", ("createdAt",), since))
        return reader.pages.read(self.connection, wanted, MOST_ALIKE, None).records


class SqlDriver:
    """Runs what the core asks inside a database: a flow in one transaction of its own."""

    # bookings and look-ups wait for one another in the database itself
    excludes = True

    def __init__(self, engine: Engine, plan: SqlPlan) -> None:
        self.engine = engine
        self.plan = plan

    def session(
        self, connection: Connection, progress: BookingProgress | None = None
    ) -> SqlSession:
        """A session on a connection that somebody else opened."""
        return SqlSession(self.plan, self.engine, connection, progress)

    def work(self, flow: Callable[[SqlSession], Awaitable[T]]) -> Callable[[Connection], T]:
        """The flow as work for the engine."""

        async def answered(connection: Connection) -> T:
            return await flow(self.session(connection))

        return lambda connection: complete(answered(connection))

    async def one(self, resource: str, public_id: str, only: Only) -> Record:
        """By its statements alone: most calls are such reads."""
        reader = self.plan.readers[resource]
        key = reader.key_of(public_id)
        return await self.engine.read(lambda connection: reader.one(connection, key, only))

    async def read(self, flow: Callable[[SqlSession], Awaitable[T]], *, reads: int = 1) -> T:
        return await self.engine.read(self.work(flow))

    async def search(self, flow: Callable[[SqlSession], Awaitable[T]]) -> T:
        return await self.engine.search(self.work(flow))

    async def book(self, flow: Callable[[SqlSession], Awaitable[T]]) -> T:
        return await self.engine.book(self.work(flow))

    async def find(self, flow: Callable[[SqlSession], Awaitable[T]], draft: Draft) -> T:
        return await self.engine.book(self.work(flow))

    async def ping(self) -> None:
        await self.engine.ping()

    async def aclose(self) -> None:
        await self.engine.aclose()
