"""How a policy file has fields and row conditions: what is written here is read back as it was."""

from datetime import datetime
from decimal import Decimal

from gateway.contract import fields as formats
from gateway.contract.fields import Field, Resource
from gateway.policy.rows import Bound, Rows, Value, Wanted


def path_in_list(path: str) -> str:
    """A field as it stands in a list."""
    return f'"{path}"' if "[" in path else path


def conditions_in_file(resource: Resource, rows: Rows) -> str:
    """`{status: [VALIDATED]}`: fields and values in an order of their own."""
    wanted = [
        f"{path}: {_wanted(resource.at(path), rows.wanted[path])}"
        for path in resource.paths
        if path in rows.wanted
    ]
    return f"{{{', '.join(wanted)}}}"


def _wanted(field: Field, test: Wanted) -> str:
    if test.allowed is not None:
        return _list(field, frozenset(filter(test.admits, test.allowed)))
    words = [f"not: {_list(field, test.barred)}"] if test.barred else []
    words += [_bound(field, bound, *names) for bound, *names in _sides(test) if bound is not None]
    return f"{{{', '.join(words)}}}"


def _sides(test: Wanted) -> tuple[tuple[Bound | None, str, str], tuple[Bound | None, str, str]]:
    return (test.low, "min", "above"), (test.high, "max", "below")


def _bound(field: Field, bound: Bound, included: str, excluded: str) -> str:
    return f"{included if bound.included else excluded}: {_value(field, bound.value)}"


def _list(field: Field, values: frozenset[Value]) -> str:
    return f"[{', '.join(_value(field, each) for each in sorted(values))}]"


def _value(field: Field, value: Value) -> str:
    """The value exactly; what answers show of it may be rounded."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return _number(field, value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat() + "Z"
    if not isinstance(value, str):
        return str(value.isoformat())
    return value if field.values else _text(value)


def _number(field: Field, value: Decimal) -> str:
    """Amounts have two places; what a reader of numbers would round is a text."""
    plain = _digits(value)
    if field.format is formats.NUMBER:
        return plain
    whole, _, cents = plain.partition(".")
    plain = f"{whole}.{cents:0<2}"
    return plain if Decimal(repr(float(plain))) == value else f'"{plain}"'


def _digits(value: Decimal) -> str:
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _text(text: str) -> str:
    """In double quotes; letters that nobody sees, or that no file may have, as escapes."""
    return f'"{"".join(map(_letter, text))}"'


def _letter(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"
