"""The doctor of a mapped JSON backend: asks all that a mapping says, and looks at what comes.

The door: `examine` looks in the order in which an integrator would mend: the login, calls, paths,
values, what leads where, pages, filters, the diary, clocks, and what a booking is made with.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from functools import partial

from adapters.base import Trouble
from adapters.doctor.case import Look, examined
from adapters.doctor.clocks import newest
from adapters.doctor.diary import diary
from adapters.doctor.links import links
from adapters.doctor.rest.answers import answers
from adapters.doctor.rest.booking import booking
from adapters.doctor.rest.calls import clock, login, logins, speed
from adapters.doctor.rest.case import RestCase, WatchedClient
from adapters.doctor.rest.filters import filters
from adapters.doctor.rest.pages import pages
from adapters.doctor.rest.survey import left_out
from adapters.doctor.rest.values import paths, values
from adapters.doctor.todos import todos
from adapters.doctor.zones import zones
from adapters.examination import Examination, Finding, Survey
from adapters.rest.adapter import RestAdapter

# Seconds that one call may take, so that a slow one is found out and not given up.
PATIENCE = 20.0
AHEAD, MOST_VETS = timedelta(days=14), 10
LOOKS: tuple[Look, ...] = (
    login, answers, paths, values, links, pages, filters, partial(diary, ahead=AHEAD), zones, clock,
    newest, booking, logins, speed,
)  # fmt: skip


async def examine(adapter: RestAdapter, examination: Examination) -> AsyncIterator[Finding]:
    """Yields what is found; a look that fails is a finding, and the others go on.

    It opens connections of its own, which have more time than a call's.
    """
    troubles: list[Trouble] = []
    options = adapter.options
    patience = max(PATIENCE, options.timeout)
    client = WatchedClient(options.url, timeout=patience)
    own = RestAdapter(replace(options, report=troubles.append, timeout=patience), client)
    case = RestCase(
        adapter=own,
        core=own.core,
        client=client,
        examination=examination,
        shapes=options.shapes,
        troubles=troubles,
        most_vets=MOST_VETS,
        patience=options.timeout,
    )
    own.core.converters.keep_no_ids()
    try:
        for left in todos(case):
            yield left
        async for found in examined(case, LOOKS):
            yield found
    finally:
        await own.aclose()


async def survey(adapter: RestAdapter) -> Survey:
    """Returns the members of a sample of records that no field is made of; AdapterErrors."""
    return await left_out(adapter)
