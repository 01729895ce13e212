"""How the value of an open field is read and how it must look when it is written, by the contract.

Two checks stand behind each other. `struct` gives types that a whole view must convert to at once:
they tell a day that exists from one that does not. `soundness` looks at what is left: `45.00` or
`45.0`, a time in UTC or with an offset. Where either says no, each value is read by itself, and
`written_value` has the last word on its bytes.
"""

import re
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from adapters.base import Record
from adapters.documents.problems import did_you_mean
from gateway.contract import fields as formats
from gateway.contract.fields import Field

_LARGEST = sys.float_info.max
_FINITE = Annotated[float, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]  # what JSON can say
_BY_PATTERN = {formats.MONEY.name, formats.PERCENT.name, formats.COLOR.name}
_TYPES: dict[str, Any] = {
    formats.UUID.name: UUID,
    formats.TEXT.name: str,
    # The one pattern that can't be matched on bytes: its blanks are those of all alphabets.
    formats.EMAIL.name: Annotated[str, msgspec.Meta(pattern=rf"\A{formats.EMAIL.pattern}\Z")],
    formats.BOOLEAN.name: bool,
    formats.INTEGER.name: int,
    formats.NUMBER.name: int | _FINITE,
    formats.INSTANT.name: Annotated[datetime, msgspec.Meta(tz=True)],
    formats.DAY.name: date,
    **dict.fromkeys(_BY_PATTERN, str),
}
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_FORMS = {
    formats.UUID.name: '"[0-9a-f-]{36}"',  # the type has seen to the rest
    formats.TEXT.name: _STRING,
    formats.EMAIL.name: _STRING,
    formats.BOOLEAN.name: "true|false",
    formats.INTEGER.name: "-?[0-9]++",
    formats.NUMBER.name: "[0-9.e+-]++",
}


def value_type(field: Field) -> Any:
    """The type of the field's value where it is neither null nor a list of objects."""
    kind: Any = Literal[field.values] if field.values else _TYPES[field.format.name]
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


def soundness(fields: tuple[Field, ...]) -> Callable[[Any], bool]:
    """What tells whether a converted view says what it may: what no type can tell of a form.

    A time is in UTC and in whole seconds, an amount has two places, a colour six digits.
    """
    plain = [field for field in fields if not field.fields]
    instants = [field.name for field in plain if field.format is formats.INSTANT]
    patterns = [
        (field.name, re.compile(field.format.pattern).fullmatch)
        for field in plain
        if field.format.name in _BY_PATTERN and field.format.pattern
    ]
    lists = [(field.name, soundness(field.fields)) for field in fields if field.fields]

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


def written_value(field: Field) -> re.Pattern[bytes]:
    """The form of one field's value where it is not null."""
    form = _STRING if field.values else _FORMS.get(field.format.name, f'"{field.format.pattern}"')
    if field.many:
        form = rf"\[(?:(?:{form})(?:,(?:{form}))*)?\]"
    return re.compile(form.encode())


class NoValue(ValueError):
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
    try:
        value = _as_answered(field, written)
        read = msgspec.convert([value] if field.many else value, value_type(field))
        if written_value(field).fullmatch(msgspec.json.encode(read)):
            return value
    except NoValue:
        raise
    except (msgspec.ValidationError, ValueError, ArithmeticError, TypeError):
        pass
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
    if "[]." in path:
        return any(item is not None for item in value)
    return value is not None and value != []
