"""Looks at a connected practice system: what its mapping says, on real rows.

The door: `examiner_of` and `surveyor_of` say who looks behind the verbs of an adapter. The modules
beside it judge alike, whatever practice system is looked at, and make no calls.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from adapters.base import Adapter
from adapters.documents.problems import Problem
from adapters.examination import Examinable, Examination, Finding, LeftOut, Survey, Surveyable
from adapters.mapped.plan import filled_fields

DOCTORS = {
    "adapters.sql.adapter": "adapters.doctor.sql",
    "adapters.rest.adapter": "adapters.doctor.rest",
}
Examiner = Callable[[Examination], AsyncIterator[Finding]]
Surveyor = Callable[[], Awaitable[Survey]]


def examiner_of(adapter: Adapter) -> Examiner | None:
    """Returns what examines the adapter's practice system; None where nothing can."""
    if doctor := _doctor(adapter):
        return lambda examination: doctor.examine(adapter, examination)
    return adapter.examine if isinstance(adapter, Examinable) else None


def surveyor_of(adapter: Adapter) -> Surveyor | None:
    """Returns what tells what the adapter's mapping leaves out; None where nothing can."""
    if doctor := _doctor(adapter):
        return lambda: doctor.survey(adapter)
    return adapter.survey if isinstance(adapter, Surveyable) else None


def _doctor(adapter: Adapter) -> ModuleType | None:
    """Imports a doctor only when it is asked for: a gateway that serves needs none."""
    name = DOCTORS.get(type(adapter).__module__)
    return None if name is None else import_module(name)


class Omission(NamedTuple):
    """Names of a source of a resource of which no field is made, and where it is read."""

    resource: str
    source: str
    names: Sequence[str]
    read_at: Problem


def surveyed(resources: Mapping[str, Any], omissions: Iterable[Omission]) -> Survey:
    """Returns what the mapping of these resources leaves out, and what it fills."""
    found = (
        LeftOut(
            resource=omission.resource,
            source=omission.source,
            names=tuple(omission.names),
            file=omission.read_at.file,
            line=omission.read_at.line,
            column=omission.read_at.column,
        )
        for omission in omissions
    )
    return Survey(left_out=tuple(found), filled=filled_fields(resources))
