"""Examines a connected practice system: what its mapping says, on real rows.

`doctor_of` finds the doctor of an adapter; the modules beside this one serve all of them.
"""

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any
from zoneinfo import ZoneInfo

from adapters.base import Adapter, AdapterOptions, Shapes
from adapters.documents.document import Place
from adapters.examination import Finding, Survey
from adapters.mapped.adapter import MappedAdapter
from adapters.mapped.records import RowReader
from adapters.mapping.converters import Converters
from adapters.mapping.models import MappingFile

DOCTORS = {
    "adapters.sql.adapter": "adapters.doctor.sql",
    "adapters.rest.adapter": "adapters.doctor.rest",
}


def mapped_by(adapter: Adapter) -> str:
    """Returns the module of the mapped adapter that it is, or is derived from; "" for none."""
    return next((it.__module__ for it in type(adapter).__mro__ if it.__module__ in DOCTORS), "")


def doctor_of(adapter: Adapter) -> Any:
    """Returns the module that examines and surveys an adapter, imported on demand, or None."""
    name = DOCTORS.get(mapped_by(adapter))
    return None if name is None else import_module(name)


async def half_read(adapter: str, options: AdapterOptions) -> list[Finding]:
    """Returns what the practice system lacks of a mapping with mistakes, as far as it can be read.

    Only a database is asked: calls could not be made of half a mapping.
    """
    if adapter != "sql":
        return []
    found: list[Finding] = await import_module(DOCTORS["adapters.sql.adapter"]).half_read(options)
    return found


def surveyed(adapter: MappedAdapter, omitted: Iterable[tuple[Place, str, Sequence[str]]]) -> Survey:
    """Returns what the mapping leaves out, and what it fills.

    Each of `omitted` is where the mapping reads a source, the source, and its names without a
    field.
    """
    what, problem = "has what no field is made of, which never gets out", adapter.document.problem
    left = tuple(
        problem(place, f"{source} {what}: {', '.join(names)}", at_key=place[-1] != "from")
        for place, source, names in omitted
        if names
    )
    filled = {name: reader.rows.filled() for name, reader in adapter.readers.items()}
    return Survey(left_out=left, filled=filled)


# What makes records of the rows of an adapter's mapping.
ROWS = {
    "sql": ("adapters.sql.columns", "KeyedRows"),
    "rest": ("adapters.rest.records", "JsonRows"),
}


def record_code(
    adapter: str, resource: str, mapping: MappingFile, shapes: Shapes
) -> dict[str, str]:
    """Returns the Python text that makes whole records of rows, by resource and list inside it.

    There is no secret in it, and the practice system is not asked.
    """
    module, name = ROWS[adapter]
    reader: type[RowReader] = getattr(import_module(module), name)
    made = Converters(ZoneInfo(mapping.zone), secret=bytes(32), kinds=mapping.ids)
    rows = reader(resource, mapping.resources[resource], shapes[resource], made, print)
    maker = rows.maker(None)
    inside = {f"{resource}.{name}": inner.source for name, inner in maker.inside.items()}
    return {resource: maker.source, **inside}
