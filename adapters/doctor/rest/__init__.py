"""The doctor of a mapped JSON backend: asks all that a mapping says, and looks at what comes.

The door: `examine` looks in the order in which an integrator would mend: the login, calls, paths,
values, what leads where, pages, filters, the diary, clocks, and what a booking is made with.
"""

from collections.abc import AsyncIterator, Iterator

from adapters.doctor import surveyed
from adapters.doctor.case import Look, examined
from adapters.doctor.diary import diary
from adapters.doctor.rest import calls, lists
from adapters.doctor.rest.calls import RestCase
from adapters.doctor.values import links, newest, values
from adapters.examination import Examination, Finding, Survey
from adapters.rest.adapter import RestAdapter


async def examine(adapter: RestAdapter, examination: Examination) -> AsyncIterator[Finding]:
    case = RestCase(adapter, examination)
    async for finding in examined(case, _looks(case)):
        yield finding


def _looks(case: RestCase) -> Iterator[Look]:
    yield case.look("login", "token", calls.login, "backend", "login")
    yield from calls.answers(case)
    yield case.look("mapping", "paths", lists.paths)
    for looks in (values, links, lists.pages, lists.filters, diary):
        yield from looks(case)
    yield case.look("clock", "server", calls.clock)
    yield from newest(case)
    yield case.look("booking", "clash", calls.clash, "booking", "steps")
    yield case.look("booking", "find", calls.lookup, "booking", "find")
    if case.examination.booking:
        yield case.look("booking", "rehearsal", calls.rehearsal)
    yield case.look("login", "renewal", calls.renewal)
    yield case.look("calls", "speed", calls.speed)


async def survey(adapter: RestAdapter) -> Survey:
    """Returns the members of a sample of records that no field is made of; AdapterErrors."""
    return surveyed(adapter.core, [omission async for omission in lists.omissions(adapter)])
