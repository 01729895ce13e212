"""The doctor of a mapped JSON backend: asks all that a mapping says, and looks at what comes.

The door: `examine` looks in the order in which an integrator would mend: the login, calls, paths,
values, what leads where, pages, filters, the diary, clocks, and what a booking is made with.
"""

from collections.abc import AsyncIterator
from dataclasses import replace

from adapters.base import AdapterError, AdapterOptions, Trouble
from adapters.examine import Examination, Finding
from adapters.findings.maker import short
from adapters.findings.todos import todos
from adapters.rest.doctor.answers import answers
from adapters.rest.doctor.booking import booking
from adapters.rest.doctor.case import Case, Look, WatchedClient
from adapters.rest.doctor.clocks import clocks
from adapters.rest.doctor.diary import diary
from adapters.rest.doctor.filters import filters
from adapters.rest.doctor.links import links
from adapters.rest.doctor.login import login, logins
from adapters.rest.doctor.pages import pages
from adapters.rest.doctor.paths import paths
from adapters.rest.doctor.speed import speed
from adapters.rest.doctor.values import values
from adapters.rest.parts import open_parts

# Seconds that one call may take, so that a slow one is found out and not given up.
PATIENCE = 20.0
LOOKS: tuple[Look, ...] = (
    login, answers, paths, values, links, pages, filters, diary, clocks, booking, logins, speed
)  # fmt: skip


async def examine(options: AdapterOptions, examination: Examination) -> AsyncIterator[Finding]:
    """What is found; a look that fails is a finding, and the others go on."""
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
