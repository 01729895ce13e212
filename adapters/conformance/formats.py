"""What the shapes say a record must look like: names, kinds of values, allowed values, ids."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import Any

from adapters.base import FieldShape, Record

Check = Callable[[Any], bool]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _written(pattern: str, read: Callable[[str], object] = str) -> Check:
    """A text of that pattern that `read` does not refuse."""
    matches = re.compile(pattern).fullmatch

    def check(value: Any) -> bool:
        if not isinstance(value, str) or matches(value) is None:
            return False
        try:
            read(value)
        except ValueError:
            return False
        return True

    return check


_TWO_PLACES = _written(r"-?[0-9]+\.[0-9]{2}")
FORMATS: Mapping[str, Check] = {
    "uuid": _written("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    "text": lambda value: isinstance(value, str),
    "email": _written(r"[^@\s]+@[^@\s]+"),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": _number,
    "date-time": _written("[0-9-]{10}T[0-9:]{8}Z", datetime.fromisoformat),
    "date": _written("[0-9]{4}-[0-9]{2}-[0-9]{2}", date.fromisoformat),
    "money": _TWO_PLACES,
    "percent": _TWO_PLACES,
    "color": _written("#[0-9A-Fa-f]{6}"),
}


def wrong_with(record: Record, shapes: Mapping[str, FieldShape]) -> list[str]:
    """What is wrong with a record of those shapes, one sentence each; [] where nothing is."""
    unknown = set(record) - {path.split("[].")[0] for path in shapes}
    found = [f"{name} is no field" for name in sorted(unknown)]
    for path, shape in shapes.items():
        if path == "id" or path.endswith(".id"):
            found += [f"{path} is missing" for value in _at(record, path) if value is None]
        found += [f"{path} is {value!r}, no {_kind(shape)}" for value in _odd(record, path, shape)]
    return found


def _odd(record: Record, path: str, shape: FieldShape) -> Iterator[Any]:
    for value in _at(record, path):
        if value is None:
            continue
        members = value if isinstance(value, list) else [value]
        right = shape.many is isinstance(value, list)
        if not right or not all(_fits(each, shape) for each in members):
            yield value


def _fits(value: Any, shape: FieldShape) -> bool:
    return FORMATS[shape.format](value) and (not shape.values or value in shape.values)


def _kind(shape: FieldShape) -> str:
    return f"one of {', '.join(shape.values)}" if shape.values else shape.format


def _at(record: Record, path: str) -> Iterator[Any]:
    """The values at a path such as `phone` or `lines[].total`; what is missing is None."""
    name, _, rest = path.partition("[].")
    if not rest:
        yield record.get(name)
        return
    for each in record.get(name) or ():
        yield from _at(each, rest)
