"""RestAdapter: a practice system that speaks JSON over HTTP, through a mapping, as an Adapter."""

from collections.abc import Sequence

from adapters.base import AdapterOptions
from adapters.documents.problems import Problem, warnings_of
from adapters.mapped.adapter import Core, MappedAdapter
from adapters.mapping.loading import load_mapping, loaded_beside
from adapters.rest.checks import found_in
from adapters.rest.client import Client, address_problem
from adapters.rest.resource import Components, ResourceCalls
from adapters.rest.session import RestDriver


class RestAdapter(MappedAdapter):
    """Reads and books through the calls that the mapping gives, over `client` or one of its own.

    ValueError where there is no mapping; DocumentErrors where it or the address can't be used.
    """

    def __init__(self, options: AdapterOptions, client: Client | None = None) -> None:
        path = options.mapping
        if path is None:
            raise ValueError("the rest adapter needs a mapping file: set backend.mapping")
        text = address_problem(options.url)
        mapping, document = loaded_beside(
            [] if text is None else [Problem("backend.url", 0, 0, text)],
            lambda: load_mapping(path, options.shapes, "rest", options.credentials),
        )
        client = client or Client(options.url, timeout=options.timeout)
        self.parts = parts = Components(mapping, options, client)
        self.readers = readers = {
            name: ResourceCalls(name, resource, parts)
            for name, resource in mapping.resources.items()
        }
        core = Core(options, mapping, document, parts.converters, readers, asked_by_day=True)
        self.driver = RestDriver(core, readers, parts, options.booking_timeout)
        super().__init__(options, core, self.driver)

    async def check(self) -> Sequence[Problem]:
        """DocumentErrors where a call fails; a path that leads to nothing is a warning."""
        return warnings_of([found async for found in found_in(self.core, self.driver)])
