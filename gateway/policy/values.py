"""How the value of an open field is read, and how it must look when it is written, by the contract.

Two checks stand behind each other. `struct` gives types that a whole view must convert to at once:
they tell a day that exists from one that does not. `finisher` looks at what is left: `45.00` or
`45.0`, a time in UTC or with an offset. Where either says no, `typed_value` reads each value by
itself, with the same two checks.
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
# What is none of these is a text by its format's pattern.
_TYPES: dict[str, Any] = {
    formats.UUID.name: UUID,
    formats.TEXT.name: str,
    # The one pattern that the type itself holds: so its blanks are those of all alphabets.
    formats.EMAIL.name: Annotated[str, msgspec.Meta(pattern=rf"\A{formats.EMAIL.pattern}\Z")],
    formats.BOOLEAN.name: bool,
    formats.INTEGER.name: int,
    formats.NUMBER.name: int | _FINITE,
    formats.INSTANT.name: Annotated[datetime, msgspec.Meta(tz=True)],
    formats.DAY.name: date,
}


def value_type(field: Field) -> Any:
    """The type of the field's value where it is neither null nor a list of objects."""
    kind: Any = Literal[field.values] if field.values else _TYPES.get(field.format.name, str)
    return list[kind] if field.many else kind


def struct(name: str, fields: tuple[Field, ...]) -> Any:
    """A struct that takes these fields, in this order, out of a record and nothing else."""
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
    """What puts masked values into a converted view, and tells whether that says what it may."""
    masked = [(each.name, masks[path]) for each in fields if (path := prefix + each.name) in masks]
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


def _soundness(
    fields: tuple[Field, ...], masks: Mapping[str, Mask], prefix: str
) -> Callable[[Any], bool]:
    """What no type can tell: a time is in UTC and in whole seconds, an amount has two places."""
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
    """One value that is not null, as views hold it; raises one of BROKEN where it is none.

    `is_sound` is the finisher of the field alone, for who has many values of it.
    """
    value = msgspec.convert(raw, value_type(field))
    if isinstance(value, datetime) and value.utcoffset() == timedelta():
        value = value.astimezone(UTC)  # whatever stands for UTC there
    msgspec.json.encode(value)  # not every text can be written
    is_sound = is_sound or finisher((field,))
    if not is_sound(SimpleNamespace(**{field.name: value})):
        raise ValueError(raw)
    return value


# All that reading or writing a value may raise; a lone surrogate is a ValueError.
BROKEN = (msgspec.ValidationError, ValueError, OverflowError, TypeError, RecursionError)


class NoValue(Exception):
    """Why what was written is no value of the field: a sentence without its first words."""


def read_value(field: Field, written: Any) -> Any:
    """The value that a person wrote, as answers carry it; NoValue where it is none of the field's.

    None stands for none. Amounts may be written as numbers, times with an offset.
    """
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
    """The value at a path; below a list of objects the values of all its items, in order."""
    name, _, rest = path.partition("[].")
    value = record.get(name)
    return value if not rest else [at(item, rest) for item in value or ()]


def has_value(record: Record, path: str) -> bool:
    """Whether there is anything to see at a path."""
    value = at(record, path)
    return any(item is not None for item in value) if "[]." in path else value not in (None, [])
