"""The doctor of a mapped database: looks at all that a mapping says, on real rows.

The door: `examine` looks in the order in which an integrator would mend: names, rights, values,
what leads where, the diary, clocks, plans, and a booking that is undone.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

from sqlalchemy import Connection

from adapters.base import AdapterError, AdapterOptions, Trouble
from adapters.examine import Examination, Finding
from adapters.findings.maker import short
from adapters.findings.todos import todos
from adapters.sql.doctor.account import account
from adapters.sql.doctor.case import Case, Look, Step
from adapters.sql.doctor.clocks import clocks
from adapters.sql.doctor.diary import diary
from adapters.sql.doctor.links import links
from adapters.sql.doctor.lists import lists
from adapters.sql.doctor.names import names
from adapters.sql.doctor.plans import plans
from adapters.sql.doctor.rehearsal import rehearsal
from adapters.sql.doctor.values import values
from adapters.sql.doctor.zones import zones
from adapters.sql.parts import open_parts

# Seconds of one look, which may be at many rows.
PATIENCE, PATIENCE_FOR_ALL = 60.0, 1800.0
LOOKS: tuple[Look, ...] = (names, account, values, lists, links, diary, zones, clocks, plans)


def _found(step: Step, connection: Connection) -> list[Finding]:
    return list(step.run(connection))


async def examine(options: AdapterOptions, examination: Examination) -> AsyncIterator[Finding]:
    """What is found; a look that fails is a finding, and the others go on."""
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
