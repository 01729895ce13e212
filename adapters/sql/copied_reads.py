"""What a mapping reads of a copy of files, and what of a mapping a copy cannot serve."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, text

from adapters.base import AdapterOptions, Shapes
from adapters.copies.addresses import is_copied
from adapters.copies.code_pages import TO_SAY_IT
from adapters.copies.keeper import in_words
from adapters.documents.document import Document, read_document
from adapters.documents.problems import Problem
from adapters.mapping.models import MappingFile
from adapters.sql.checks import SchemaMismatch
from adapters.sql.engines import CopiedReads, Engine

# A column by itself, with or without the alias of its table.
_COLUMN = re.compile(r"(?:\w+\.)?(?:(\w+)|\"([^\"]+)\"|`([^`]+)`|\[([^\]]+)\])").fullmatch
# Each name in a piece of SQL.
_NAMES = re.compile(r"\"([^\"]+)\"|`([^`]+)`|\[([^\]]+)\]|(\w+)").findall
_SELECTS = re.compile(r"\bselect\b", re.IGNORECASE).search
# What SQLite calls the number of a row, which each copy gives anew.
_ROW_NUMBERS = frozenset({"rowid", "_rowid_", "oid"})
_COLUMNS = text("SELECT lower(c.name) FROM sqlite_master t, pragma_table_info(t.name) c")
# The format of what the gateway filters by time.
MOMENT = "date-time"
MOST_NAMED = 5
_DIARY = ("hours", "busy", "slots", "durations")
# The ages, in seconds, of which a readiness check tells: each is told once.
AGES = (300.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0, 86_400.0)


def bookings_refused(options: AdapterOptions) -> Sequence[Problem]:
    """Returns a problem where the address is of files, and the mapping has bookings."""
    if not is_copied(options.url) or options.mapping is None:
        return []
    document = read_document(options.mapping, flawed=True)
    if ("booking",) not in document.keys:
        return []
    said = "files are read by a copy, and take no bookings: leave out booking"
    return [document.problem(("booking",), said, "copied", at_key=True)]


def numbered_anew(connection: Connection, mapping: MappingFile) -> Iterator[SchemaMismatch]:
    """Yields each key that is what each copy numbers anew, and no column of a table."""
    numbers = _ROW_NUMBERS.difference(connection.scalars(_COLUMNS))
    for name, rows in mapping.resources.items():
        if numbers.intersection(map(_bare, rows.key.source)):
            said = "the numbers of rows are new in each copy: name columns of the table"
            yield SchemaMismatch(("resources", name, "key"), "copied", said)


def copy_warnings(engine: Engine) -> Sequence[Problem]:
    """Returns what is to be said of the copy, if there is one, such as why it grows old."""
    copy, said = engine.copy, dict[str, str]()
    if copy is not None and copy.codeless:
        said["no-code-page"] = f"{without_code_page(copy.codeless)}: {TO_SAY_IT}"
    if copy is not None and copy.why:
        age = copy.age or 0.0
        passed = max((one for one in AGES if one <= age), default=0.0)
        old = f"is more than {in_words(passed)} old" if passed else "is of a few minutes ago"
        reason = f"as no new one can be made: {copy.why}"
        said["old-copy"] = f"the copy of {copy.source} {old}, {reason}"
    return [Problem("backend.url", 0, 0, words, code) for code, words in said.items()]


def without_code_page(tables: Sequence[str]) -> str:
    """Returns what is wrong with tables that do not say which letters their texts have."""
    more = f" and {len(tables) - MOST_NAMED} more" if len(tables) > MOST_NAMED else ""
    named = f"{', '.join(tables[:MOST_NAMED])}{more}: no code page is named there"
    return f"{named}, so no copy can be made once a letter beyond ASCII is written"


def reads_of(mapping: MappingFile, document: Document, shapes: Shapes) -> CopiedReads:
    """Returns the text that names all tables of the mapping, and the columns that find rows."""
    wishes = {tuple(wish) for wish in _wishes(mapping, shapes)}
    named = "\n".join(_texts(document.data)).lower()
    return CopiedReads(named, sorted(map(list, wishes)))


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    members = data if isinstance(data, list) else ()
    for member in data.values() if isinstance(data, dict) else members:
        yield from _texts(member)


def _wishes(mapping: MappingFile, shapes: Shapes) -> Iterator[list[str]]:
    every: list[Any] = []
    for name, resource in mapping.resources.items():
        every += [resource, *resource.lists.values()]
        for path, field in resource.fields.items():
            for written in filter(_SELECTS, field.expressions):
                yield from _named_in(written)
            shape = shapes[name][path]
            if shape.refers is not None or shape.format == MOMENT:
                yield from _together(field.source)
    diary = mapping.diary
    every += [source for kind in _DIARY for source in getattr(diary, kind)]
    every += [diary.schedules] if diary.schedules is not None else []
    for rows in every:
        for written in (rows.from_, rows.where):
            yield from _named_in(written or "")
        yield from _together(rows.key.source if getattr(rows, "key", None) else ())
        yield from _together(getattr(rows, "parent", None) or ())
        yield from _together([*_written(rows, "owner"), *_written(rows, "start")])
        yield from _together(_written(rows, "type"))


def _written(rows: Any, name: str) -> Sequence[str]:
    value = getattr(rows, name, None)
    return () if value is None else (getattr(value, "text", value),)


def _together(expressions: Sequence[str]) -> Iterator[list[str]]:
    """Yields the columns together, and each by itself; none where one is no plain column."""
    columns = [_bare(one) for one in expressions]
    if columns and all(columns):
        yield columns
    yield from ([column] for column in columns if column)


def _named_in(written: str) -> Iterator[list[str]]:
    return (["".join(spelt).lower()] for spelt in _NAMES(written))


def _bare(expression: str) -> str:
    """Returns the column that an expression is, in lower case; "" where it is more than one."""
    column = _COLUMN(expression.strip())
    return "".join(filter(None, column.groups())).lower() if column else ""
