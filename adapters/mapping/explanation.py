"""Tells people what a mapping makes of a resource, line by line."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from adapters.base import FieldShape, inside, lists_in
from adapters.mapping.conversion import Conversion
from adapters.mapping.converters import Converters, conversion_name
from adapters.mapping.models import ListMap, ResourceMap, ValueSource

# Neither the zone nor the secret changes what makes a field null.
_CONVERTERS = Converters(ZoneInfo("UTC"), secret=bytes(32))


@dataclass(frozen=True, slots=True)
class PlanLine:
    """A field, where it comes from, its converter, and what makes it null."""

    field: str
    source: str = "-"
    converter: str = "-"
    null: str = "always: it is not mapped"


def explained(
    resource: str, mapped: ResourceMap | ListMap, shapes: Mapping[str, FieldShape], prefix: str = ""
) -> Iterator[PlanLine]:
    """Yields a line for each field of the record, and for those of lists inside it."""
    for name, shape in inside(shapes, prefix).items():
        path, source = f"{prefix}{name}", mapped.fields.get(name)
        if name == "id" and mapped.key is not None:
            how = f"{mapped.key.ids} of {resource}"
            yield PlanLine(path, source_of(mapped.key), how, "never: no record then")
        elif source is not None:
            null = [code for code, value in (source.codes or {}).items() if value is None]
            null += getattr(_CONVERTERS.make(source, shape), "zero", ())
            nulls = ", ".join(["null", *(text or "''" for text in null)])
            yield PlanLine(path, source_of(source), converter_of(source, shape), nulls)
        else:
            yield PlanLine(path)
    if isinstance(mapped, ResourceMap):
        for name in lists_in(shapes):
            if name in mapped.lists:
                yield from explained(resource, mapped.lists[name], shapes, f"{name}[].")
            else:
                yield PlanLine(f"{name}[]")


def source_of(source: ValueSource) -> str:
    """Returns the paths or expressions of a value on one line, with what must match."""
    text = " | ".join(" ".join(expression.split()) for expression in source.source)
    taken = source.match or (source.reference and f"{source.reference}/...")
    return f"{text} ({taken})" if taken else text


def converter_of(source: ValueSource, shape: FieldShape) -> str:
    """Returns the converter's name, and the parameters that the mapping gives it."""
    given = {name: getattr(source, name) for name in Conversion.model_fields}
    given["of"] = source.of or shape.refers
    codes = (source.codes or {}).items()
    given["codes"] = tuple(f"{code}={value}" for code, value in codes) or None
    more = ", ".join(
        f"{name}: {' '.join(map(str, value)) if isinstance(value, tuple) else value}"
        for name, value in given.items()
        if name not in ("as_", "zero") and value is not None
    )
    name = conversion_name(source, shape)
    return f"{name} ({more})" if more else name
