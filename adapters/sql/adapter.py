"""A mapped database as an Adapter: each call is a session that answers at once, one transaction."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from datetime import datetime
from functools import cache
from typing import Any, ClassVar, TypeVar
from zoneinfo import ZoneInfo

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from adapters.base import AdapterOptions, BackendNonsense, Draft, Filter, NotFound, Only, Record
from adapters.documents.problems import Problem, warnings_of
from adapters.mapped import session
from adapters.mapped.adapter import MappedAdapter
from adapters.mapped.booked import draft_values
from adapters.mapped.session import BookingProgress, Calendar, DiarySpan, HoursRow, Offer, TimeRow
from adapters.mapped.slots import Interval
from adapters.mapping.converters import Converters
from adapters.mapping.loading import open_mapping
from adapters.sql import diary
from adapters.sql.booking import BookingWrites, Undo
from adapters.sql.checks import mismatches_in
from adapters.sql.columns import Columns, KeyedRows, sql
from adapters.sql.engines import open_engine, wrong_with
from adapters.sql.engines.base import HALF
from adapters.sql.records import SqlReader, SqlRecords
from adapters.values.convert import Unreadable

T = TypeVar("T")
# So many appointments of one patient at one time with one vet are looked through at the most.
MOST_ALIKE = 50


class SqlSession:
    """Answers by statements on one connection."""

    def __init__(self, adapter: "SqlAdapter", connection: Connection) -> None:
        self._adapter, self.connection = adapter, connection
        self._appointments = adapter.readers["appointments"]
        # a vet's raw key in all its spellings
        self._vet = cache(adapter.readers["vets"].keys_of)
        self.progress, self._undo = BookingProgress(), Undo()

    async def together(self, *asked: Coroutine[Any, Any, Any]) -> list[Any]:
        """One after the other: a connection does one thing at a time."""
        try:
            return [await question for question in asked]
        finally:
            for question in asked:
                question.close()

    def reader(self, resource: str) -> SqlRecords:
        return SqlRecords(self._adapter.readers[resource], self.connection)

    async def schedules(self, vet: str) -> Sequence[Any]:
        rows = self._adapter.schedule_rows
        return [] if rows is None else self._found(rows, Calendar(vet))

    def keys(self, vet: str) -> Sequence[str]:
        return [str(each) for each in self._vet(vet)]

    def appointment(self, key: Any) -> str | None:
        with suppress(Unreadable):
            return self._appointments.table.ids.referred(key)
        return None

    async def hours(self, source: int, calendar: Calendar) -> Sequence[HoursRow | None]:
        return self._found(self._adapter.hours_rows[source], calendar)

    async def busy(self, source: int, span: DiarySpan) -> Sequence[TimeRow | None]:
        rows = self._adapter.busy_rows[source]
        return self._found(rows, span.calendar, **rows.bounds(span.window))

    async def slots(self, source: int, span: DiarySpan) -> Sequence[TimeRow | None]:
        rows = self._adapter.slot_rows[source]
        return self._found(rows, span.calendar, **rows.bounds(span.window))

    async def durations(self, source: int, calendar: Calendar, type_id: str) -> Sequence[Any]:
        rows = self._adapter.duration_rows[source]
        # a UUID that was not met yet may be kept in another case: `exists` tells
        key = self._adapter.readers["appointmentTypes"].keys_of(type_id)[0]
        return self._found(rows, calendar, **rows.type.bound("type", key))

    def _found(self, rows: diary.CalendarRows, calendar: Calendar, **bounds: Any) -> list[Any]:
        owners = self._vet(calendar.vet) if rows.by_vet else [calendar.schedule]
        return rows.found(self.connection, {"owner": list(owners), **bounds})

    def kept(self, draft: Draft) -> Draft:
        return self._adapter.writes.kept(draft)

    async def lock(self, calendar: Calendar) -> None:
        """Held by the database until the transaction ends, whoever else asks for it.

        A database may take two spellings of a key for one row: the lock takes them for one too.
        """
        name = f"schedule:{calendar.schedule}"
        if calendar.schedule is None:
            is_native = self._adapter.readers["vets"].is_native
            key = calendar.vet if is_native else self._vet(calendar.vet)[0]
            parts = Columns.spelling(key, folded=True)
            name = "vet:" + ";".join(map(str.strip, parts))
        self._adapter.engine.speech.lock(self.connection, name)

    def before_writing(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()  # nothing is written before

    async def write(self, draft: Draft, offer: Offer) -> str:
        """Every row that is for such a time."""
        values = draft_values(draft, offer.interval)
        values |= {"schedule": offer.calendar.schedule, "slot": offer.slot}
        async with self.after_writing():
            key = self._adapter.writes.write(self.connection, values, self.progress, self._undo)
            public_id: str | None = None
            with suppress(Unreadable):
                public_id = self._appointments.table.ids.shown(key)
            if public_id is None:
                raise BackendNonsense("the new appointment has no usable id")
        return public_id

    @asynccontextmanager
    async def after_writing(self) -> AsyncIterator[None]:
        """Take back, when it fails, what no transaction would undo."""
        try:
            yield
        except Exception as error:
            await self.withdraw()
            if isinstance(error, NotFound):
                raise BackendNonsense("the new appointment cannot be read back") from error
            raise

    async def withdraw(self) -> None:
        """Delete again, last first, what no transaction would undo; as far as it goes."""
        failure: SQLAlchemyError | None = None
        for gone in reversed(self._undo):
            try:
                self.connection.execute(gone)
            except SQLAlchemyError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        self.connection.info.pop(HALF, None)

    async def left_behind(self, draft: Draft, interval: Interval, since: datetime) -> list[Record]:
        appointments = self.reader("appointments")
        if self._adapter.reference is not None and draft.reference:
            return appointments.marked(self._adapter.reference, draft.reference, MOST_ALIKE)
        wanted = [
            Filter("equals", ("vetId",), draft.vet_id),
            Filter("around", ("scheduledAt",), draft.scheduled_at),
            Filter("equals", ("patientId",), draft.patient_id),
        ]
        if "createdAt" in self._appointments.filterable:
            wanted.append(Filter("written since", ("createdAt",), since))
        return (await appointments.page(wanted, MOST_ALIKE, None)).records


class SqlAdapter(MappedAdapter):
    """Reads and books through the statements that the mapping gives.

    ValueError where there is no mapping; DocumentErrors where it or the address can't be used.
    """

    # bookings and look-ups wait for one another in the database itself
    excludes: ClassVar[bool] = True
    readers: Mapping[str, SqlReader]

    def __init__(self, options: AdapterOptions) -> None:
        problems = [Problem("backend.url", 0, 0, text) for text in wrong_with(options.url)]
        mapping, document = open_mapping(options, "sql", problems)
        limits = {"timeout": options.timeout, "booking_timeout": options.booking_timeout}
        self.engine = open_engine(options.url, **limits)
        self.ping, speech = self.engine.ping, self.engine.speech
        converters = Converters(
            ZoneInfo(mapping.zone),
            options.secret,
            kinds=mapping.ids,
            table=options.ids,
            times_as_text=speech.times_as_text,
        )
        shapes, report = options.shapes, options.report
        readers = {
            name: SqlReader(KeyedRows(name, rows, shapes[name], converters, report), speech)
            for name, rows in mapping.resources.items()
        }
        self.writes = BookingWrites(mapping, converters)
        shortens = self.writes.shortens_slots
        super().__init__(options, mapping, document, converters, readers, shortens_slots=shortens)
        said = mapping.diary
        self.hours_rows = [diary.HoursRows(hours) for hours in said.hours]
        self.busy_rows = [diary.BusyRows(source, speech) for source in self.diary.busy]
        self.slot_rows = [diary.SlotRows(source) for source in self.diary.free]
        self.duration_rows = [diary.DurationRows(durations) for durations in said.durations]
        self.schedule_rows = None
        if said.schedules is not None:
            key = sql(said.schedules.key.text)
            self.schedule_rows = diary.CalendarRows(said.schedules, key, order=key)
        reference = mapping.booking.reference
        self.reference = None if reference is None else sql(reference)

    def _work(self, flow: Callable[[SqlSession], Awaitable[T]]) -> Callable[[Connection], T]:
        return lambda connection: session.complete(flow(SqlSession(self, connection)))

    async def one(self, resource: str, public_id: str, only: Only) -> Record:
        """By its statements alone: most calls are such reads."""
        reader = self.readers[resource]
        keys = reader.keys_of(public_id)

        def work(connection: Connection) -> Record:
            return session.complete(SqlRecords(reader, connection, keys).one(public_id, only))

        return await self.engine.read(work)

    async def read(self, flow: Callable[[SqlSession], Awaitable[T]], *, reads: int = 1) -> T:
        return await self.engine.read(self._work(flow))

    async def search(self, flow: Callable[[SqlSession], Awaitable[T]]) -> T:
        return await self.engine.search(self._work(flow))

    async def book(self, flow: Callable[[SqlSession], Awaitable[T]]) -> T:
        return await self.engine.book(self._work(flow))

    async def aclose(self) -> None:
        await self.engine.aclose()

    async def check(self) -> Sequence[Problem]:
        """DocumentErrors where the database lacks a table or column that the mapping names.

        A key of which no id can be made is a warning: other rows may have better ones.
        """
        await self.engine.ping()  # whether anything answers is known sooner
        named = (self.mapping, self.document, self.engine.speech, self.converters.ids)
        found = await self.engine.inspect(lambda asked: list(mismatches_in(asked, *named)))
        problem = self.document.problem
        return warnings_of([problem(it.place, it.text, sampled=it.only_sampled) for it in found])
