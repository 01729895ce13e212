"""Reads the values of open fields, and checks that they have the form that the contract requires.

There are two checks. A whole view must convert to the type of `struct`, which tells an existing day
from another one. `finisher` checks the rest: `45.00` and not `45.0`, a time in UTC. Where a view
fails, `typed_value` reads each value by itself with the same checks.
"""

import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType, SimpleNamespace
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec.structs import force_setattr

from adapters.base import Record
from adapters.documents.problems import did_you_mean
from gateway.contract import fields as formats
from gateway.contract.fields import Field
from gateway.policy.masks import Mask

NO_MASKS: Mapping[str, Mask] = MappingProxyType({})
_LARGEST = sys.float_info.max
_FINITE = Annotated[float, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]  # what JSON can say
# All others are texts that match the pattern of their format.
_TYPES: dict[str, Any] = {
    formats.UUID.name: UUID,
    formats.TEXT.name: str,
    # msgspec checks this pattern, so that it knows the blanks of all alphabets
    formats.EMAIL.name: Annotated[str, msgspec.Meta(pattern=rf"\A{formats.EMAIL.pattern}\Z")],
    formats.BOOLEAN.name: bool,
    formats.INTEGER.name: int,
    formats.NUMBER.name: int | _FINITE,
    formats.INSTANT.name: Annotated[datetime, msgspec.Meta(tz=True)],
    formats.DAY.name: date,
}


def value_type(field: Field) -> Any:
    """Returns the type of a field's value that is neither null nor a list of objects."""
    kind: Any = Literal[field.values] if field.values else _TYPES.get(field.format.name, str)
    return list[kind] if field.many else kind


def struct(name: str, fields: tuple[Field, ...]) -> Any:
    """Returns a struct type that takes these fields, in this order, from a record."""
    members: list[Any] = []
    for field in fields:
        kind = value_type(field)
        if field.fields:
            kind = list[struct(name + field.name.title(), field.fields)]  # type: ignore[misc]
        members.append((field.name, kind | None, None) if field.nullable else (field.name, kind))
    return msgspec.defstruct(name, members, kw_only=True, frozen=True, gc=False)


def finisher(
    fields: tuple[Field, ...], masks: Mapping[str, Mask] = NO_MASKS, prefix: str = ""
) -> Callable[[Any], bool]:
    """Returns a function that masks a converted view in place, or returns False for a wrong one."""
    masked = [(it.name, masks[path]) for it in fields if (path := prefix + it.name) in masks]
    is_sound = _soundness(fields, masks, prefix)

    def finish(view: Any) -> bool:
        if not is_sound(view):
            return False
        for name, mask in masked:
            value = getattr(view, name)
            if value is not None:
                force_setattr(view, name, mask(value))
        return True

    return finish if masked else is_sound


def projection(
    fields: tuple[Field, ...], masks: Mapping[str, Mask], prefix: str = ""
) -> Callable[[list[Record]], list[Record]]:
    """Returns what copies these members of records in the contract's form, and masks some."""
    names = [field.name for field in fields]
    changed: list[tuple[str, Callable[[Any], Any]]] = []
    for field in fields:
        path = f"{prefix}{field.name}"
        if field.fields:
            changed.append((field.name, projection(field.fields, masks, f"{path}[].")))
        elif path in masks:
            changed.append((field.name, _as_text(masks[path], field)))

    def project(records: list[Record]) -> list[Record]:
        views = [{name: record[name] for name in names} for record in records]
        for name, change in changed:
            for view in views:
                if view[name] is not None:
                    view[name] = change(view[name])
        return views

    return project


def _as_text(mask: Mask, field: Field) -> Callable[[Any], Any]:
    """Returns a mask of values in their JSON form."""
    if field.format is formats.DAY:
        return lambda text: mask(date.fromisoformat(text)).isoformat()
    if field.format is formats.INSTANT:
        return lambda text: formats.write_instant(mask(datetime.fromisoformat(text)))
    return mask


def _soundness(
    fields: tuple[Field, ...], masks: Mapping[str, Mask], prefix: str
) -> Callable[[Any], bool]:
    """Returns a check of what types do not: times in UTC and whole seconds, amounts in cents."""
    plain = [field for field in fields if not field.fields]
    instants = [field.name for field in plain if field.format is formats.INSTANT]
    patterns = [
        (field.name, re.compile(field.format.pattern or "").fullmatch)
        for field in plain
        if field.format.name not in _TYPES and not field.values
    ]
    lists = [
        (field.name, finisher(field.fields, masks, f"{prefix}{field.name}[]."))
        for field in fields
        if field.fields
    ]

    def is_sound(view: Any) -> bool:
        for name in instants:
            moment = getattr(view, name)
            if moment is not None and (moment.tzinfo is not UTC or moment.microsecond):
                return False
        for name, matches in patterns:
            text = getattr(view, name)
            if text is not None and matches(text) is None:
                return False
        for name, is_item_sound in lists:
            if not all(map(is_item_sound, getattr(view, name) or ())):
                return False
        return True

    return is_sound


def typed_value(field: Field, raw: Any, is_sound: Callable[[Any], bool] | None = None) -> Any:
    """Returns a value that is not null as views hold it; raises one of BROKEN for a wrong one."""
    value = msgspec.convert(raw, value_type(field))
    if isinstance(value, datetime) and value.utcoffset() == timedelta():
        value = value.astimezone(UTC)  # makes an offset of 0 the UTC object
    msgspec.json.encode(value)  # raises for a text that cannot be encoded
    is_sound = is_sound or finisher((field,))
    if not is_sound(SimpleNamespace(**{field.name: value})):
        raise ValueError(raw)
    return value


# All errors of reading or writing a value. A lone surrogate raises ValueError.
BROKEN = (msgspec.ValidationError, ValueError, OverflowError, TypeError, RecursionError)


class NoValue(Exception):
    """A written value is none of the field's. The text continues a sentence."""


def read_value(field: Field, written: Any) -> Any:
    """Returns a value that a person wrote as answers carry it; raises NoValue for a wrong one."""
    if written is None:
        return None
    if field.many:
        if not isinstance(written, list):
            raise NoValue("is a list; write it in brackets, such as [one, two]")
        return [_checked(field, part) for part in written]
    return _checked(field, written)


def _checked(field: Field, written: Any) -> Any:
    with suppress(*BROKEN, ArithmeticError):
        value = _as_answered(field, written)
        typed_value(field, [value] if field.many else value)
        return value
    if isinstance(written, dict | list):
        raise NoValue("is one plain value")
    if written is None:
        raise NoValue("holds values; nothing stands here")
    if field.values:
        near = did_you_mean(str(written), field.values)
        raise NoValue(f"is never {written}{near or '; it can be ' + ', '.join(field.values)}")
    if field.format in (formats.TEXT, formats.EMAIL) and not isinstance(written, str):
        raise NoValue("is a text: put what stands here in quotes")
    raise NoValue(field.format.problem)


def _as_answered(field: Field, written: Any) -> Any:
    is_amount = isinstance(written, int | float | str) and not isinstance(written, bool)
    if field.format in (formats.MONEY, formats.PERCENT) and is_amount:
        value = Decimal(str(written))
        if value != value.quantize(Decimal("0.01")):
            raise NoValue(f"is never {written}: it has two places")
        return f"{value:.2f}"
    if field.format is formats.INSTANT and isinstance(written, str):
        moment = formats.read_instant(written)
        if moment.microsecond:
            raise NoValue(f"is never {written}: it has whole seconds")
        return formats.write_instant(moment)
    return written


def at(record: Record, path: str) -> Any:
    """Returns the value at a path, or below a list of objects the values of all items."""
    name, _, rest = path.partition("[].")
    value = record.get(name)
    return value if not rest else [at(item, rest) for item in value or ()]


def has_value(record: Record, path: str) -> bool:
    """Returns whether there is any value at a path."""
    value = at(record, path)
    return any(item is not None for item in value) if "[]." in path else value not in (None, [])
