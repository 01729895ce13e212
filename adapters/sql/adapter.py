"""The adapter for a mapped SQL database. Each call is a session in one transaction."""

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from datetime import datetime
from functools import cache, partial
from typing import Any, ClassVar, TypeVar
from zoneinfo import ZoneInfo

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from adapters.base import AdapterOptions, BackendNonsense, Draft, Filter, NotFound, Only, Record
from adapters.documents.document import Document
from adapters.documents.problems import Problem, warnings_of
from adapters.mapped import session
from adapters.mapped.adapter import MappedAdapter
from adapters.mapped.appointment import offered_values
from adapters.mapped.records import Fields
from adapters.mapped.session import (
    BookingProgress,
    Calendar,
    DiarySpan,
    HoursRow,
    Offer,
    ScheduleRow,
    TimeRow,
)
from adapters.mapped.slots import Interval
from adapters.mapping.converters import Converters
from adapters.mapping.loader import open_mapping
from adapters.mapping.models import MappingFile
from adapters.sql import diary
from adapters.sql.booking import BookingWrites, Undo
from adapters.sql.checks import SchemaMismatch, mismatches_in
from adapters.sql.columns import Columns, KeyedRows, sql
from adapters.sql.copied_reads import bookings_refused, copy_warnings, numbered_anew, reads_of
from adapters.sql.engines import Engine, open_engine, wrong_with
from adapters.sql.engines.base import HALF
from adapters.sql.engines.connection import OpenConnection
from adapters.sql.locks import BookingLock
from adapters.sql.records import SqlReader, SqlRecords
from adapters.values.convert import Unreadable

T = TypeVar("T")
# The most appointments of one patient, at one time and with one vet, that are looked through.
MOST_ALIKE = 50
NOTHING: Mapping[str, Any] = {}


class SqlSession:
    """Answers the questions of one call by statements on one connection."""

    def __init__(self, adapter: "SqlAdapter", opened: OpenConnection) -> None:
        self._adapter, self.opened, self.connection = adapter, opened, opened.connection
        # a vet's raw key in all its spellings
        self._vet = cache(adapter.vet_keys)
        self.progress, self._undo = BookingProgress(), Undo()

    async def together(self, *questions: Coroutine[Any, Any, Any]) -> list[Any]:
        """Runs the questions one after the other, as a connection does one thing at a time."""
        try:
            return [await question for question in questions]
        finally:
            for question in questions:
                question.close()

    def reader(self, resource: str) -> SqlRecords:
        return SqlRecords(self._adapter.readers[resource], self.opened)

    async def schedules(self, vet: str) -> Sequence[ScheduleRow]:
        rows = self._adapter.schedule_rows
        return [] if rows is None else await self._rows(rows, Calendar(vet))

    async def sharing(self, calendar: Calendar) -> Sequence[str]:
        rows, ids = self._adapter.vets_there, self._adapter.readers["vets"].table.ids
        vets = [] if rows is None else await self._rows(rows, calendar)
        with suppress(Unreadable):
            shown = (ids.referred(vet) for vet in vets if vet is not None)
            return [vet for vet in dict.fromkeys(shown) if vet is not None and vet != calendar.vet]
        return []

    def keys(self, vet: str) -> Sequence[str]:
        return [str(key) for key in self._vet(vet)]

    def appointment(self, key: Any) -> str | None:
        """Returns the public id; None also where the mapping leaves appointments out."""
        appointments = self._adapter.readers.get("appointments")
        with suppress(Unreadable):
            return None if appointments is None else appointments.table.ids.referred(key)
        return None

    async def hours(self, source: int, calendar: Calendar) -> Sequence[HoursRow | None]:
        return await self._rows(self._adapter.hours_rows[source], calendar)

    async def busy(self, source: int, span: DiarySpan) -> Sequence[TimeRow | None]:
        rows = self._adapter.busy_rows[source]
        return await self._rows(rows, span.calendar, rows.bounds(span.window))

    async def slots(self, source: int, span: DiarySpan) -> Sequence[TimeRow | None]:
        rows = self._adapter.slot_rows[source]
        return await self._rows(rows, span.calendar, rows.bounds(span.window))

    async def durations(self, source: int, calendar: Calendar, type_id: str) -> Sequence[Any]:
        rows = self._adapter.duration_rows[source]
        # a UUID that was not met yet may be kept in another case; `exists` finds out
        key = self._adapter.readers["appointmentTypes"].keys_of(type_id)[0]
        return await self._rows(rows, calendar, rows.bounds(key))

    async def _rows(
        self, rows: diary.CalendarRows, calendar: Calendar, bounds: Mapping[str, Any] = NOTHING
    ) -> list[Any]:
        owners = self._vet(calendar.vet) if rows.by_vet else [calendar.schedule]
        found: list[Any] = []
        for question in rows.questions(owners, bounds):
            found += map(rows.row, await self.opened.rows(question))
        return found

    def kept(self, draft: Draft) -> Draft:
        return self._adapter.writes.kept(draft)

    async def lock(self, calendar: Calendar) -> None:
        """Takes a lock until the transaction ends; spellings that may be one key share it."""
        name, vet = f"schedule:{calendar.schedule}", self._vet(calendar.vet)
        keys: Sequence[Any] = [calendar.schedule]
        if calendar.schedule is None:
            keys = vet
            is_native = self._adapter.readers["vets"].is_native
            key = calendar.vet if is_native else keys[0]
            parts = Columns.spelling(key, folded=True)
            name = "vet:" + ";".join(map(str.strip, parts))
        values = {"vet": vet[0], "schedule": calendar.schedule}
        self._adapter.locks.take(self.connection, name, keys, values)

    async def lock_alone(self, vet: str) -> None:
        self._adapter.locks.take_alone(self.connection, self._vet(vet))

    def before_writing(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()  # nothing is written before

    async def write(self, draft: Draft, offer: Offer) -> str:
        """Writes the rows of the booking and returns the public id of the new appointment."""
        values = offered_values(draft, offer)
        async with self.after_writing():
            key = self._adapter.writes.write(self.connection, values, self.progress, self._undo)
            public_id: str | None = None
            with suppress(Unreadable):
                table = self._adapter.readers["appointments"].table
                public_id = table.ids.shown(key)
            if public_id is None:
                raise BackendNonsense("the new appointment has no usable id")
        return public_id

    @asynccontextmanager
    async def after_writing(self) -> AsyncIterator[None]:
        """Withdraws what was written if the block fails. NotFound becomes BackendNonsense."""
        try:
            yield
        except Exception as error:
            await self.withdraw()
            if isinstance(error, NotFound):
                raise BackendNonsense("the new appointment cannot be read back") from error
            raise

    def undoing(self) -> list[str]:
        """Returns the statements that delete what stands and no ROLLBACK undoes, last first."""
        dialect, literal = self.connection.dialect, {"literal_binds": True}
        compiled = (each.compile(dialect=dialect, compile_kwargs=literal) for each in self._undo)
        return [" ".join(str(each).split()) for each in reversed(list(compiled))]

    async def withdraw(self) -> None:
        """Deletes, last first, what no ROLLBACK undoes. Raises the first failure at the end."""
        failure: SQLAlchemyError | None = None
        for deletion in self._undo[::-1]:
            try:
                if self.connection.execute(deletion).rowcount:
                    self._undo.remove(deletion)
            except SQLAlchemyError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        if not self._undo:  # a deletion that found no row leaves what it was to delete
            self.connection.info.pop(HALF, None)

    async def left_behind(self, draft: Draft, interval: Interval, since: datetime) -> list[Record]:
        appointments = self.reader("appointments")
        if self._adapter.reference is not None and draft.reference:
            mark = self._adapter.mark(draft.reference)
            return await appointments.marked(self._adapter.reference, mark, MOST_ALIKE)
        filters = [
            Filter("equals", ("vetId",), draft.vet_id),
            Filter("around", ("scheduledAt",), draft.scheduled_at),
            Filter("equals", ("patientId",), draft.patient_id),
        ]
        if "createdAt" in self._adapter.filterable["appointments"]:
            filters.append(Filter("written since", ("createdAt",), since))
        return (await appointments.page(filters, MOST_ALIKE, None)).records


def engine_of(options: AdapterOptions, mapping: MappingFile, document: Document) -> Engine:
    """Returns the engine of an address, for what the mapping reads and writes."""
    return open_engine(
        options.url,
        timeout=options.timeout,
        booking_timeout=options.booking_timeout,
        in_flight=options.in_flight,
        copy=options.copy,
        reads=partial(reads_of, mapping, document, options.shapes),
    )


class SqlAdapter(MappedAdapter):
    """A mapped SQL database as an Adapter.

    Making one raises ValueError where there is no mapping, and DocumentErrors where the mapping or
    the address cannot be used.
    """

    # bookings and look-ups wait for one another in the database itself
    excludes: ClassVar[bool] = True
    readers: Mapping[str, SqlReader]

    def __init__(self, options: AdapterOptions) -> None:
        wrong, code = wrong_with(options.url), "bad-address"
        problems = [Problem("backend.url", 0, 0, text, code) for text in wrong]
        problems += bookings_refused(options)
        mapping, document = open_mapping(options, "sql", problems)
        self.engine = engine_of(options, mapping, document)
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
        self.locks = BookingLock(mapping, speech)
        super().__init__(options, mapping, document, converters, readers)
        diary_map = mapping.diary
        self.hours_rows = [diary.HoursRows(hours) for hours in diary_map.hours]
        self.busy_rows = [diary.BusyRows(source, speech) for source in self.diary.busy]
        self.slot_rows = [diary.SlotRows(source) for source in self.diary.free]
        self.duration_rows = [diary.DurationRows(durations) for durations in diary_map.durations]
        self.schedule_rows = self.vets_there = None
        if (schedules := diary_map.schedules) is not None:
            self.schedule_rows = diary.ScheduleRows(schedules)
            self.vets_there = diary.vets_in(schedules)
        reference = mapping.booking.reference
        self.reference = None if reference is None else sql(reference)

    def vet_keys(self, vet: str) -> Sequence[Any]:
        """Returns the raw keys of a vet, in all spellings."""
        return self.readers["vets"].keys_of(vet)

    def _work(self, flow: Callable[[SqlSession], Awaitable[T]]) -> Callable[[Connection], T]:
        opened = self.engine.opened
        return lambda connection: session.complete(flow(SqlSession(self, opened(connection))))

    async def one(self, resource: str, public_id: str, only: Only, fields: Fields) -> Record:
        """Reads one record by its statements alone, as most calls are such reads."""
        reader = self.readers[resource]
        keys = reader.keys_of(public_id)
        return await self.engine.ask(
            lambda opened: SqlRecords(reader, opened, keys).one(public_id, only, fields),
            alone=not reader.table.lists,
        )

    async def read(self, flow: Callable[[SqlSession], Awaitable[T]], *, reads: int = 1) -> T:
        return await self.engine.ask(lambda opened: flow(SqlSession(self, opened)))

    async def look(self, flow: Callable[[SqlSession], Awaitable[T]]) -> T:
        """Runs a flow that only reads, and may use the session's `connection`."""
        return await self.engine.read(self._work(flow))

    async def search(self, flow: Callable[[SqlSession], Awaitable[T]]) -> T:
        return await self.engine.search(self._work(flow))

    async def book(self, flow: Callable[[SqlSession], Awaitable[T]]) -> T:
        return await self.engine.book(self._work(flow))

    async def aclose(self) -> None:
        await self.engine.aclose()

    async def check(self) -> Sequence[Problem]:
        """Raises DocumentErrors where the database lacks something that the mapping names.

        Returns a warning for a key that makes no id, as other rows may have better ones.
        """
        await self.engine.ping()  # fails sooner where nothing answers
        wrong = await self.engine.inspect(lambda work: list(self.mismatches(work)))
        problems = [self.document.problem(it.place, it.text, it.code) for it in wrong]
        return [*warnings_of(problems), *copy_warnings(self.engine)]

    def mismatches(self, connection: Connection) -> Iterator[SchemaMismatch]:
        """Yields what is wrong between the mapping and the database."""
        named = (self.mapping, self.document, self.engine.speech, self.converters.ids)
        yield from mismatches_in(connection, *named)
        if self.engine.copy is not None:
            yield from numbered_anew(connection, self.mapping)
