"""A resource compiled: what is fetched for each record, and how that becomes its fields.

A plan is made once, when the gateway starts, of the contract and the mapping. It is a value: a row
of a database and an object of JSON are two sources of the same plan, and `explained` shows it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from adapters.base import FieldShape
from adapters.ids import PublicIds
from adapters.mapping.conversion import Conversion, conversion_name
from adapters.mapping.converters import Converters
from adapters.mapping.models import ListMap, ResourceMap, ValueSource
from adapters.values.convert import Converter
from adapters.values.wall_clock import ZERO_DATES


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """A field: where its raw value is, and the converter, by name and made, that reads it."""

    name: str
    source: ValueSource
    shape: FieldShape
    conversion: str
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
    has_id: bool
    names: tuple[str, ...]
    fields: tuple[FieldPlan, ...]
    where: str | None = None
    lists: Mapping[str, "RowPlan"] = field(default_factory=dict)
    list_names: tuple[str, ...] = ()


def compile_resource(
    name: str, mapped: ResourceMap, shapes: Mapping[str, FieldShape], converters: Converters
) -> RowPlan:
    """Returns the plan of a resource whose mapping has been checked."""
    lists = {
        inner: _rows(name, f"{inner}[].", each, shapes, converters, {}, ())
        for inner, each in mapped.lists.items()
    }
    list_names = tuple(dict.fromkeys(path.split("[].")[0] for path in shapes if "[]." in path))
    return _rows(name, "", mapped, shapes, converters, lists, list_names)


def _rows(
    resource: str,
    prefix: str,
    mapped: ResourceMap | ListMap,
    shapes: Mapping[str, FieldShape],
    converters: Converters,
    lists: Mapping[str, RowPlan],
    list_names: tuple[str, ...],
) -> RowPlan:
    own = {
        path.removeprefix(prefix): shape
        for path, shape in shapes.items()
        if path.startswith(prefix) and "[]" not in path.removeprefix(prefix)
    }
    return RowPlan(
        resource=resource,
        prefix=prefix,
        key=mapped.key,
        ids=converters.ids(f"{resource}/{prefix}".removesuffix("[].").rstrip("/")),
        has_id="id" in own,
        names=tuple(own),
        fields=tuple(
            FieldPlan(
                name,
                source,
                own[name],
                conversion_name(source, own[name]),
                converters.make(source, own[name], columns=len(source.expressions)),
            )
            for name, source in mapped.fields.items()
        ),
        where=mapped.where,
        lists=lists,
        list_names=list_names,
    )


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One line of a plan: a field, where it comes from, its converter, and what makes it null."""

    field: str
    source: str
    converter: str
    null: str


def explained(plan: RowPlan) -> Iterator[PlanLine]:
    """Yields a line for each field of the contract, those of lists inside the record included."""
    fields = {each.name: each for each in plan.fields}
    for name in plan.names:
        if name == "id" and plan.key is not None:
            how = f"{plan.key.ids} of {plan.resource}"
            yield PlanLine(f"{plan.prefix}id", _source(plan.key), how, "never: no record then")
        elif name not in fields:
            yield PlanLine(f"{plan.prefix}{name}", "-", "-", "always: it is not mapped")
        else:
            found = fields[name]
            how = _parameters(found)
            yield PlanLine(f"{plan.prefix}{name}", _source(found.source), how, _null(found))
    for name in plan.list_names:
        if name in plan.lists:
            yield from explained(plan.lists[name])
        else:
            yield PlanLine(f"{name}[]", "-", "-", "always: it is not mapped")


def _source(source: ValueSource) -> str:
    text = " | ".join(" ".join(each.split()) for each in source.source)
    return f"{text} ({source.match})" if source.match else text


def _parameters(found: FieldPlan) -> str:
    """The converter's name, and the parameters that the mapping gives it."""
    given = {
        name: getattr(found.source, name)
        for name in Conversion.model_fields
        if name not in ("as_", "codes", "zero") and getattr(found.source, name) is not None
    }
    codes = found.source.codes
    if codes:
        given["codes"] = " ".join(f"{code}={value}" for code, value in codes.items())
    if found.shape.refers is not None:
        given.setdefault("of", found.shape.refers)
    more = ", ".join(f"{name}: {_plain(value)}" for name, value in given.items())
    return f"{found.conversion} ({more})" if more else found.conversion


def _plain(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _null(found: FieldPlan) -> str:
    none = [code for code, value in (found.source.codes or {}).items() if value is None]
    if found.shape.format in ("date", "date-time"):
        none += found.source.zero if found.source.zero is not None else ZERO_DATES
    return ", ".join(["null", *(each or "''" for each in none)])


FilledFields = Mapping[str, frozenset[str]]


def filled_fields(resources: Mapping[str, ResourceMap]) -> FilledFields:
    """Returns the fields that a mapping fills, by resource, those of lists inside included."""
    return {name: frozenset(_paths(each)) for name, each in resources.items()}


def _paths(resource: ResourceMap) -> Iterator[str]:
    yield "id"
    yield from resource.fields
    for name, nested in resource.lists.items():
        if nested.key is not None:
            yield f"{name}[].id"
        yield from (f"{name}[].{each}" for each in nested.fields)
