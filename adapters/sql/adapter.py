"""SqlAdapter: a practice system's database, through a mapping, as an Adapter."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from adapters.base import AdapterOptions
from adapters.documents.problems import Problem, warnings_of
from adapters.mapped.adapter import Core, MappedAdapter
from adapters.mapped.plan import compile_resource
from adapters.mapping.converters import Converters
from adapters.mapping.loading import load_mapping, loaded_beside
from adapters.sql.booking import BookingWrites
from adapters.sql.checks import found_in
from adapters.sql.columns import sql
from adapters.sql.diary import DiaryRows
from adapters.sql.engines import open_engine, wrong_with
from adapters.sql.records import SqlReader
from adapters.sql.session import SqlDriver


class SqlAdapter(MappedAdapter):
    """Reads and books through the statements that the mapping gives.

    ValueError where there is no mapping; DocumentErrors where it or the address can't be used.
    """

    def __init__(self, options: AdapterOptions) -> None:
        path = options.mapping
        if path is None:
            raise ValueError("the sql adapter needs a mapping file: set backend.mapping")
        problems = [Problem("backend.url", 0, 0, text) for text in wrong_with(options.url)]
        mapping, document = loaded_beside(
            problems, lambda: load_mapping(path, options.shapes, "sql")
        )
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
        writes = BookingWrites(mapping, converters)
        core = Core(
            options,
            mapping,
            document,
            converters,
            readers,
            shortens_slots=writes.shortens_slots,
        )
        reference = mapping.booking.reference
        self.driver = SqlDriver(
            engine=engine,
            readers=readers,
            diary=DiaryRows(core.diary, speech),
            writes=writes,
            reference=None if reference is None else sql(reference),
        )
        super().__init__(options, core, self.driver)

    async def check(self) -> Sequence[Problem]:
        """DocumentErrors where the database lacks a table or column that the mapping names.

        A key of which no id can be made is a warning: other rows may have better ones.
        """
        engine, core = self.driver.engine, self.core
        await engine.ping()  # whether anything answers is known sooner
        named = (core.mapping, core.document, engine.speech, core.converters.ids)
        found = await engine.inspect(lambda connection: list(found_in(connection, *named)))
        return warnings_of(found)
