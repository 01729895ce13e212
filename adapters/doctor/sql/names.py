"""Whether the database has every table and column of the mapping, and which names are near."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from adapters.doctor.case import CheckStep
from adapters.doctor.sql.case import SqlCase
from adapters.documents.document import Place
from adapters.examination import Finding
from adapters.sql.checks import SchemaMismatch, checks_of, cut_short, mismatches_in

_IN_SQLITE = text(
    "SELECT m.name, p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p"
    " WHERE m.type IN ('table', 'view')"
)
_IN_SCHEMA = text(
    "SELECT CAST(table_name AS CHAR(128)), CAST(column_name AS CHAR(128))"
    " FROM information_schema.columns WHERE table_schema NOT IN"
    " ('information_schema', 'pg_catalog', 'mysql', 'sys', 'performance_schema')"
)
# How the databases name what they do not know.
_UNKNOWN = (
    (re.compile(r"""no such table: ["`\[]?([\w.]+)""", re.IGNORECASE), "table"),
    (re.compile(r"relation \"([^\"]+)\" does not exist"), "table"),
    (re.compile(r"Table '([^']+)' doesn't exist"), "table"),
    (re.compile(r"Invalid object name '([^']+)'"), "table"),
    (re.compile(r"""no such column: ["`\[]?([\w.]+)"""), "column"),
    (re.compile(r"has no column named (\w+)"), "column"),
    (re.compile(r"column \"?([\w.]+)\"? (?:of relation \"\w+\" )?does not exist"), "column"),
    (re.compile(r"Unknown column '([^']+)'"), "column"),
    (re.compile(r"Invalid column name '([^']+)'"), "column"),
)
_BARE = re.compile(r"[^\W\d]\w*").fullmatch
_WORDS = re.compile(r"\w+").findall
NEAR = 3
# What a subject need not say.
_GROUPS = ("resources", "fields", "lists")

Known = dict[str, list[str]]


def names(case: SqlCase) -> Iterator[CheckStep]:
    """One look at all pieces of SQL."""
    yield CheckStep("mapping", "names", lambda session: _faults(session.connection, case))


def _faults(connection: Connection, case: SqlCase) -> Iterator[Finding]:
    mapping, ids = case.core.mapping, case.adapter.converters.ids
    faults = list(mismatches_in(connection, mapping, case.speech, ids))
    known = columns_known(connection) if faults else {}
    for fault in faults:
        if not fault.only_sampled:
            case.lost.add(_rows_of(fault.place))
        check = "rights" if fault.denied else "mapping"
        subject = ".".join(str(each) for each in fault.place if each not in _GROUPS)
        part = fault.place[: 2 if fault.place[0] == "resources" else 3]
        more = _remedy(fault, known, str(_said_at(case, part)), _said_at(case, fault.place))
        text = fault.text + cut_short(case.document, fault.place)
        judged = case.warning if fault.only_sampled else case.failed
        yield judged(check, subject, text, fault.place, remedy=more)
    count = len(list(checks_of(mapping)))
    if not faults:
        yield case.ok("mapping", "names", f"the database knows all {count} names and expressions")


def _rows_of(place: Place) -> Place:
    """What of the mapping cannot be read without it."""
    return place[: 2 if place[0] == "resources" else 3]


def _said_at(case: SqlCase, place: Place) -> Any:
    """What the file has at the place; None where that is no place of the file."""
    found = case.core.document.data
    for part in place:
        is_list = isinstance(found, list) and isinstance(part, int)
        if is_list or (isinstance(found, dict) and part in found):
            found = found[part]
        elif part != 0:  # of a list that has one member only, the member may stand alone
            return None
    return found


def columns_known(connection: Connection) -> Known:
    """The tables and their columns; nothing where the database does not say."""
    statement = _IN_SQLITE if connection.dialect.name == "sqlite" else _IN_SCHEMA
    found: Known = {}
    try:
        for table, column in connection.execute(statement):
            found.setdefault(str(table).strip(), []).append(str(column).strip())
    except DBAPIError:
        return {}
    return found


def _remedy(fault: SchemaMismatch, known: Known, part: str, said: Any) -> str:
    if fault.denied:
        return "grant it to the gateway's account"
    for pattern, kind in _UNKNOWN:
        found = pattern.search(fault.text)
        if found is not None:
            near = _near(found[1], known, part, kind)
            return f"near: {', '.join(near)}" if near else _quoted(found[1], fault.place, said)
    return ""


def _quoted(word: str, place: Place, said: Any) -> str:
    """What to write where a bare word stands that is meant as the value itself."""
    bare = said["source"] if isinstance(said, dict) and "source" in said else said
    if not {"fields", "values"} & {*place} or not isinstance(bare, str) or not _BARE(bare):
        return ""
    if bare.lower() != word.lower():
        return ""
    return f"a fixed text is written \"'{bare}'\", in both kinds of quotes"


def _near(word: str, known: Known, part: str, kind: str) -> list[str]:
    """Near names: tables, or the columns of the tables that this part of the mapping names."""
    alias, _, bare = word.rpartition(".")
    if kind == "table":
        return _close(bare, list(known))
    named = {each.lower() for each in _WORDS(part)}
    columns = [each for table, own in known.items() if table.lower() in named for each in own]
    return [f"{alias}.{each}" if alias else each for each in _close(bare, columns)]


def _close(word: str, names: list[str]) -> list[str]:
    spelt = {each.lower(): each for each in names}
    return [spelt[each] for each in get_close_matches(word.lower(), list(spelt), NEAR, 0.5)]
