"""How an open field is read and how it must look when it is written, derived from the contract.

Two checks stand behind each other. `struct` gives types that a value must convert to: they tell
a day that exists from one that does not. `written` gives the exact form of the bytes: it tells
`45.00` from `45.0` and a time in UTC from one with an offset. Both are made once for each view,
because one conversion and one match cost less than a look at every value.
"""

import re
import sys
from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from gateway.contract import fields as formats
from gateway.contract.fields import Field

_LARGEST = sys.float_info.max
_FINITE = Annotated[float, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]  # what JSON can say
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
    formats.MONEY.name: str,
    formats.PERCENT.name: str,
    formats.COLOR.name: str,
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


def written(fields: tuple[Field, ...]) -> str:
    """A regular expression for the JSON object that has these members, in this order."""
    members = ",".join(f'"{field.name}":{_member(field)}' for field in fields)
    return rf"\{{{members}\}}"


def written_value(field: Field) -> re.Pattern[bytes]:
    """The form of one field's value where it is not null."""
    return re.compile(_form(field).encode())


def list_of(item: str) -> str:
    """A JSON array of what the regular expression `item` says."""
    return rf"\[(?:{item}(?:,{item})*)?\]"


def _member(field: Field) -> str:
    return f"(?:{_form(field)}|null)" if field.nullable else f"(?:{_form(field)})"


def _form(field: Field) -> str:
    if field.fields:
        return list_of(written(field.fields))
    form = _STRING if field.values else _FORMS.get(field.format.name, f'"{field.format.pattern}"')
    return list_of(f"(?:{form})") if field.many else form
