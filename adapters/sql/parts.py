"""What a mapped database is made of: its mapping, its engine, its readers, its diary."""

from collections.abc import Mapping
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from adapters.base import AdapterOptions, Report
from adapters.documents.document import Document
from adapters.documents.problems import Problem
from adapters.mapped.repeated import RepeatedHours
from adapters.mapping.converters import Converters
from adapters.mapping.loading import loaded_beside
from adapters.sql.diary import Diary
from adapters.sql.engines import open_engine, wrong_with
from adapters.sql.engines.base import Engine
from adapters.sql.load import load_mapping
from adapters.sql.mapping import Mapping as MappingFile
from adapters.sql.openings import Openings
from adapters.sql.reading import ResourceReader
from adapters.sql.writes import BookingWrites


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts, made of one mapping for one database."""

    mapping: MappingFile
    document: Document
    engine: Engine
    converters: Converters
    readers: Mapping[str, ResourceReader]
    openings: Openings
    diary: Diary
    hours: RepeatedHours
    report: Report


def open_parts(options: AdapterOptions) -> Parts:
    """ValueError where there is no mapping; DocumentErrors where it or the address is wrong."""
    mapping, document = _mapping(options)
    engine = open_engine(
        options.url, timeout=options.timeout, booking_timeout=options.booking_timeout
    )
    speech, report = engine.speech, options.report
    converters = Converters(
        ZoneInfo(mapping.zone),
        options.secret,
        kinds=mapping.kinds,
        table=options.ids,
        times_as_text=speech.times_as_text,
    )
    readers = {
        name: ResourceReader(name, rows, options.shapes[name], converters, report, speech)
        for name, rows in mapping.resources.items()
    }
    hours = RepeatedHours(readers["appointments"].table.by_name, options.times)
    writes = BookingWrites(mapping, converters)
    openings = Openings(mapping, converters, readers, report, speech, writes)
    return Parts(
        mapping=mapping,
        document=document,
        engine=engine,
        converters=converters,
        readers=readers,
        openings=openings,
        diary=Diary(mapping, converters.zone, readers, writes, openings, speech, hours),
        hours=hours,
        report=report,
    )


def _mapping(options: AdapterOptions) -> tuple[MappingFile, Document]:
    """The mapping, and where all of it stands.

    DocumentErrors with all that is wrong with it and with the address.
    """
    path = options.mapping
    if path is None:
        raise ValueError("the sql adapter needs a mapping file: set backend.mapping")
    problems = [Problem("backend.url", 0, 0, text) for text in wrong_with(options.url)]
    return loaded_beside(problems, lambda: load_mapping(path, options.shapes))
