"""The doctor of a mapped JSON backend: asks all that a mapping says, and looks at what comes.

The door: `examine` looks in the order in which an integrator would mend: the login, calls, paths,
values, what leads where, pages, filters, the diary, clocks, and what a booking is made with.
"""

from collections.abc import AsyncIterator
from dataclasses import replace

from adapters.base import Trouble
from adapters.doctor import surveyed
from adapters.doctor.case import Look, examined, single
from adapters.doctor.clocks import newest, zones
from adapters.doctor.diary import diary
from adapters.doctor.rest.calls import (
    RestCase,
    WatchedClient,
    answers,
    booking,
    clock,
    login,
    renewal,
    speed,
)
from adapters.doctor.rest.lists import filters, pages
from adapters.doctor.rest.records import omissions, paths, values
from adapters.doctor.values import links
from adapters.examination import Examination, Finding, Survey
from adapters.rest.adapter import RestAdapter

# Seconds that one call may take, so that a slow one is found out and not given up.
PATIENCE = 20.0
LOOKS: tuple[Look, ...] = (
    login, answers, single("mapping", "paths", paths), values,
    links, pages, filters, diary, zones, single("clock", "server", clock), newest, booking,
    single("login", "renewal", renewal), single("calls", "speed", speed),
)  # fmt: skip


async def examine(adapter: RestAdapter, examination: Examination) -> AsyncIterator[Finding]:
    """Yields what is found, through connections of its own, which have more time than a call's."""
    troubles: list[Trouble] = []
    options = adapter.options
    patience = max(PATIENCE, options.timeout)
    client = WatchedClient(options.url, timeout=patience)
    own = RestAdapter(replace(options, report=troubles.append, timeout=patience), client)
    case = RestCase(
        document=own.core.document,
        adapter=own,
        examination=examination,
        troubles=troubles,
        client=client,
        patience=options.timeout,
    )
    own.core.converters.keep_no_ids()
    try:
        async for finding in examined(case, LOOKS):
            yield finding
    finally:
        await own.aclose()


async def survey(adapter: RestAdapter) -> Survey:
    """Returns the members of a sample of records that no field is made of; AdapterErrors."""
    found = [omission async for omission in omissions(adapter)]
    return surveyed(adapter.core.mapping.resources, found)
