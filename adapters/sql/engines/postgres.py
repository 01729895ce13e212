"""PostgreSQL, through asyncpg: values cross as the server writes them, statements stop in time.

The smallest rights that an account needs:

    GRANT CONNECT ON DATABASE clinic TO gateway;
    GRANT USAGE ON SCHEMA public TO gateway;
    GRANT SELECT ON every table that the mapping reads TO gateway;
    GRANT INSERT ON the tables that a booking inserts into TO gateway;
    GRANT UPDATE ON the tables that a booking updates TO gateway;
    GRANT USAGE ON the sequences of those tables TO gateway;
"""

import json
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # it comes without types
import sqlalchemy as sa
from asyncpg.pgproto import pgproto  # type: ignore[import-untyped]
from sqlalchemy import Connection, Executable, case, cast, event, func, literal_column, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.base import BackendUnavailable
from adapters.sql.engines import base
from adapters.sql.engines.base import Criterion, ErrorKind, Expression, Plan, Speech, quoted
from adapters.sql.engines.connection import OpenConnection
from adapters.sql.engines.pools import PoolLane
from adapters.values.convert import LONGEST_FOLDED, fold

# By the beginning of the SQLSTATE; the longest that fits holds.
KINDS = {
    **dict.fromkeys(("08", "28", "3D", "53", "57P", "58", "25P03"), ErrorKind.DOWN),
    "57014": ErrorKind.TIMEOUT,
    "55P03": ErrorKind.BUSY,
    "40": ErrorKind.AGAIN,
    "40003": ErrorKind.OTHER,  # of its class alone: nobody knows whether it was done
    **dict.fromkeys(("23505", "23P01"), ErrorKind.DUPLICATE),
    **dict.fromkeys(("23", "P0001"), ErrorKind.REFUSED),
    "42501": ErrorKind.DENIED,
    **dict.fromkeys(("22003", "22007", "22008", "22018", "22021", "22P"), ErrorKind.UNFIT),
    "22001": ErrorKind.LONG,
    **dict.fromkeys(("22", "42", "0A", "3F"), ErrorKind.STATEMENT),
    # a table was changed: prepared anew it goes
    "InvalidCachedStatementError": ErrorKind.AGAIN,
}
_LOCK = text("SELECT pg_advisory_xact_lock(:number)")
_CLOCK = text(
    r"SELECT to_char(now(), 'YYYY-MM-DD HH24\:MI\:SS'),"
    r" to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24\:MI\:SS'),"
    " current_setting('TimeZone')"
)
_ROLE = text(
    "SELECT 'the account ' || said FROM pg_roles, LATERAL (VALUES (rolsuper, 'is a superuser'),"
    " (rolcreaterole, 'may create other accounts'), (rolcreatedb, 'may create databases'),"
    " (rolreplication, 'may copy the whole database'),"
    " (rolbypassrls, 'passes by row level security'),"
    " (has_database_privilege(current_database(), 'CREATE'), 'may create schemas'))"
    " AS rights (has, said) WHERE rolname = current_user AND has"
)
# Columns that are numbered by themselves (identity) need no right.
_SERIAL = text(
    "SELECT has_sequence_privilege(pg_get_serial_sequence(CAST(:name AS text),"
    " CAST(:number AS text)), 'USAGE') FROM pg_attribute WHERE attidentity = ''"
    " AND attrelid = to_regclass(CAST(:name AS text)) AND attname = CAST(:number AS text)"
)
# Those of all rows; what is no plain column has no name.
_INDEXES = text(
    "SELECT CAST(i.indexrelid AS text), COALESCE(CAST(a.attname AS text), '') FROM pg_index i"
    " CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(number, place)"
    " LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number"
    " WHERE i.indrelid = to_regclass(CAST(:name AS text)) AND i.indpred IS NULL"
    " ORDER BY i.indexrelid, k.place"
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
_WRITABLE = text(
    "SELECT r.name, CAST(c.relname AS text) FROM pg_class c"
    " JOIN pg_namespace n ON n.oid = c.relnamespace"
    " CROSS JOIN (VALUES ('INSERT'), ('UPDATE')) AS r (name) WHERE c.relkind IN ('r', 'p')"
    " AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'"
    " AND has_any_column_privilege(c.oid, r.name) AND NOT pg_has_role(c.relowner, 'USAGE')"
    " ORDER BY 1, 2"
)
MOST_NAMED = 5
_NARROW = "clinic_narrow"
# The encodings that lack letters, by PostgreSQL's names and by Python's.
_CODECS = {
    "SQL_ASCII": "ascii",  # where a letter is so many bytes, and accents cannot be told
    "LATIN1": "latin-1",
    "LATIN2": "iso8859-2",
    "LATIN5": "iso8859-9",
    "LATIN9": "iso8859-15",
    **{f"WIN{number}": f"cp{number}" for number in range(1250, 1259)},
}
_SETTINGS = {
    "application_name": "clinic-gateway",
    # a transaction that a lost gateway left open ends by itself
    "idle_in_transaction_session_timeout": "30000",
    # with it, a page in the middle of a list reads the joined tables from their beginning
    "enable_mergejoin": "off",
}

# For connections that read: what is asked outside of a transaction is a snapshot and cannot write,
# and so is what a function in the statement asks.
_READING = {
    "default_transaction_isolation": "repeatable read",
    "default_transaction_read_only": "on",
}
_IN_FORCE = "SELECT name, current_setting(name) FROM unnest($1::text[]) AS name"
_LIMIT = "SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $1, false)"

# Letters, marks, and accents that stand behind their letter. The micro sign would turn Greek.
_CODES = (range(0xA0, 0xB5), range(0xB6, 0x180), range(0x300, 0x370), range(0x1E00, 0x1F00))
_LETTERS = map(chr, chain(*_CODES, range(0x2010, 0x2028)))
_FOLDED = {letter: plain for letter in _LETTERS if (plain := fold(letter)[1:]) != letter}
_ONE_TO_ONE = {letter: plain for letter, plain in _FOLDED.items() if len(plain) == 1}
_LEFT_OUT = "".join(letter for letter, plain in _FOLDED.items() if not plain)
# Letters that stay as they are, the commonest first: for each letter of a text, a server searches
# the table from its beginning.
_COMMON = "etaoinsrhldcumfpgwybvkxjqz "
_STAYING = _COMMON + _COMMON.strip().upper()
# For TRANSLATE: what has no letter at its place in PLAIN is left out.
ACCENTED = _STAYING + "".join(_ONE_TO_ONE) + _LEFT_OUT
PLAIN = _STAYING + "".join(_ONE_TO_ONE.values())
# One letter that becomes several.
_SEVERAL = {
    letter: plain
    for letter, plain in _FOLDED.items()
    if len(plain) > 1 and plain.isascii() and plain.isalpha()
}


class PostgresSpeech(Speech):
    """PostgreSQL's spelling, without any extension."""

    kinds, binary, now = KINDS, "C", _CLOCK
    spelling = base.Spelling(
        digits="CAST({} AS text)",
        uuid="gen_random_uuid()",
        length="to_char(CAST(:minutes AS integer) * interval '1 minute', 'HH24:MI{}')",
        # but not of one that numbers a column by itself
        last_number="SELECT last_value, last_value FROM {0} WHERE NOT EXISTS (SELECT 1"
        " FROM pg_depend d JOIN pg_attribute a ON a.attrelid = d.refobjid"
        " AND a.attnum = d.refobjsubid WHERE d.objid = CAST('{0}' AS regclass)"
        " AND d.deptype IN ('a', 'i') AND (a.atthasdef OR a.attidentity <> ''))",
    )
    grants = (
        "GRANT USAGE ON SCHEMA public TO {account};",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {account};",
    )
    grants_sequences = True
    misfits = frozenset({"22P02", "22003"})
    columns = base.columns_beside("information_schema", "pg_catalog")
    unknown_table = r"relation \"([^\"]+)\" does not exist"
    unknown_column = r"column \"?([\w.]+)\"? (?:of relation \"\w+\" )?does not exist"
    folds_names = True
    # they do not come through the codecs
    reflects_indexes = False

    def searchable(self, expression: Expression) -> Expression:
        raw = func.left(func.coalesce(cast(expression, sa.Text), quoted("")), LONGEST_FOLDED)
        plain: Expression = func.translate(raw, quoted(ACCENTED), quoted(PLAIN))
        for letter, several in _SEVERAL.items():
            plain = func.replace(plain, quoted(letter), quoted(several))
        marks = quoted("[[:space:][:punct:]]")
        bare = func.regexp_replace(func.lower(plain), marks, quoted(" "), quoted("g"))
        return quoted(" ").op("||")(bare)

    def trimmed(self, expression: Expression) -> Expression:
        return func.btrim(cast(expression, sa.Text), literal_column(r"E' \t\n\r\f\x0b'"))

    def number(self, expression: Expression) -> Expression:
        shown = cast(expression, sa.Text)
        bare = func.regexp_replace(shown, quoted("[[:space:]']"), quoted(""), quoted("g"))
        plain = bare.op("~", is_comparison=True)(quoted(base.PLAIN_NUMBER))
        return case((plain, cast(func.replace(bare, quoted(","), quoted(".")), sa.Numeric)))

    def undated(self, expression: Expression) -> Criterion:
        return cast(expression, sa.Text).op("!~", is_comparison=True)(quoted(base.DATED))

    def explain(self, connection: Connection, statement: Executable, bound: dict[str, Any]) -> Plan:
        with connection.begin_nested():  # an error would end the transaction
            words = "EXPLAIN (FORMAT JSON)"
            plan = base.explain(connection, words, statement, bound).scalar_one()
        return tuple(_accesses(json.loads(plan)[0]["Plan"]))

    def code(self, error: DBAPIError) -> str:
        cause = error.orig
        for kind in (asyncpg.InvalidCachedStatementError, asyncpg.InterfaceError):
            if isinstance(cause, kind):
                return str(kind.__name__)
        state = getattr(cause, "sqlstate", None)
        return str(state) if state else type(cause).__name__

    def sentence(self, error: DBAPIError) -> object:
        cause = error.driver_exception
        hint = getattr(cause, "hint", None)
        return f"{cause}; {hint}" if hint else cause

    def lock(self, connection: Connection, name: str) -> None:
        digest = blake2b(f"clinic-gateway:{name}".encode(), digest_size=8).digest()
        connection.execute(_LOCK, {"number": int.from_bytes(digest, signed=True)})

    def rights(self, connection: Connection) -> Sequence[str]:
        excess = list(connection.execute(_ROLE).scalars())
        if "the account is a superuser" in excess:  # and so everything else
            return excess[:1]
        schemas = connection.execute(_SCHEMAS).scalars()
        excess += [f"the account may create tables in the schema {schema}" for schema in schemas]
        tables = connection.execute(_TABLES).all()
        for may, owned in (("owns tables and may drop them", True), ("may delete rows", False)):
            names = [name for name, owns in tables if owns is owned]
            rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            if names:
                excess.append(f"the account {may}: {', '.join(names[:MOST_NAMED])}{rest}")
        return excess

    def writable(self, connection: Connection) -> Sequence[tuple[str, str]]:
        return [(right, name) for right, name in connection.execute(_WRITABLE)]

    def may_use(self, connection: Connection, sequence: str) -> bool:
        return bool(connection.scalar(sa.select(func.has_sequence_privilege(sequence, "USAGE"))))

    def may_number(self, connection: Connection, table: str, column: str) -> bool:
        return connection.scalar(_SERIAL, {"name": table, "number": column}) is not False

    def indexes(self, connection: Connection, table: str) -> Sequence[Sequence[str]]:
        """Returns them by a query of its own, as the driver's do not come through the codecs."""
        name = ".".join(map(connection.dialect.identifier_preparer.quote, table.split(".")))
        known: dict[str, list[str]] = {}
        for index, column in connection.execute(_INDEXES, {"name": name}):
            known.setdefault(index, []).append(column)
        return list(known.values())

    def schemas(self, inspector: sa.Inspector) -> Sequence[str]:
        others = {*inspector.get_schema_names()} - {"information_schema"}
        return sorted(name for name in others if not name.startswith("pg_"))


def _accesses(node: dict[str, Any]) -> Iterator[base.TableAccess]:
    inner = node.get("Plans", ())
    if "Relation Name" in node:
        indexes = [node.get("Index Name"), *(plan.get("Index Name") for plan in inner)]
        index = next(filter(None, indexes), "")
        scans = node["Node Type"] == "Seq Scan"
        yield base.TableAccess(node["Relation Name"], scans, index, int(node["Plan Rows"]))
    for plan in inner:
        yield from _accesses(plan)


class PostgresLane(PoolLane):
    """The address may carry what libpq knows: ?sslmode=require."""

    speech = PostgresSpeech()
    begin_read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    # what the desk commits meanwhile is seen when a booking looks again
    begin_booking = "BEGIN ISOLATION LEVEL READ COMMITTED"
    errors = (asyncpg.PostgresError, asyncpg.InterfaceError)
    reads_alone = True
    unreadable = (asyncpg.InternalClientError, pgproto.BufferError)

    def pool(self) -> AsyncEngine:
        """Returns an engine whose connections' values cross as texts."""
        engine = self.connections("postgresql+asyncpg://", async_creator_fn=self._connect)
        # after SQLAlchemy's own, so that these stay
        event.listen(engine.sync_engine, "connect", _prepare)
        event.listen(engine.sync_engine, "before_cursor_execute", _narrow, retval=True)
        return engine

    async def _connect(self, *_: Any, **__: Any) -> Any:
        dsn = self.address.set(drivername="postgresql").render_as_string(hide_password=False)
        try:
            connection = await asyncpg.connect(
                dsn,
                server_settings=_SETTINGS | ({} if self.booking else _READING),
                # kept as long as the connection, however long they are
                max_cached_statement_lifetime=0,
                max_cacheable_statement_size=0,
            )
        except (asyncpg.UndefinedObjectError, asyncpg.InvalidParameterValueError) as error:
            raise BackendUnavailable(
                "the server does not take an option that stands behind the ? of its address"
            ) from error
        try:
            await self._check(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _check(self, connection: Any) -> None:
        """Raises BackendUnavailable where a connection for reads lacks one of _READING."""
        if self.booking:
            return
        in_force = dict(await connection.fetch(_IN_FORCE, [*_READING]))
        for name, value in _READING.items():
            if in_force[name] != value:
                raise BackendUnavailable(
                    f"{name} is not {value}, which reads need: a pooler in front of the server"
                    " ignores the options of a connection; in backend.url, connect to the server"
                    " itself"
                )

    async def fetch(
        self, opened: OpenConnection, text: str, bound: Sequence[Any] | None
    ) -> Sequence[Any]:
        if bound is None:
            await opened.raw.execute(text)
            return ()
        rows: Sequence[Any] = await opened.raw.fetch(_narrowed(opened.info, text), *bound)
        return rows

    def is_lost(self, opened: OpenConnection, error: Exception) -> bool:
        return bool(opened.raw.is_closed())

    async def limit(self, opened: OpenConnection, tenths: int) -> None:
        await opened.run(_LIMIT, (f"{tenths}00",))


def _prepare(connection: Any, record: Any) -> None:
    """Makes values cross as texts, and notes the letters that the server's encoding lacks."""
    connection.run_async(_set_codecs)
    codec = _CODECS.get(connection.driver_connection.get_settings().server_encoding)
    if codec is None:
        return

    def kept(letter: str) -> bool:
        return bool(letter.encode(codec, errors="ignore"))

    pairs = zip(ACCENTED, PLAIN, strict=False)
    lost = [(f"'{letter}'", "''") for letter in _SEVERAL if not kept(letter)]
    record.info[_NARROW] = [
        (ACCENTED, "".join(filter(kept, ACCENTED))),
        (PLAIN, "".join(plain for letter, plain in pairs if kept(letter))),
        *lost,
    ]


def _narrowed(info: dict[Any, Any], statement: str) -> str:
    """Removes letters that the database's encoding lacks, as the server would refuse them."""
    narrow = info.get(_NARROW)
    if narrow is not None and ACCENTED in statement:
        for wide, shorter in narrow:
            statement = statement.replace(wide, shorter)
    return statement


def _narrow(*call: Any) -> tuple[str, Any]:
    """Does the same to what SQLAlchemy asks."""
    connection, _, statement, parameters, *_ = call
    return _narrowed(connection.info, statement), parameters


async def _set_codecs(raw: Any) -> None:
    """Makes values cross as the server's own texts, and parameters as texts that it reads."""
    for names, encode, decode, wire in _CODECS_OF_TYPES:
        for name in names.split():
            await raw.set_type_codec(
                name, schema="pg_catalog", encoder=encode, decoder=decode, format=wire
            )


def _plain_text(value: Any) -> str:
    """Returns a parameter as a text that any column can be compared with."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def _as_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else _plain_text(value).encode()


def _as_boolean(value: Any) -> str:
    return {"1": "true", "0": "false"}.get(_plain_text(value), _plain_text(value))


_CODECS_OF_TYPES: tuple[tuple[str, Callable[[Any], Any], Callable[[Any], Any], str], ...] = (
    ("bool", _as_boolean, lambda shown: shown == "t", "text"),
    ("int2 int4 int8 oid", _plain_text, int, "text"),
    ("float4 float8", _plain_text, float, "text"),
    ("numeric", _plain_text, base.plain_number, "text"),
    ("date time timetz timestamp timestamptz interval", _plain_text, str, "text"),
    ("uuid json jsonb xml money inet cidr macaddr bit varbit", _plain_text, str, "text"),
    # as bytes: a database without an encoding holds texts in any
    ("text varchar bpchar name", _as_bytes, base.as_text, "binary"),
)
