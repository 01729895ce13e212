"""What commands print: texts and JSON that no terminal obeys."""

import re
from collections.abc import Iterable
from typing import Any
from unicodedata import bidirectional, category

import click
import orjson

# Controls, halves of a character, ends of a line, and what turns the direction of writing.
_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}
_DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
# JSON may hold these as they are; a terminal may obey them.
_left_in_json = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]").sub


def _controls(letter: str) -> bool:
    return category(letter) in _CATEGORIES or bidirectional(letter) in _DIRECTIONS


def has_controls(text: str) -> bool:
    return any(map(_controls, text))


def legible(text: str) -> str:
    """The text with a blank for each control character."""
    return "".join(" " if _controls(letter) else letter for letter in text)


def legible_json(data: Any) -> str:
    """The data as JSON, with each control character escaped."""
    return _left_in_json(lambda found: f"\\u{ord(found[0]):04x}", orjson.dumps(data).decode())


def say(data: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """Prints the data as JSON, or the lines for people."""
    for line in [legible_json(data)] if as_json else lines:
        click.echo(line if as_json else legible(line))


def counted(number: int, noun: str) -> str:
    """The number with its noun: 1 file, 2 files."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
