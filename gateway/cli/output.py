"""What commands print: texts and JSON that no terminal obeys, tables, refusals."""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn
from unicodedata import bidirectional, category

import click

from gateway.contract.fields import write_instant

if TYPE_CHECKING:
    from rich.text import Text

# Controls, halves of a character, ends of a line, and what turns the direction of writing.
_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}
_DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
# JSON may hold these as they are; a terminal may obey them, and no half of a letter can be sent.
_left_in_json = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]").sub


def legible(text: str) -> str:
    """The text with a blank for each control character."""
    return "".join(
        " " if category(letter) in _CATEGORIES or bidirectional(letter) in _DIRECTIONS else letter
        for letter in text
    )


def say(*lines: str, err: bool = False) -> None:
    """Prints lines for people."""
    for line in lines:
        click.echo(legible(line), err=err)


def say_json(data: Any, *, indent: int | None = None) -> None:
    """Prints JSON with each control character escaped: in one line without an `indent`.

    A time stands in it as in the public interface.
    """
    text = json.dumps(
        data,
        ensure_ascii=False,
        indent=indent,
        separators=None if indent else (",", ":"),
        default=write_instant,
    )
    click.echo(_left_in_json(lambda found: f"\\u{ord(found[0]):04x}", text))


def fail(text: str, code: int = 1) -> NoReturn:
    """Says why not on stderr, in as many lines as the text has, and exits with that code."""
    say(*text.split("\n"), err=True)
    raise click.exceptions.Exit(code)


def print_table(
    columns: Mapping[str, Mapping[str, Any]],
    sections: Iterable[Iterable[Iterable["str | Text"]]],
    width: int | None = None,
) -> None:
    """Prints rows of plain texts, or rich's, below headings, with a rule above each section.

    A column is its heading with what else rich takes; the terminal decides without a `width`.
    """
    # imported only now: most commands print no table
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading, more in columns.items():
        table.add_column(heading, **more)
    for section in sections:
        table.add_section()
        for row in section:
            table.add_row(*(Text(legible(it)) if isinstance(it, str) else it for it in row))
    Console(highlight=False, width=width).print(table)


def members(item: Any, *names: str) -> dict[str, Any]:
    """These attributes, as the members of a JSON object."""
    return {name: getattr(item, name) for name in names}


def plain(value: Any, between: str = " ") -> str:
    """A JSON value in words; "none" of one that is empty, such as a bound that was taken away."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return write_instant(value)
    if isinstance(value, dict):
        value = [f"{name}={member}" for name, member in value.items()]
    if isinstance(value, list):
        value = between.join(map(str, value))
    return "none" if value in (None, "") else str(value)


def counted(number: int, noun: str) -> str:
    """The number with its noun: 1 file, 2 files."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
