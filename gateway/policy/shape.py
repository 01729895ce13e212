"""How an open field is read and how it must look when it is written, derived from the contract.

Two checks stand behind each other. `struct` gives types that a whole view must convert to at once:
they tell a day that exists from one that does not. `Soundness` looks at what is left: `45.00` or
`45.0`, a time in UTC or with an offset. Where either says no, each value is read by itself, and
`written_value` has the last word on its bytes.
"""

import re
import sys
from datetime import UTC, date, datetime
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

_BY_PATTERN = {formats.MONEY.name, formats.PERCENT.name, formats.COLOR.name}
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


class Soundness:
    """Whether a converted view says what it may: the part of a form that no type can tell.

    A time is in UTC and in whole seconds, an amount has two places, a colour six digits.
    """

    __slots__ = ("_instants", "_lists", "_patterns")

    def __init__(self, fields: tuple[Field, ...]) -> None:
        plain = [field for field in fields if not field.fields]
        self._instants = [each.name for each in plain if each.format is formats.INSTANT]
        self._patterns = [
            (each.name, re.compile(each.format.pattern).fullmatch)
            for each in plain
            if each.format.name in _BY_PATTERN and each.format.pattern
        ]
        self._lists = [(each.name, Soundness(each.fields)) for each in fields if each.fields]

    def __call__(self, view: Any) -> bool:
        for name in self._instants:
            moment = getattr(view, name)
            if moment is not None and (moment.tzinfo is not UTC or moment.microsecond):
                return False
        for name, matches in self._patterns:
            text = getattr(view, name)
            if text is not None and matches(text) is None:
                return False
        for name, sound in self._lists:
            items = getattr(view, name)
            if items is not None and not all(map(sound, items)):
                return False
        return True


def written_value(field: Field) -> re.Pattern[bytes]:
    """The form of one field's value where it is not null."""
    return re.compile(_form(field).encode())


def _list_of(item: str) -> str:
    return rf"\[(?:{item}(?:,{item})*)?\]"


def _form(field: Field) -> str:
    form = _STRING if field.values else _FORMS.get(field.format.name, f'"{field.format.pattern}"')
    return _list_of(f"(?:{form})") if field.many else form
