"""Which fields a mapping of any kind fills."""

from collections.abc import Iterator, Mapping
from typing import Any

FilledFields = Mapping[str, frozenset[str]]


def filled_fields(resources: Mapping[str, Any]) -> FilledFields:
    """Resource -> paths of its fields, those inside lists of objects included."""
    return {name: frozenset(_paths(each)) for name, each in resources.items()}


def _paths(resource: Any) -> Iterator[str]:
    yield "id"
    yield from resource.fields
    for name, nested in resource.lists.items():
        if nested.key is not None:
            yield f"{name}[].id"
        yield from (f"{name}[].{each}" for each in nested.fields)
