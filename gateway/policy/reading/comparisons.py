"""The words of conditions, and what to write for a value that a field never has."""

from collections.abc import Mapping
from typing import Any

from adapters.documents.problems import did_you_mean
from gateway.contract import fields as formats
from gateway.contract.fields import Field

NOT = "not"
# How a bound is written: whether it is the lower one, and whether its value is within.
BOUNDS: Mapping[str, tuple[bool, bool]] = {
    "min": (True, True),
    "above": (True, False),
    "max": (False, True),
    "below": (False, False),
}
WORDS = (NOT, *BOUNDS)
_TRUTHS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


def remedy(field: Field, given: Any) -> tuple[str, str]:
    """Of which kind a value that is none is, and what to write."""
    if field.format is formats.BOOLEAN and (word := _TRUTHS.get(str(given).lower())):
        return "yes-no", f"{field.name} is true or false: write {word} for {given}"
    is_text = field.format in (formats.TEXT, formats.EMAIL) and not field.values
    if is_text and isinstance(given, int | float):
        spelt = str(given).lower() if isinstance(given, bool) else given
        return "unquoted-text", f'{field.name} is a text: put it in quotes, "{spelt}"'
    return "bad-value", _said(field, given)


def _said(field: Field, given: Any) -> str:
    if given is None:
        return f"nothing stands here; a record without {field.name} never meets a condition"
    if isinstance(given, dict | list):
        return f"{field.name} is compared with plain values, or with {comparisons()}"
    if field.format is formats.BOOLEAN:
        return f"{field.name} is true or false"
    if field.values:
        hint = did_you_mean(str(given), field.values)
        known = f"; it can be {', '.join(field.values)}"
        return f"{field.name} is never {given}{hint or known}"
    return f"{field.name} {field.format.problem}{_number(field, given)}"


def _number(field: Field, given: Any) -> str:
    """How a text that has a number in it is written, where that number is wanted."""
    if field.format not in (formats.NUMBER, formats.INTEGER) or not isinstance(given, str):
        return ""
    try:
        float(given)
    except ValueError:
        return ", or a comparison such as {min: 1}"
    return f": write {given} without quotes"


def comparisons() -> str:
    """The words, as a sentence names them."""
    return f"{', '.join(WORDS[:-1])} or {WORDS[-1]}"
