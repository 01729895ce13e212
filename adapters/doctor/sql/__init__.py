"""The doctor of a mapped database: looks at all that a mapping says, on real rows.

The door: `examine` looks in the order in which an integrator would mend: names, rights, values,
what leads where, the diary, clocks, plans, and a booking that is undone.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

from adapters.doctor import surveyed
from adapters.doctor.case import Look, examined
from adapters.doctor.diary import diary
from adapters.doctor.sql.booking import account, rehearsal
from adapters.doctor.sql.plans import plans
from adapters.doctor.sql.rows import SqlCase
from adapters.doctor.sql.schema import clock, names, omissions
from adapters.doctor.values import links, newest, values
from adapters.examination import Examination, Finding, Survey
from adapters.sql.adapter import SqlAdapter


def examine(adapter: SqlAdapter, examination: Examination) -> AsyncIterator[Finding]:
    case = SqlCase(adapter, examination)
    return examined(case, _looks(case))


def _looks(case: SqlCase) -> Iterator[Look]:
    yield case.look("mapping", "names", names)
    for looks in (account, values, links, diary):
        yield from looks(case)
    yield case.look("clock", "server", clock)
    yield from newest(case)
    yield from plans(case)
    if case.examination.booking:
        yield replace(case.look("booking", "rehearsal", rehearsal), alone=True)


async def survey(adapter: SqlAdapter) -> Survey:
    """Returns the columns of the mapped tables that no field is made of; AdapterErrors."""
    engine = adapter.engine
    return await engine.inspect(
        lambda connection: surveyed(adapter, omissions(connection, engine.speech, adapter))
    )
