"""Opens the engine that runs work on a practice database, by its address."""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from adapters.base import CopyRules
from adapters.copies.addresses import EXAMPLES, wrong_with_files
from adapters.sql.engines.lanes import Lane
from adapters.sql.engines.odbc_address import wrong_with_odbc
from adapters.wrappers.call_limiter import bookings_of, searches_of

if TYPE_CHECKING:
    from adapters.copies.keeper import CopyKeeper

# Seconds within which a ping tells why the practice system does not answer.
PING_PATIENCE = 1.5


class Engine:
    """Runs work on the practice's database. Every verb raises AdapterErrors.

    A deadline counts from the call: `timeout` is a read's, `patience` a booking's. Of the
    `in_flight` calls at once, each finds a connection in its lane. Searches look at every row, so
    they have a lane of their own and hold up no other read. A ping has one too, as behind many slow
    reads it would report that nothing answers. `copy` is that of files which are read by one.
    """

    copy: "CopyKeeper | None" = None

    def __init__(
        self, kind: type[Lane], address: URL, timeout: float, patience: float, in_flight: int
    ) -> None:
        lane = partial(kind, address)
        self.reader, searcher = lane(in_flight, timeout), lane(searches_of(in_flight), timeout)
        inspector = lane(1, max(timeout, kind.inspection))
        bookers = 1 if kind.books_singly else bookings_of(in_flight)
        self.booker = lane(bookers, patience, booking=True)
        self.speech = self.reader.speech
        pinger = lane(1, min(timeout, PING_PATIENCE))
        self._lanes = (self.reader, searcher, inspector, pinger, self.booker)
        self.ask = self.reader.ask
        """Runs a flow of questions in one snapshot that cannot write, and returns its result."""
        self.read = self.reader.run
        """The same for a function of SQLAlchemy's connection."""
        self.inspect = inspector.run
        """The same for work of many statements that no partner waits for."""
        self.search = searcher.run
        """The same for work that looks at every row of a table."""
        self.book = self.booker.run
        """Runs work that writes: it is committed when the work returns, else undone.

        The work may run again where the database undid it for a collision.
        """
        question = text(kind.question)
        self.ping = partial(pinger.run, lambda connection: connection.scalar(question))
        """Raises an AdapterError where the database does not answer."""
        self.opened = self.reader.opened
        """Returns a connection that a function was given, for questions."""

    async def aclose(self) -> None:
        """Waits for running work and closes every connection."""
        for lane in self._lanes:
            await lane.aclose()


class EngineKind(NamedTuple):
    """One kind of database: its module, named as the extra, its Lane, and the driver it needs.

    `options` are those that an address may have; None where the driver itself judges them.
    """

    module: str
    lane: str
    needs: str
    options: tuple[str, ...] | None = None


_SQLITE = EngineKind("sqlite", "SqliteLane", "sqlite3")
_POSTGRES = EngineKind("postgres", "PostgresLane", "asyncpg")
# The driver would take others too, but as texts where it needs numbers.
_MYSQL_OPTIONS = (
    *("ssl_ca", "ssl_capath", "ssl_cert", "ssl_key", "ssl_cipher", "ssl_check_hostname"),
    *("unix_socket", "charset"),
)
_MYSQL = EngineKind("mysql", "MysqlLane", "asyncmy", _MYSQL_OPTIONS)
KINDS = {
    "sqlite": _SQLITE,
    "postgresql": _POSTGRES,
    "postgres": _POSTGRES,
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "mssql": EngineKind("mssql", "MssqlLane", "mssql_python"),
    "odbc": EngineKind("odbc", "OdbcLane", "pyodbc"),
    "firebird": EngineKind("firebird", "FirebirdLane", "sqlalchemy_firebird", ("charset", "role")),
}


class CopiedReads(NamedTuple):
    """What is read of a copy: tables that a text names, or all, and columns to have indices."""

    named: str | None = None
    wishes: list[list[str]] = []  # noqa: RUF012 - nobody changes them


def wrong_with(url: str) -> Sequence[str]:
    """Returns what keeps an address from being a practice database's, as ends of sentences."""
    try:
        address = make_url(url)
    except (ArgumentError, ValueError):
        return ["must be a database address such as sqlite:////srv/clinic.db"]
    if address.drivername in EXAMPLES:
        return wrong_with_files(address.drivername, address.database, address.host, address.query)
    kind = KINDS.get(address.drivername)
    if kind is None:
        return [_unknown(address)]
    if kind is _SQLITE:
        return _wrong_with_sqlite(address)
    wrong = list(_wrong_parts(kind, address))
    if importlib.util.find_spec(kind.needs) is None:
        extra = f"pip install '.[{kind.module}]' in the clone's folder"
        wrong.append(f"needs a driver that is not installed: {extra} installs it")
    return wrong


def _wrong_parts(kind: EngineKind, address: URL) -> Iterator[str]:
    if kind.module == "odbc":
        yield from wrong_with_odbc(address.query)
        return
    if kind.module == "firebird" and not address.host:
        yield "must name the server's host, such as firebird://user:password@host/clinic"
    elif not address.database:
        yield f"must name the database, such as {address.drivername}://user:password@host/clinic"
    if kind.options is not None:
        known = ", ".join(kind.options)
        odd = [name for name in address.query if name not in kind.options]
        yield from (f"has an option {name!r} that is not known: {known} are" for name in odd)


def _wrong_with_sqlite(address: URL) -> Sequence[str]:
    if not address.database or address.host or address.database.startswith(":"):
        return ["must name the database's file, such as sqlite:////srv/clinic.db"]
    rest = "takes nothing behind a ?; a ? in a path is written %3F"
    return [rest] if address.query else []


def open_engine(
    url: str,
    *,
    timeout: float,
    booking_timeout: float,
    in_flight: int = 4,
    copy: CopyRules | None = None,
    reads: Callable[[], CopiedReads] = CopiedReads,
) -> Engine:
    """Returns the engine for an address. Raises ValueError, with a sentence, where none fits.

    `copy` and `reads` are for files that are read by a copy, which without them has all tables and
    lasts as long as the engine. It blocks where `spoken` does.
    """
    wrong = wrong_with(url)
    if wrong:
        raise ValueError(f"the database's address {wrong[0]}")
    address = make_url(spoken(url))
    if address.drivername in EXAMPLES:
        copied = import_module(f"{__name__}.copied").CopiedEngine
        rules = CopyRules() if copy is None else copy
        engine: Engine = copied(address, reads(), rules, timeout, in_flight)
        return engine
    kind = KINDS[address.drivername]
    # imported only now, as it needs its driver
    lane = getattr(import_module(f"{__name__}.{kind.module}"), kind.lane)
    return Engine(lane, address, timeout, booking_timeout, in_flight)


def spoken(url: str) -> str:
    """Returns the address with its dialect, for which a database behind ODBC may have to be asked.

    That blocks. Raises ValueError, with a sentence, where it does not answer.
    """
    if not url.startswith("odbc:") or wrong_with(url) or make_url(url).query.get("dialect"):
        return url
    address = import_module(f"{__name__}.odbc").spoken(make_url(url))
    shown: str = address.render_as_string(hide_password=False)
    return shown


def _unknown(address: URL) -> str:
    backend = address.get_backend_name()
    if backend in KINDS and address.drivername != backend:
        return f"must not name a driver: write {backend}://"
    known = ", ".join(scheme for scheme in (*KINDS, *EXAMPLES) if scheme != "postgres")
    if backend in ("http", "https"):
        return f"is no database's: what speaks {backend} needs backend.adapter: rest"
    return f"begins with {backend}, which is not known: use one of {known}"
