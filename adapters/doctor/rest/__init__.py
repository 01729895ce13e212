"""The doctor of a mapped JSON backend: asks all that a mapping says, and looks at what comes.

The door: `examine` looks in the order in which an integrator would mend: the login, calls, paths,
values, what leads where, pages, filters, the diary, clocks, and what a booking is made with.
"""

from collections.abc import AsyncIterator
from dataclasses import replace

from adapters.base import AdapterError, Trouble
from adapters.doctor.findings import short
from adapters.doctor.rest.answers import answers
from adapters.doctor.rest.booking import booking
from adapters.doctor.rest.case import Case, Look, WatchedClient
from adapters.doctor.rest.clocks import clocks
from adapters.doctor.rest.diary import diary
from adapters.doctor.rest.filters import filters
from adapters.doctor.rest.links import links
from adapters.doctor.rest.login import login, logins
from adapters.doctor.rest.pages import pages
from adapters.doctor.rest.paths import paths
from adapters.doctor.rest.speed import speed
from adapters.doctor.rest.survey import left_out
from adapters.doctor.rest.values import values
from adapters.doctor.todos import todos
from adapters.examination import Examination, Finding, Survey
from adapters.rest.adapter import RestAdapter
from adapters.rest.parts import open_parts

# Seconds that one call may take, so that a slow one is found out and not given up.
PATIENCE = 20.0
LOOKS: tuple[Look, ...] = (
    login, answers, paths, values, links, pages, filters, diary, clocks, booking, logins, speed
)  # fmt: skip


async def examine(adapter: RestAdapter, examination: Examination) -> AsyncIterator[Finding]:
    """Yields what is found; a look that fails is a finding, and the others go on.

    It opens connections of its own, which have more time than a call's.
    """
    options = adapter.options
    troubles: list[Trouble] = []
    patience = max(PATIENCE, options.timeout)
    client = WatchedClient(options.url, timeout=patience)
    patient = replace(options, report=troubles.append, timeout=patience)
    case = Case(
        open_parts(patient, client), examination, options.shapes, client, troubles, options.timeout
    )
    case.parts.tools.values.converters.keep_no_ids()
    try:
        for left in todos(case):
            yield left
        for look in LOOKS:
            for step in look(case):
                try:
                    async for each in step.run():
                        yield each
                except AdapterError as error:
                    text = f"could not be looked at: {short(error)}"
                    yield case.failed(step.check, step.subject, text, step.place)
            if case.is_shut:
                return
    finally:
        await case.parts.tools.backend.aclose()


async def survey(adapter: RestAdapter) -> Survey:
    """Returns the members of a sample of records that no field is made of; AdapterErrors."""
    return await left_out(adapter.parts)
