"""Prints the texts, tables and JSON of commands, without characters that a terminal obeys."""

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

# Controls, halves of a character, ends of a line, and controls of the writing direction.
_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}
_DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
# Valid in JSON, but a terminal may obey them, and half a character cannot be encoded.
_left_in_json = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]").sub


def legible(text: str) -> str:
    """Returns the text with a blank for each control character."""
    return "".join(
        " " if category(letter) in _CATEGORIES or bidirectional(letter) in _DIRECTIONS else letter
        for letter in text
    )


def say(*lines: str, err: bool = False) -> None:
    """Prints lines for people."""
    for line in lines:
        click.echo(legible(line), err=err)


def say_json(data: Any, *, indent: int | None = None) -> None:
    """Prints JSON with control characters escaped, in one line unless there is an `indent`."""
    text = json.dumps(
        data,
        ensure_ascii=False,
        indent=indent,
        separators=None if indent else (",", ":"),
        default=write_instant,
    )
    click.echo(_left_in_json(lambda match: f"\\u{ord(match[0]):04x}", text))


def fail(text: str, code: int = 1) -> NoReturn:
    """Prints the text, which may have several lines, on stderr and exits with the code."""
    say(*text.split("\n"), err=True)
    raise click.exceptions.Exit(code)


def print_table(
    columns: Mapping[str, Mapping[str, Any]],
    sections: Iterable[Iterable[Iterable["str | Text"]]],
    width: int | None = None,
) -> None:
    """Prints sections of rows below headings; `columns` is heading -> rich's other arguments."""
    # imported here, as most commands print no table
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
    """Returns these attributes of an item as members of a JSON object."""
    return {name: getattr(item, name) for name in names}


def problem_data(problem: Any) -> dict[str, Any]:
    """Returns a problem with a file as the members of a JSON object."""
    about = {"severity": problem.check.severity.value, "help": problem.check.help}
    return members(problem, "file", "line", "column", "text", "code") | about


def plain(value: Any, between: str = " ") -> str:
    """Returns a JSON value in words: `none` for an empty one, such as a limit that was removed."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return write_instant(value)
    if isinstance(value, dict):
        value = [f"{name}={member}" for name, member in value.items()]
    if isinstance(value, list):
        value = between.join(map(str, value))
    return "none" if value in (None, "") else str(value)
