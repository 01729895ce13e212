"""Looks at a connected practice system: what its mapping says, on real rows.

The door: `examiner_of` and `surveyor_of` say who looks behind the verbs of an adapter. What stands
beside them here judges alike, whatever practice system is looked at, and makes no calls.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import import_module
from types import ModuleType

from adapters.base import Adapter
from adapters.examination import Examinable, Examination, Finding, Survey, Surveyable

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
