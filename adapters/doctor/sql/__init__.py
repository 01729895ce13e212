"""The doctor of a mapped database: looks at all that a mapping says, on real rows.

The door: `examine` looks in the order in which an integrator would mend: names, rights, values,
what leads where, the diary, clocks, plans, and a booking that is undone.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

from sqlalchemy import Connection

from adapters.base import AdapterError, Trouble
from adapters.doctor.findings import short
from adapters.doctor.sql.account import account
from adapters.doctor.sql.case import Case, Look, Step
from adapters.doctor.sql.clocks import clocks
from adapters.doctor.sql.diary import diary
from adapters.doctor.sql.links import links
from adapters.doctor.sql.lists import lists
from adapters.doctor.sql.names import names
from adapters.doctor.sql.plans import plans
from adapters.doctor.sql.rehearsal import rehearsal
from adapters.doctor.sql.survey import left_out
from adapters.doctor.sql.values import values
from adapters.doctor.sql.zones import zones
from adapters.doctor.todos import todos
from adapters.examination import Examination, Finding, Survey
from adapters.sql.adapter import SqlAdapter
from adapters.sql.parts import open_parts

# Seconds of one look, which may be at many rows.
PATIENCE, PATIENCE_FOR_ALL = 60.0, 1800.0
LOOKS: tuple[Look, ...] = (names, account, values, lists, links, diary, zones, clocks, plans)


def _found(step: Step, connection: Connection) -> list[Finding]:
    return list(step.run(connection))


async def examine(adapter: SqlAdapter, examination: Examination) -> AsyncIterator[Finding]:
    """Yields what is found; a look that fails is a finding, and the others go on.

    It opens connections of its own, which have more time than a call's.
    """
    options = adapter.options
    troubles: list[Trouble] = []
    patience = PATIENCE if examination.rows is not None else PATIENCE_FOR_ALL
    patient = replace(options, report=troubles.append, timeout=max(patience, options.timeout))
    case = Case(open_parts(patient), examination, options.shapes, troubles)
    case.parts.converters.keep_no_ids()
    try:
        for left in todos(case):
            yield left
        for look in LOOKS:
            for step in look(case):
                try:
                    found = await case.parts.engine.read(partial(_found, step))
                except AdapterError as error:
                    text = f"could not be looked at: {short(error)}"
                    found = [case.failed(step.check, step.subject, text, step.place)]
                for each in found:
                    yield each
        if examination.booking:
            async for each in rehearsal(case):
                yield each
    finally:
        await case.parts.engine.aclose()


async def survey(adapter: SqlAdapter) -> Survey:
    """Returns the columns of the mapped tables that no field is made of; AdapterErrors."""
    parts = adapter.parts
    return await parts.engine.inspect(
        lambda connection: left_out(connection, parts.mapping, parts.document)
    )
