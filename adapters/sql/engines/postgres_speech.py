"""How PostgreSQL spells what the adapter needs."""

import json
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Numeric,
    Text,
    case,
    cast,
    func,
    literal_column,
    text,
)
from sqlalchemy.exc import DBAPIError

from adapters.sql.engines.base import PLAIN_NUMBER, Clock, Kind, Step, one_line
from adapters.sql.engines.explained import explain
from adapters.sql.engines.letters import ACCENTED, PLAIN, SEVERAL
from adapters.values.convert import LONGEST_FOLDED

# By the beginning of the SQLSTATE; the longest that fits holds.
KINDS = {
    "08": Kind.DOWN,
    "28": Kind.DOWN,
    "3D": Kind.DOWN,
    "53": Kind.DOWN,
    "57P": Kind.DOWN,
    "58": Kind.DOWN,
    "25P03": Kind.DOWN,
    "57014": Kind.TIMEOUT,
    "55P03": Kind.BUSY,
    "40": Kind.AGAIN,
    "23505": Kind.DUPLICATE,
    "23P01": Kind.DUPLICATE,
    "23": Kind.REFUSED,
    "P0001": Kind.REFUSED,
    "42501": Kind.DENIED,
    "42": Kind.STATEMENT,
    "0A": Kind.STATEMENT,
    "3F": Kind.STATEMENT,
}
# Besides: a constant of the statement that its type cannot read.
_ABOUT_STATEMENTS = ("42", "0A", "3F", "22")
_LOCK = text("SELECT pg_advisory_xact_lock(:number)")
_CLOCK = text(
    r"SELECT to_char(now(), 'YYYY-MM-DD HH24\:MI\:SS'),"
    r" to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24\:MI\:SS'),"
    " current_setting('TimeZone')"
)
_ROLE = text(
    "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls,"
    " has_database_privilege(current_database(), 'CREATE')"
    " FROM pg_roles WHERE rolname = current_user"
)
_ROLE_SAYS = (
    "the account is a superuser",
    "the account may create other accounts",
    "the account may create databases",
    "the account may copy the whole database",
    "the account passes by row level security",
    "the account may create schemas",
)
_SCHEMAS = text(
    "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%'"
    " AND nspname <> 'information_schema' AND has_schema_privilege(oid, 'CREATE') ORDER BY 1"
)
_TABLES = text(
    "SELECT c.relname, pg_has_role(c.relowner, 'USAGE') FROM pg_class c"
    " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p')"
    " AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'"
    " AND (has_table_privilege(c.oid, 'DELETE') OR has_table_privilege(c.oid, 'TRUNCATE')"
    " OR pg_has_role(c.relowner, 'USAGE')) ORDER BY 1"
)
MOST_NAMED = 5


class PostgresSpeech:
    """PostgreSQL's spelling, without any extension."""

    loose_types = False
    times_as_text = False
    bits_are_letters = False
    first_day = "0001-01-01"

    def searchable(self, expression: ColumnElement[Any]) -> ColumnElement[Any]:
        raw = func.left(func.coalesce(cast(expression, Text), _quoted("")), LONGEST_FOLDED)
        plain: ColumnElement[Any] = func.translate(raw, _quoted(ACCENTED), _quoted(PLAIN))
        for letter, several in SEVERAL.items():
            plain = func.replace(plain, _quoted(letter), _quoted(several))
        marks = _quoted("[[:space:][:punct:]]")
        bare = func.regexp_replace(func.lower(plain), marks, _quoted(" "), _quoted("g"))
        return _quoted(" ").op("||")(bare)

    def trimmed(self, expression: ColumnElement[Any]) -> ColumnElement[Any]:
        return func.btrim(cast(expression, Text), literal_column(r"E' \t\n\r\f\x0b'"))

    def exact(self, text: ColumnElement[Any]) -> ColumnElement[Any]:
        return text.collate("C")

    def number(self, expression: ColumnElement[Any]) -> ColumnElement[Any]:
        shown = cast(expression, Text)
        bare = func.regexp_replace(shown, _quoted("[[:space:]']"), _quoted(""), _quoted("g"))
        plain = bare.op("~", is_comparison=True)(_quoted(PLAIN_NUMBER))
        return case((plain, cast(func.replace(bare, _quoted(","), _quoted(".")), Numeric)))

    def undated(self, expression: ColumnElement[Any]) -> ColumnElement[bool]:
        dated = _quoted("^[0-9]{4}-[0-9]{2}-[0-9]{2}")
        return cast(expression, Text).op("!~", is_comparison=True)(dated)

    def explain(
        self, connection: Connection, statement: Executable, parameters: dict[str, Any]
    ) -> tuple[Step, ...]:
        with connection.begin_nested():  # an error would end the transaction
            words = "EXPLAIN (FORMAT JSON)"
            plan = explain(connection, words, statement, parameters).scalar_one()
        return tuple(_steps(json.loads(plan)[0]["Plan"]))

    def kind(self, error: DBAPIError) -> Kind:
        code = self.code(error)
        if code == "InvalidCachedStatementError":  # a table was changed: prepared anew it goes
            return Kind.AGAIN
        known = [each for each in KINDS if code.startswith(each)]
        return KINDS[max(known, key=len)] if known else Kind.OTHER

    def code(self, error: DBAPIError) -> str:
        state = getattr(error.orig, "sqlstate", None)
        return str(state) if state else type(error.orig).__name__

    def complaint(self, error: DBAPIError) -> str | None:
        if not self.code(error).startswith(_ABOUT_STATEMENTS):
            return None
        said = error.driver_exception
        hint = getattr(said, "hint", None)
        return one_line(f"{said}; {hint}" if hint else said)

    def lock(self, connection: Connection, name: str) -> None:
        digest = blake2b(f"clinic-gateway:{name}".encode(), digest_size=8).digest()
        connection.execute(_LOCK, {"number": int.from_bytes(digest, signed=True)})

    def rights(self, connection: Connection) -> Sequence[str]:
        role = connection.execute(_ROLE).one()
        said = [sentence for has, sentence in zip(role, _ROLE_SAYS, strict=True) if has]
        if role[0]:  # and so everything else
            return said[:1]
        schemas = connection.execute(_SCHEMAS).scalars().all()
        said += [f"the account may create tables in the schema {each}" for each in schemas]
        tables = connection.execute(_TABLES).all()
        owned = [name for name, owns in tables if owns]
        if owned:
            said.append(f"the account owns tables and may drop them: {_some(owned)}")
        emptied = [name for name, owns in tables if not owns]
        if emptied:
            said.append(f"the account may delete rows: {_some(emptied)}")
        return said

    def clock(self, connection: Connection) -> Clock:
        return Clock(*connection.execute(_CLOCK).one())

    def transactional(self, connection: Connection, tables: Sequence[str]) -> Sequence[str]:
        return []


def _quoted(value: str) -> ColumnElement[Any]:
    doubled = value.replace("'", "''")
    # nosemgrep: sql-is-never-put-together-as-text - constants of ours, quoted
    return literal_column(f"'{doubled}'")


def _some(names: Sequence[str]) -> str:
    rest = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _steps(node: dict[str, Any]) -> Iterator[Step]:
    if "Relation Name" in node:
        inner = [each.get("Index Name") for each in node.get("Plans", ())]
        index = node.get("Index Name") or next((each for each in inner if each), "")
        scans = node["Node Type"] == "Seq Scan"
        yield Step(node["Relation Name"], scans, index, int(node["Plan Rows"]))
    for each in node.get("Plans", ()):
        yield from _steps(each)
