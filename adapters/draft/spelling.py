"""Spells SQL in the words of an engine: names, the first row of many, numbers out of texts."""

import re
from collections.abc import Iterable
from functools import cache

from sqlalchemy.dialects import registry

from adapters.draft.database import Table

_PLAIN = re.compile("[A-Za-z_][A-Za-z0-9_]*").fullmatch
_LOWER = re.compile("[a-z_][a-z0-9_]*").fullmatch


@cache
def quoted(dialect: str, name: str) -> str:
    """The name as a statement has to write it: in quotes only where it needs them."""
    preparer = registry.load(dialect)().identifier_preparer
    fits = _LOWER(name) if dialect == "postgresql" else _PLAIN(name)
    if fits and name.lower() not in preparer.reserved_words:
        return name
    return str(preparer.quote_identifier(name))


def table_name(dialect: str, table: Table) -> str:
    """The table's name, with its schema where it is not the account's own."""
    name = quoted(dialect, table.name)
    return f"{quoted(dialect, table.schema)}.{name}" if table.schema else name


def select(what: str, rows: str, where: str) -> str:
    """A sub-select, for people to read: nothing here is run."""
    return " ".join(("SELECT", what, "FROM", rows, "WHERE", where))


def first_of(dialect: str, what: str, rest: str, order: str) -> str:
    """A select of one row."""
    if dialect == "mssql":
        return f"SELECT TOP 1 {what} {rest} ORDER BY {order}"
    return f"SELECT {what} {rest} ORDER BY {order} LIMIT 1"


def number(expression: str, *, is_text: bool) -> str:
    """The number in a text such as '1 234,50'; a number as it is."""
    if not is_text:
        return expression
    pointed = f"REPLACE(REPLACE({expression}, ' ', ''), ',', '.')"
    return f"CAST(NULLIF({pointed}, '') AS DECIMAL(12, 2))"


def literal(value: object) -> str:
    """A code as SQL writes it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


def alias_for(name: str, taken: Iterable[str]) -> str:
    """A short name of a table, that is none of those taken."""
    own = [each.lower() for each in name if each.isascii() and each.isalpha()]
    letters: list[str] = own or ["t"]
    used = set(taken)
    for each in [*letters, *map(chr, range(97, 123))]:
        if each not in used:
            return each
    return f"{letters[0]}{len(used)}"
