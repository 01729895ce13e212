"""Looks at a connected practice system: what its mapping says, on real rows.

The door: `examiner_of` and `surveyor_of` say who looks behind the verbs of an adapter. The modules
beside it judge alike, whatever practice system is looked at, and make no calls.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from importlib import import_module
from types import ModuleType

from adapters.base import Adapter
from adapters.documents.document import Place
from adapters.examination import Examinable, Examination, Finding, LeftOut, Survey, Surveyable
from adapters.mapped.adapter import MappedAdapter

DOCTORS = {
    "adapters.sql.adapter": "adapters.doctor.sql",
    "adapters.rest.adapter": "adapters.doctor.rest",
}


def examiner_of(adapter: Adapter) -> Callable[[Examination], AsyncIterator[Finding]] | None:
    """Returns what examines the adapter's practice system; None where nothing can."""
    if doctor := _doctor(adapter):
        return lambda examination: doctor.examine(adapter, examination)
    return adapter.examine if isinstance(adapter, Examinable) else None


def surveyor_of(adapter: Adapter) -> Callable[[], Awaitable[Survey]] | None:
    """Returns what tells what the adapter's mapping leaves out; None where nothing can."""
    if doctor := _doctor(adapter):
        return lambda: doctor.survey(adapter)
    return adapter.survey if isinstance(adapter, Surveyable) else None


def _doctor(adapter: Adapter) -> ModuleType | None:
    """Imports a doctor only when it is asked for: a gateway that serves needs none."""
    name = DOCTORS.get(type(adapter).__module__)
    return None if name is None else import_module(name)


def surveyed(adapter: MappedAdapter, found: Iterable[tuple[Place, str, Sequence[str]]]) -> Survey:
    """Returns what the mapping leaves out, and what it fills.

    What is found: where the mapping reads a source, the source, and its names without a field.
    """
    left = []
    for place, source, names in found:
        at = adapter.document.problem(place, "", at_key=place[-1] != "from")
        if names:
            left.append(
                LeftOut(
                    resource=str(place[1]),
                    source=source,
                    names=tuple(names),
                    file=at.file,
                    line=at.line,
                    column=at.column,
                )
            )
    filled = {name: reader.rows.filled() for name, reader in adapter.readers.items()}
    return Survey(left_out=tuple(left), filled=filled)
