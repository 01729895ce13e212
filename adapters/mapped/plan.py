"""A resource compiled: what is fetched for each record, and how that becomes its fields.

A plan is made once, when the gateway starts, of the contract and the mapping. It is a value: a row
of a database and an object of JSON are two sources of the same plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from adapters.base import FieldShape, inside, lists_in
from adapters.ids import PublicIds
from adapters.mapping.converters import Converters
from adapters.mapping.models import ListMap, ResourceMap, ValueSource
from adapters.values.convert import Converter


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """A field: where its raw value is, and the converter that reads it."""

    name: str
    source: ValueSource
    shape: FieldShape
    converter: Converter


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """What a record is made of, or with a `prefix` such as `lines[].` a row of a list inside it.

    `names` are all fields that the contract has there; those that no field fills are null.
    """

    resource: str
    prefix: str
    key: ValueSource | None
    ids: PublicIds
    names: tuple[str, ...]
    fields: tuple[FieldPlan, ...]
    where: str | None
    lists: Mapping[str, "RowPlan"]
    list_names: tuple[str, ...]


def compile_resource(
    resource: str,
    mapped: ResourceMap | ListMap,
    shapes: Mapping[str, FieldShape],
    converters: Converters,
    prefix: str = "",
) -> RowPlan:
    """Returns the plan of a resource (or with its prefix of a list inside one) that was checked."""
    nested = mapped.lists if isinstance(mapped, ResourceMap) else {}
    own = inside(shapes, prefix)
    return RowPlan(
        resource=resource,
        prefix=prefix,
        key=mapped.key,
        ids=converters.ids(f"{resource}/{prefix}".removesuffix("[].").rstrip("/")),
        names=tuple(own),
        fields=tuple(
            FieldPlan(
                name,
                source,
                own[name],
                converters.make(source, own[name], columns=len(source.expressions)),
            )
            for name, source in mapped.fields.items()
        ),
        where=mapped.where,
        lists={
            name: compile_resource(resource, each, shapes, converters, f"{name}[].")
            for name, each in nested.items()
        },
        list_names=() if prefix else lists_in(shapes),
    )


def filled_fields(resources: Mapping[str, ResourceMap]) -> Mapping[str, frozenset[str]]:
    """Returns the fields that a mapping fills, by resource, those of lists inside included."""
    filled = {}
    for name, resource in resources.items():
        nested = [
            f"{each}[].{field}"
            for each, inner in resource.lists.items()
            for field in (*inner.fields, *(() if inner.key is None else ("id",)))
        ]
        filled[name] = frozenset(("id", *resource.fields, *nested))
    return filled
