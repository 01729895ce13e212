"""MySQL and MariaDB, through asyncmy: values cross as the server writes them.

The smallest rights that an account needs (no global ones at all):

    GRANT SELECT ON clinic.each_table_that_the_mapping_reads TO 'gateway'@'its host';
    GRANT INSERT ON clinic.each_table_that_a_booking_inserts_into TO 'gateway'@'its host';
    GRANT UPDATE ON clinic.each_table_that_a_booking_updates TO 'gateway'@'its host';

An account may always stop its own statements (KILL).
"""

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from math import ceil
from typing import Any

import asyncmy
from asyncmy.constants import FIELD_TYPE
from asyncmy.converters import conversions
from asyncmy.errors import InternalError, MySQLError
from sqlalchemy import Connection, Executable, case, cast, event, func, text
from sqlalchemy.dialects.mysql import CHAR, DECIMAL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.base import BackendUnavailable
from adapters.sql.engines import base
from adapters.sql.engines.base import Criterion, ErrorKind, Expression, Plan, Speech, quoted
from adapters.sql.engines.connection import OpenConnection
from adapters.sql.engines.pools import PoolLane
from adapters.values.convert import LONGEST_FOLDED, WHOLE_LETTERS

# In a connection's `info`: the names of the locks that it holds.
LOCKS = "clinic_locks"
# It takes letters with and without their accents, and in both cases, for the same.
COLLATION = "utf8mb4_unicode_ci"
_NUMBERS = {
    ErrorKind.DOWN: (
        *(1021, 1037, 1040, 1041, 1042, 1043, 1044, 1045, 1047, 1049, 1053, 1077, 1079, 1080),
        *(1129, 1130, 1152, 1153, 1158, 1159, 1160, 1161, 1184, 1203, 1226, 1698, 1927),
        *(2002, 2003, 2005, 2006, 2012, 2013, 2014, 2026, 2045, 2055, 4031),
    ),
    ErrorKind.TIMEOUT: (1317, 1969, 3024),
    ErrorKind.BUSY: (1205, 1689, 3572),
    ErrorKind.AGAIN: (1020, 1213, 1412),
    ErrorKind.DUPLICATE: (1022, 1062, 1169, 1586),
    ErrorKind.REFUSED: (*(1048, 1216, 1217, 1364, 1451, 1452, 1644, 3819, 4025),),
    ErrorKind.UNFIT: (1264, 1265, 1292, 1366, 1411, 1525),
    ErrorKind.LONG: (1406,),
    ErrorKind.DENIED: (1142, 1143, 1227, 1370),
    ErrorKind.STATEMENT: (
        *(1046, 1051, 1052, 1054, 1055, 1060, 1064, 1066, 1096, 1103, 1109, 1111, 1140, 1146),
        *(1166, 1222, 1241, 1242, 1247, 1248, 1267, 1270, 1271, 1305, 1327, 1356, 1370, 1582),
        *(1583, 1584, 1630, 1824, 1935, 4078, 4079),
    ),
}
KINDS = {str(number): kind for kind, numbers in _NUMBERS.items() for number in numbers}
BEGIN_READ = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
BEGIN_BOOKING = "START TRANSACTION READ WRITE"
_EXPLAIN = "EXPLAIN FORMAT=JSON"
_NO_WRITE_HERE = "1792"
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
_THREAD = "clinic_thread"
# Seconds for a connection that is made only to stop another.
_STOPPING = 2
_WHOLE = ("TINY", "SHORT", "LONG", "LONGLONG", "INT24", "YEAR")
# Dates and times have no decoder: they stay the server's texts, zero dates too.
_CONVERSIONS: dict[Any, Any] = {
    **{kind: encode for kind, encode in conversions.items() if not isinstance(kind, int)},
    **{getattr(FIELD_TYPE, name): int for name in _WHOLE},
    FIELD_TYPE.FLOAT: float,
    FIELD_TYPE.DOUBLE: float,
    FIELD_TYPE.DECIMAL: base.plain_number,
    FIELD_TYPE.NEWDECIMAL: base.plain_number,
}
_RELEASE = "DO RELEASE_LOCK(%s)"


class MysqlSpeech(Speech):
    """The spelling of MySQL 8 and of MariaDB 10.2 and later."""

    spelling = base.Spelling(
        joined="CONCAT({}, {})",
        uuid="UUID()",
        length="TIME_FORMAT(SEC_TO_TIME(:minutes * 60), '%H:%i{}')",
        seconds=":%s",
        # MariaDB's own. It sets numbers aside, and tells the next one that is not.
        last_number="SELECT next_not_cached_value - increment * GREATEST(cache_size, 1),"
        " next_not_cached_value - increment FROM {}",
    )
    grants, grants_in = ("GRANT SELECT ON {database}.* TO {account};",), "{database}."
    kinds, binary, now = KINDS, "utf8mb4_bin", _CLOCK
    bits_are_letters = True
    columns = base.columns_beside("information_schema", "mysql", "sys", "performance_schema")
    unknown_table = "Table '([^']+)' doesn't exist"
    unknown_column = "Unknown column '([^']+)'"

    def searchable(self, expression: Expression) -> Expression:
        plain = func.lower(func.left(func.coalesce(_text(expression), quoted("")), LONGEST_FOLDED))
        for letter, several in WHOLE_LETTERS.items():
            plain = func.replace(plain, quoted(letter), quoted(several))
        bare = func.regexp_replace(plain, quoted("[[:space:][:punct:]]"), quoted(" "))
        return func.concat(quoted(" "), bare).collate(COLLATION)

    def trimmed(self, expression: Expression) -> Expression:
        ends = quoted("^[[:space:]]+|[[:space:]]+$")
        return func.regexp_replace(_text(expression), ends, quoted(""))

    def number(self, expression: Expression) -> Expression:
        bare = func.regexp_replace(_text(expression), quoted("[[:space:]']"), quoted(""))
        plain = bare.op("REGEXP", is_comparison=True)(quoted(base.PLAIN_NUMBER))
        pointed = func.replace(bare, quoted(","), quoted("."))
        return case((plain, cast(pointed, DECIMAL(40, 15))))

    def undated(self, expression: Expression) -> Criterion:
        return _text(expression).op("NOT REGEXP", is_comparison=True)(quoted(base.DATED))

    def explain(self, connection: Connection, statement: Executable, bound: dict[str, Any]) -> Plan:
        try:
            answer = base.explain(connection, _EXPLAIN, statement, bound)
        except DBAPIError as error:
            if self.code(error) != _NO_WRITE_HERE:
                raise
            # a read-only transaction does not even explain what writes
            connection.exec_driver_sql(BEGIN_BOOKING)
            try:
                answer = base.explain(connection, _EXPLAIN, statement, bound)
            finally:
                connection.exec_driver_sql(BEGIN_READ)
        return tuple(_accesses(json.loads(answer.scalar_one())))

    def code(self, error: DBAPIError) -> str:
        first = next(iter(getattr(error.orig, "args", ())), 0)
        return str(first) if first and isinstance(first, int) else type(error.orig).__name__

    def sentence(self, error: DBAPIError) -> object:
        return getattr(error.orig, "args", ("",))[-1]

    def lock(self, connection: Connection, name: str) -> None:
        """Takes a lock of the whole server, which is why its name contains the database's."""
        database = connection.engine.url.database
        digest = blake2b(f"{database}:{name}".encode(), digest_size=16).hexdigest()
        seconds = ceil(base.seconds_left(connection))
        full = f"clinic-gateway:{digest}"
        if connection.scalar(_LOCK, {"name": full, "seconds": seconds}) != 1:
            raise BackendUnavailable(ErrorKind.BUSY)
        connection.info.setdefault(LOCKS, []).append(full)

    def rights(self, connection: Connection) -> Sequence[str]:
        excess: list[str] = []
        for granted, there, grant in _grants(connection):
            if more := sorted(granted - _NEEDED):
                excess.append(f"the account has {', '.join(more)} on {there}")
            if "WITH GRANT OPTION" in grant.upper():
                excess.append(f"the account may give its rights on {there} to others")
        return excess

    def writable(self, connection: Connection) -> Sequence[tuple[str, str]]:
        return [
            (right, there.rpartition(".")[2].strip("`"))
            for granted, there, _ in _grants(connection)
            for right in sorted(granted & {"INSERT", "UPDATE"})
        ]

    def unsafe_tables(self, connection: Connection, tables: Sequence[str]) -> Sequence[str]:
        without = {name.lower() for name in connection.execute(_ENGINES).scalars()}
        return [name for name in tables if name.split(".")[-1].strip('`" ').lower() in without]


def _grants(connection: Connection) -> Iterator[tuple[set[str], str, str]]:
    """Yields the rights of each grant, what they are on, and the grant as it is shown."""
    for grant in connection.exec_driver_sql("SHOW GRANTS").scalars():
        if what := _GRANT(grant):
            rights = re.sub(r"\([^)]*\)", "", what[1])  # the columns that a right is for
            yield {right.strip().upper() for right in rights.split(",")}, what[2], grant


def _text(expression: Expression) -> Expression:
    return cast(expression, CHAR(charset="utf8mb4"))


def _accesses(node: Any) -> Iterator[base.TableAccess]:
    """Yields the tables of a plan, which MySQL and MariaDB nest differently."""
    if isinstance(node, dict):
        if "table_name" in node and "access_type" in node:
            rows = node.get("rows_examined_per_scan", node.get("rows", 0))
            scans = str(node["access_type"]).upper() == "ALL"
            yield base.TableAccess(node["table_name"], scans, node.get("key", ""), int(rows or 0))
        node = list(node.values())
    for inner in node if isinstance(node, list) else ():
        yield from _accesses(inner)


class MysqlLane(PoolLane):
    """TLS is asked for with ?ssl_ca=/path/of/ca.pem."""

    speech = MysqlSpeech()
    errors = (MySQLError,)
    begin_read, begin_booking = BEGIN_READ, BEGIN_BOOKING
    reads_alone = True

    # how connections are made, as another one may have to stop one
    _arguments: Any = None

    def pool(self) -> AsyncEngine:
        """Returns a pool whose sessions all have the isolation that its transactions need."""
        # what the desk commits meanwhile is seen when a booking looks again
        how = "ISOLATION LEVEL READ COMMITTED, READ WRITE"
        if not self.booking:
            how = "ISOLATION LEVEL REPEATABLE READ, READ ONLY"
        engine = self.connections(
            self.address.set(drivername="mysql+asyncmy"),
            charset="utf8mb4",
            conv=_CONVERSIONS,
            init_command=f"SET SESSION TRANSACTION {how}",
        )

        @event.listens_for(engine.sync_engine, "do_connect")
        def remember(*call: Any) -> None:
            self._arguments = dict(call[3])

        @event.listens_for(engine.sync_engine, "connect")
        def remember_thread(connection: Any, record: Any) -> None:
            record.info[_THREAD] = connection.driver_connection.thread_id()

        return engine

    async def fetch(
        self, opened: OpenConnection, text: str, bound: Sequence[Any] | None
    ) -> Sequence[Any]:
        try:
            if bound is None:
                await opened.raw.query(text)
                return ()
            cursor = opened.raw.cursor()
            await cursor.execute(text, bound)
            rows: Sequence[Any] = await cursor.fetchall()
        except AttributeError as error:  # as asyncmy meets a connection that is gone
            raise InternalError("network operation failed") from error
        return rows

    async def limit(self, opened: OpenConnection, tenths: int) -> None:
        longest = f"max_execution_time = {tenths * 100}"
        if opened.connection.dialect.is_mariadb:  # type: ignore[attr-defined]
            longest = f"max_statement_time = {tenths / 10}"
        wait = ceil(tenths / 10)
        # nosemgrep: sql-is-never-put-together-as-text - numbers of ours
        await opened.run(
            f"SET SESSION {longest}, innodb_lock_wait_timeout = {wait}, lock_wait_timeout = {wait}"
        )

    async def settle(self, opened: OpenConnection) -> None:
        """Releases the named locks, which are the session's and outlive the transaction."""
        names = opened.info.get(LOCKS, [])
        while names:
            await opened.run(_RELEASE, (names[-1],))
            names.pop()

    async def stop(self, info: dict[Any, Any]) -> None:
        """Ends the statement from another connection, as it runs on when its client is gone."""
        thread = info.get(_THREAD)
        if thread is None:
            return
        with suppress(OSError, MySQLError):
            async with asyncio.timeout(_STOPPING):
                other = await asyncmy.connect(**self._arguments)
                try:
                    await other.query(  # type: ignore[no-untyped-call]  # it has no types
                        f"KILL {int(thread)}"
                    )
                finally:
                    await other.ensure_closed()
