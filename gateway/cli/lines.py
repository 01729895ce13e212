"""Texts of one line, as people give them and as terminals show them: no control characters."""

import re
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


class Line(click.ParamType[Any]):
    """A text that can be shown in one line."""

    name = "TEXT"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        if any(map(_controls, str(value))):
            self.fail("write it without control characters, in one line", param, ctx)
        return str(value)


def legible(text: str) -> str:
    """The text with a blank for each control character."""
    return "".join(" " if _controls(letter) else letter for letter in text)


def legible_json(data: Any) -> str:
    """The data as JSON, with each control character escaped."""
    return _left_in_json(lambda found: f"\\u{ord(found[0]):04x}", orjson.dumps(data).decode())
