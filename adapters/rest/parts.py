"""A mapping and an address made into what reads, and what knows the diary."""

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from adapters.base import AdapterOptions
from adapters.documents.document import Document
from adapters.documents.problems import Problem
from adapters.ids import SEALED, IdKeeper
from adapters.mapped.repeated import RepeatedHours
from adapters.mapping.converters import Converters
from adapters.mapping.loading import loaded_beside
from adapters.rest.backend import Backend
from adapters.rest.checking import load_mapping
from adapters.rest.client import Client, address_problem
from adapters.rest.diary import Diary
from adapters.rest.mapping import Mapping
from adapters.rest.places import Places
from adapters.rest.reading import ResourceReader
from adapters.rest.records import FoundValues
from adapters.rest.templates import Templates
from adapters.rest.toolbox import Toolbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What an adapter of JSON over HTTP is made of."""

    mapping: Mapping
    document: Document
    tools: Toolbox
    readers: dict[str, ResourceReader]
    diary: Diary
    hours: RepeatedHours
    keeper: IdKeeper


def open_parts(options: AdapterOptions, client: Client | None = None) -> Parts:
    """All of it, over `client` or one of its own; nothing is asked yet.

    ValueError where there is no mapping; DocumentErrors where it or the address can't be used.
    """
    mapping, document = _mapping(options)
    tools = _tools(mapping, options, client or Client(options.url, timeout=options.timeout))
    readers = {
        name: ResourceReader(name, resource, tools) for name, resource in mapping.resources.items()
    }
    hours = RepeatedHours(readers["appointments"].maker.fields.by_name, options.times)
    return Parts(
        mapping=mapping,
        document=document,
        tools=tools,
        readers=readers,
        diary=Diary(mapping, readers, tools, options.booking_timeout, hours),
        hours=hours,
        keeper=IdKeeper(dict(tools.values.converters.tabled), options.shapes),
    )


def _tools(mapping: Mapping, options: AdapterOptions, client: Client) -> Toolbox:
    kinds = {name: resource.key.as_ or SEALED for name, resource in mapping.resources.items()}
    converters = Converters(
        ZoneInfo(mapping.zone),
        options.secret,
        kinds=kinds,
        table=options.ids,
        one_spelling=True,
    )
    templates = Templates(converters, options.credentials)
    return Toolbox(
        shapes=options.shapes,
        values=FoundValues(converters),
        templates=templates,
        backend=Backend(mapping.backend, templates, client),
        places=Places(options.secret, options.ids),
        report=options.report,
        timeout=options.timeout,
    )


def _mapping(options: AdapterOptions) -> tuple[Mapping, Document]:
    """The mapping, and where all of it stands.

    DocumentErrors with all that is wrong with it and with the address.
    """
    path = options.mapping
    if path is None:
        raise ValueError("the rest adapter needs a mapping file: set backend.mapping")
    said = address_problem(options.url)
    problems = [] if said is None else [Problem("backend.url", 0, 0, said)]
    return loaded_beside(problems, lambda: load_mapping(path, options.shapes, options.credentials))
