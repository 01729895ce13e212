"""SqlAdapter: a practice system's database, through a mapping, as an Adapter."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from adapters.base import AdapterOptions
from adapters.documents.document import Document
from adapters.documents.problems import Problem, warnings_of
from adapters.mapped.adapter import Core, MappedAdapter
from adapters.mapped.booking import BookingFlow
from adapters.mapped.diary import Diary
from adapters.mapped.plan import compile_resource
from adapters.mapped.repeated import RepeatedHours
from adapters.mapping.converters import Converters
from adapters.mapping.loading import load_mapping, loaded_beside
from adapters.mapping.models import MappingFile
from adapters.sql.booking import BookingWrites
from adapters.sql.checks import found_in
from adapters.sql.columns import sql
from adapters.sql.diary import DiaryRows
from adapters.sql.engines import open_engine, wrong_with
from adapters.sql.records import SqlReader
from adapters.sql.session import SqlDriver, SqlPlan


class SqlAdapter(MappedAdapter):
    """Reads and books through the statements that the mapping gives.

    ValueError where there is no mapping; DocumentErrors where it or the address can't be used.
    """

    def __init__(self, options: AdapterOptions) -> None:
        mapping, document = _mapping(options)
        limits = {"timeout": options.timeout, "booking_timeout": options.booking_timeout}
        engine = open_engine(options.url, **limits)
        speech, report, shapes = engine.speech, options.report, options.shapes
        self.converters = converters = Converters(
            ZoneInfo(mapping.zone),
            options.secret,
            kinds=mapping.ids,
            table=options.ids,
            times_as_text=speech.times_as_text,
        )
        self.readers = readers = {
            name: SqlReader(
                compile_resource(name, rows, shapes[name], converters),
                rows,
                shapes[name],
                report,
                speech,
            )
            for name, rows in mapping.resources.items()
        }
        fields = readers["appointments"].table.by_name
        hours = RepeatedHours(fields, options.times)
        writes = BookingWrites(mapping, converters)
        diary = Diary(mapping.diary, converters, report, shortens_slots=writes.shortens_slots)
        reference = mapping.booking.reference
        plan = SqlPlan(
            readers=readers,
            diary=DiaryRows(diary, speech),
            writes=writes,
            hours=hours,
            reference=None if reference is None else sql(reference),
        )
        self.driver = SqlDriver(engine, plan)
        core = Core(
            mapping=mapping,
            document=document,
            converters=converters,
            readers=readers,
            diary=diary,
            bookings=BookingFlow(
                diary, hours, fields, has_reference=reference is not None, asked_by_day=False
            ),
            hours=hours,
            driver=self.driver,
        )
        super().__init__(options, core)

    async def check(self) -> Sequence[Problem]:
        """DocumentErrors where the database lacks a table or column that the mapping names.

        A key of which no id can be made is a warning: other rows may have better ones.
        """
        engine, core = self.driver.engine, self.core
        await engine.ping()  # whether anything answers is known sooner
        named = (core.mapping, core.document, engine.speech, core.converters.ids)
        found = await engine.inspect(lambda connection: list(found_in(connection, *named)))
        return warnings_of(found)


def _mapping(options: AdapterOptions) -> tuple[MappingFile, Document]:
    """The mapping, and where all of it stands.

    DocumentErrors with all that is wrong with it and with the address.
    """
    path = options.mapping
    if path is None:
        raise ValueError("the sql adapter needs a mapping file: set backend.mapping")
    problems = [Problem("backend.url", 0, 0, text) for text in wrong_with(options.url)]
    return loaded_beside(problems, lambda: load_mapping(path, options.shapes, "sql"))
