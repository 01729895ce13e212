"""RestAdapter: a practice system that speaks JSON over HTTP, through a mapping, as an Adapter."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from adapters.base import AdapterOptions
from adapters.documents.document import Document
from adapters.documents.problems import Problem, warnings_of
from adapters.mapped.adapter import Core, MappedAdapter
from adapters.mapped.booking import BookingFlow
from adapters.mapped.diary import Diary
from adapters.mapped.repeated import RepeatedHours
from adapters.mapping.converters import Converters
from adapters.mapping.loading import load_mapping, loaded_beside
from adapters.mapping.models import MappingFile
from adapters.rest.backend import Backend
from adapters.rest.booking import BookingCalls
from adapters.rest.checks import found_in
from adapters.rest.client import Client, address_problem
from adapters.rest.diary import DiaryCalls, asks_by_day
from adapters.rest.places import Places
from adapters.rest.reading import ResourceReader
from adapters.rest.records import FoundValues
from adapters.rest.session import RestDriver, RestPlan
from adapters.rest.templates import Templates
from adapters.rest.toolbox import Toolbox


class RestAdapter(MappedAdapter):
    """Reads and books through the calls that the mapping gives, over `client` or one of its own.

    ValueError where there is no mapping; DocumentErrors where it or the address can't be used.
    """

    def __init__(self, options: AdapterOptions, client: Client | None = None) -> None:
        mapping, document = _mapping(options)
        self.tools = tools = _tools(mapping, options, client)
        self.readers = readers = {
            name: ResourceReader(name, resource, tools)
            for name, resource in mapping.resources.items()
        }
        converters, fields = tools.values.converters, readers["appointments"].maker.fields.by_name
        hours = RepeatedHours(fields, options.times)
        diary = Diary(mapping.diary, converters, options.report, shortens_slots=False)
        plan = RestPlan(
            readers=readers,
            diary=DiaryCalls(diary, tools),
            calls=BookingCalls(mapping.booking, readers["appointments"], tools),
        )
        self.driver = RestDriver(
            plan,
            tools,
            ping=mapping.backend.ping,
            settle=mapping.booking.settle,
            patience=options.booking_timeout,
        )
        bookings = BookingFlow(
            diary,
            hours,
            fields,
            has_reference=mapping.booking.reference is not None,
            asked_by_day=any(map(asks_by_day, mapping.diary.busy)),
        )
        core = Core(
            mapping=mapping,
            document=document,
            converters=converters,
            readers=readers,
            diary=diary,
            bookings=bookings,
            hours=hours,
            driver=self.driver,
        )
        super().__init__(options, core)

    async def check(self) -> Sequence[Problem]:
        """DocumentErrors where a call fails; a path that leads to nothing is a warning."""
        return warnings_of([each async for each in found_in(self.core, self.driver)])


def _tools(mapping: MappingFile, options: AdapterOptions, client: Client | None) -> Toolbox:
    converters = Converters(
        ZoneInfo(mapping.zone),
        options.secret,
        kinds={name: resource.key.ids for name, resource in mapping.resources.items()},
        table=options.ids,
        one_spelling=True,
    )
    templates = Templates(converters, options.credentials)
    client = client or Client(options.url, timeout=options.timeout)
    return Toolbox(
        shapes=options.shapes,
        values=FoundValues(converters),
        templates=templates,
        backend=Backend(mapping.backend, templates, client),
        places=Places(options.secret, options.ids),
        report=options.report,
        timeout=options.timeout,
    )


def _mapping(options: AdapterOptions) -> tuple[MappingFile, Document]:
    """The mapping, and where all of it stands.

    DocumentErrors with all that is wrong with it and with the address.
    """
    path = options.mapping
    if path is None:
        raise ValueError("the rest adapter needs a mapping file: set backend.mapping")
    said = address_problem(options.url)
    problems = [] if said is None else [Problem("backend.url", 0, 0, said)]
    return loaded_beside(
        problems, lambda: load_mapping(path, options.shapes, "rest", options.credentials)
    )
