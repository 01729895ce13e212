"""Reads a value that a person wrote for a field, as the redactor would take it."""

from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from adapters.base import Record
from adapters.documents.problems import did_you_mean
from gateway.contract import fields as formats
from gateway.contract.fields import Field
from gateway.policy.shape import value_type, written_value

_AMOUNTS = (formats.MONEY, formats.PERCENT)
_TEXTS = (formats.TEXT, formats.EMAIL)


class NoValue(ValueError):
    """Why what was written is no value of the field: a sentence without its first words."""


def read_value(field: Field, written: Any) -> Any:
    """The value as answers carry it, None for none; NoValue where it is none of the field's.

    Amounts may be written as numbers, times with an offset.
    """
    if written is None:
        return None
    if field.many:
        if not isinstance(written, list):
            raise NoValue("is a list; write it in brackets, such as [one, two]")
        return [_checked(field, each) for each in written]
    return _checked(field, written)


def _checked(field: Field, written: Any) -> Any:
    value = _as_answered(field, written)
    kind = [value] if field.many else value
    try:
        read = msgspec.convert(kind, value_type(field))
        if written_value(field).fullmatch(msgspec.json.encode(read)):
            return value
    except (msgspec.ValidationError, ValueError, OverflowError, TypeError):
        pass
    raise NoValue(_remedy(field, written))


def _as_answered(field: Field, written: Any) -> Any:
    is_number = isinstance(written, int | float) and not isinstance(written, bool)
    if field.format in _AMOUNTS and is_number:
        return _amount(str(written))
    if field.format is formats.INSTANT and isinstance(written, str):
        try:
            return formats.write_instant(formats.read_instant(written))
        except ValueError:
            return written
    return written


def _amount(text: str) -> str:
    """The number with two places, or as it is where it has more of them."""
    try:
        value = Decimal(text)
        return f"{value:.2f}" if value == value.quantize(Decimal("0.01")) else text
    except InvalidOperation:
        return text


def _remedy(field: Field, written: Any) -> str:
    if isinstance(written, dict | list):
        return "is one plain value"
    if written is None:
        return "holds values; nothing stands here"
    if field.values:
        hint = did_you_mean(str(written), field.values)
        return f"is never {written}{hint or _one_of(field)}"
    if field.format in _TEXTS and not isinstance(written, str):
        return "is a text: put what stands here in quotes"
    return field.format.problem


def _one_of(field: Field) -> str:
    return f"; it can be {', '.join(field.values)}"


def at(record: Record, path: str) -> Any:
    """The value at a path; below a list of objects the values of all its items, in order."""
    name, _, rest = path.partition("[].")
    value = record.get(name)
    return value if not rest else [at(item, rest) for item in value or ()]


def has_value(record: Record, path: str) -> bool:
    """Whether there is anything to see at a path."""
    value = at(record, path)
    if "[]." in path:
        return any(each is not None for each in value)
    return value is not None and value != []
