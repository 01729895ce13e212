"""The doctor of a mapped database: looks at all that a mapping says, on real rows.

The door: `examine` looks in the order in which an integrator would mend: names, rights, values,
what leads where, the diary, clocks, plans, and a booking that is undone.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

from adapters.base import Trouble
from adapters.doctor.case import Look, examined
from adapters.doctor.clocks import newest
from adapters.doctor.diary import diary
from adapters.doctor.links import links
from adapters.doctor.sql.account import account
from adapters.doctor.sql.case import SqlCase
from adapters.doctor.sql.clocks import clocks
from adapters.doctor.sql.names import names
from adapters.doctor.sql.plans import plans
from adapters.doctor.sql.rehearsal import rehearsal
from adapters.doctor.sql.survey import left_out
from adapters.doctor.sql.values import AHEAD, MOST_VETS, lists, values
from adapters.doctor.todos import todos
from adapters.doctor.zones import zones
from adapters.examination import Examination, Finding, Survey
from adapters.sql.adapter import SqlAdapter

# Seconds of one look, which may be at many rows.
PATIENCE, PATIENCE_FOR_ALL = 60.0, 1800.0
LOOKS: tuple[Look, ...] = (
    names, account, values, lists, links, partial(diary, ahead=AHEAD), zones, clocks, newest, plans
)  # fmt: skip


async def examine(adapter: SqlAdapter, examination: Examination) -> AsyncIterator[Finding]:
    """Yields what is found; a look that fails is a finding, and the others go on.

    It opens connections of its own, which have more time than a call's.
    """
    troubles: list[Trouble] = []
    options = adapter.options
    patience = PATIENCE if examination.rows is not None else PATIENCE_FOR_ALL
    patient = replace(options, report=troubles.append, timeout=max(patience, options.timeout))
    own = SqlAdapter(patient)
    case = SqlCase(
        adapter=own,
        core=own.core,
        examination=examination,
        shapes=options.shapes,
        troubles=troubles,
        most_vets=MOST_VETS,
    )
    own.converters.keep_no_ids()
    try:
        for left in todos(case):
            yield left
        async for found in examined(case, LOOKS):
            yield found
        if examination.booking:
            async for found in rehearsal(case):
                yield found
    finally:
        await own.aclose()


async def survey(adapter: SqlAdapter) -> Survey:
    """Returns the columns of the mapped tables that no field is made of; AdapterErrors."""
    core = adapter.core
    return await adapter.driver.engine.inspect(
        lambda connection: left_out(connection, core.mapping, core.document)
    )
