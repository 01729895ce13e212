"""How MySQL and MariaDB spell what the adapter needs."""

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from math import ceil
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    case,
    cast,
    func,
    literal_column,
    text,
)
from sqlalchemy.dialects.mysql import CHAR, DECIMAL
from sqlalchemy.exc import DBAPIError

from adapters.base import BackendUnavailable
from adapters.sql.engines.base import PLAIN_NUMBER, SAID, UNTIL, Clock, Kind, Step, one_line
from adapters.sql.engines.explained import explain
from adapters.values.convert import LONGEST_FOLDED, WHOLE_LETTERS

# In a connection's `info`: the names of the locks that it holds.
LOCKS = "clinic_locks"
# It knows letters with and without their accents, and in both cases, as the same.
COLLATION = "utf8mb4_unicode_ci"
_NUMBERS = {
    Kind.DOWN: (
        *(1021, 1037, 1040, 1041, 1042, 1043, 1044, 1045, 1047, 1049, 1053, 1077, 1079, 1080),
        *(1129, 1130, 1152, 1153, 1158, 1159, 1160, 1161, 1184, 1203, 1226, 1698, 1927),
        *(2002, 2003, 2005, 2006, 2012, 2013, 2014, 2026, 2045, 2055, 4031),
    ),
    Kind.TIMEOUT: (1317, 1969, 3024),
    Kind.BUSY: (1205, 1689, 3572),
    Kind.AGAIN: (1020, 1213, 1412),
    Kind.DUPLICATE: (1022, 1062, 1169, 1586),
    Kind.REFUSED: (1048, 1216, 1217, 1264, 1292, 1364, 1366, 1406, 1451, 1452, 1644, 3819, 4025),
    Kind.DENIED: (1142, 1143, 1227, 1370),
    Kind.STATEMENT: (
        *(1046, 1051, 1052, 1054, 1055, 1060, 1064, 1066, 1096, 1103, 1109, 1111, 1140, 1146),
        *(1166, 1222, 1241, 1242, 1247, 1248, 1267, 1270, 1271, 1305, 1327, 1356, 1370, 1582),
        *(1583, 1584, 1630, 1824, 1935, 4078, 4079),
    ),
}
KINDS = {number: kind for kind, numbers in _NUMBERS.items() for number in numbers}
BEGIN_READ = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
_EXPLAIN = "EXPLAIN FORMAT=JSON"
_NO_WRITE_HERE = 1792
_LOCK = text("SELECT GET_LOCK(:name, :seconds)")
_CLOCK = text(
    "SELECT CAST(NOW() AS CHAR), CAST(UTC_TIMESTAMP() AS CHAR),"
    " REPLACE(@@session.time_zone, 'SYSTEM', @@system_time_zone)"
)
_ENGINES = text(
    "SELECT t.TABLE_NAME FROM information_schema.TABLES t"
    " LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE"
    " WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_TYPE = 'BASE TABLE'"
    " AND COALESCE(e.TRANSACTIONS, 'NO') <> 'YES'"
)
_NEEDED = {"SELECT", "INSERT", "UPDATE", "USAGE", "SHOW VIEW", "EXECUTE", "PROXY"}
_GRANT = re.compile(r"GRANT (.+?) ON (.+?) TO ", re.IGNORECASE).match


class MysqlSpeech:
    """The spelling of MySQL 8 and of MariaDB 10.2 and later."""

    loose_types = False
    times_as_text = False
    bits_are_letters = True
    first_day = "0001-01-01"

    def searchable(self, expression: ColumnElement[Any]) -> ColumnElement[Any]:
        plain = func.lower(func.left(func.coalesce(_text(expression), _quoted("")), LONGEST_FOLDED))
        for letter, several in WHOLE_LETTERS.items():
            plain = func.replace(plain, _quoted(letter), _quoted(several))
        bare = func.regexp_replace(plain, _quoted("[[:space:][:punct:]]"), _quoted(" "))
        return func.concat(_quoted(" "), bare).collate(COLLATION)

    def trimmed(self, expression: ColumnElement[Any]) -> ColumnElement[Any]:
        ends = _quoted("^[[:space:]]+|[[:space:]]+$")
        return func.regexp_replace(_text(expression), ends, _quoted(""))

    def exact(self, text: ColumnElement[Any]) -> ColumnElement[Any]:
        return text.collate("utf8mb4_bin")

    def number(self, expression: ColumnElement[Any]) -> ColumnElement[Any]:
        bare = func.regexp_replace(_text(expression), _quoted("[[:space:]'']"), _quoted(""))
        plain = bare.op("REGEXP", is_comparison=True)(_quoted(PLAIN_NUMBER))
        pointed = func.replace(bare, _quoted(","), _quoted("."))
        return case((plain, cast(pointed, DECIMAL(40, 15))))

    def undated(self, expression: ColumnElement[Any]) -> ColumnElement[bool]:
        dated = _quoted("^[0-9]{4}-[0-9]{2}-[0-9]{2}")
        return _text(expression).op("NOT REGEXP", is_comparison=True)(dated)

    def explain(
        self, connection: Connection, statement: Executable, parameters: dict[str, Any]
    ) -> tuple[Step, ...]:
        try:
            found = explain(connection, _EXPLAIN, statement, parameters)
        except DBAPIError as error:
            if _number(error) != _NO_WRITE_HERE:
                raise
            with _outside(connection):
                found = explain(connection, _EXPLAIN, statement, parameters)
        return tuple(_steps(json.loads(found.scalar_one())))

    def kind(self, error: DBAPIError) -> Kind:
        return KINDS.get(_number(error), Kind.OTHER)

    def code(self, error: DBAPIError) -> str:
        number = _number(error)
        return str(number) if number else type(error.orig).__name__

    def complaint(self, error: DBAPIError) -> str | None:
        if self.kind(error) not in (Kind.STATEMENT, Kind.DENIED):
            return None
        return one_line(getattr(error.orig, "args", ("",))[-1])

    def lock(self, connection: Connection, name: str) -> None:
        """A lock of the whole server, not of one database: so its name has the database's in it."""
        database = connection.engine.url.database
        digest = blake2b(f"{database}:{name}".encode(), digest_size=16).hexdigest()
        until = connection.info.get(UNTIL, 0.0)
        seconds = max(0, ceil(until - time.monotonic()))
        full = f"clinic-gateway:{digest}"
        got = connection.execute(_LOCK, {"name": full, "seconds": seconds}).scalar_one()
        if got != 1:
            raise BackendUnavailable(SAID[Kind.BUSY])
        connection.info.setdefault(LOCKS, []).append(full)

    def rights(self, connection: Connection) -> Sequence[str]:
        grants = connection.exec_driver_sql("SHOW GRANTS").scalars().all()
        return [sentence for grant in grants for sentence in _too_much(grant)]

    def clock(self, connection: Connection) -> Clock:
        return Clock(*connection.execute(_CLOCK).one())

    def transactional(self, connection: Connection, tables: Sequence[str]) -> Sequence[str]:
        without = {name.lower() for name in connection.execute(_ENGINES).scalars()}
        return [each for each in tables if each.split(".")[-1].strip('`" ').lower() in without]


@contextmanager
def _outside(connection: Connection) -> Iterator[None]:
    """Between two snapshots: in one that cannot write, what writes is not even explained."""
    connection.exec_driver_sql("COMMIT")
    try:
        yield
    finally:
        connection.exec_driver_sql(BEGIN_READ)


def _text(expression: ColumnElement[Any]) -> ColumnElement[Any]:
    return cast(expression, CHAR(charset="utf8mb4"))


def _quoted(value: str) -> ColumnElement[Any]:
    # nosemgrep: sql-is-never-put-together-as-text - constants of ours
    return literal_column(f"'{value}'")


def _number(error: DBAPIError) -> int:
    arguments = getattr(error.orig, "args", ())
    first = arguments[0] if arguments else 0
    return first if isinstance(first, int) else 0


def _too_much(grant: str) -> Iterator[str]:
    found = _GRANT(grant)
    if found is None:
        return
    granted = {each.split("(")[0].strip().upper() for each in found[1].split(",")}
    more = sorted(granted - _NEEDED)
    if more:
        yield f"the account has {', '.join(more)} on {found[2]}"
    if "WITH GRANT OPTION" in grant.upper():
        yield f"the account may give its rights on {found[2]} to others"


def _steps(node: Any) -> Iterator[Step]:
    """The tables of a plan, wherever they stand in it: MySQL and MariaDB nest them differently."""
    if isinstance(node, list):
        for each in node:
            yield from _steps(each)
    elif isinstance(node, dict):
        if "table_name" in node and "access_type" in node:
            rows = node.get("rows_examined_per_scan", node.get("rows", 0))
            kind = str(node["access_type"]).upper()
            yield Step(node["table_name"], kind == "ALL", node.get("key", ""), int(rows or 0))
        for each in node.values():
            yield from _steps(each)
