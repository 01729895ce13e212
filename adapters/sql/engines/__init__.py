"""The databases that a practice system may keep its tables in: one engine each.

The door of the family: `open_engine` knows them by the beginning of the address.
"""

from collections.abc import Sequence

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from adapters.sql.engines.base import Engine

SCHEMES = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
    "mssql": "mssql",
}
EXTRAS = {"postgresql": "postgres", "mysql": "mysql", "mssql": "mssql"}
MYSQL_OPTIONS = (
    *("ssl_ca", "ssl_capath", "ssl_cert", "ssl_key", "ssl_cipher", "ssl_check_hostname"),
    *("unix_socket", "charset"),
)
DRIVERS = {"postgresql": "asyncpg", "mysql": "asyncmy", "mssql": "mssql_python"}


def wrong_with(url: str) -> Sequence[str]:
    """What keeps an address from being a practice database's, as ends of sentences."""
    try:
        address = make_url(url)
    except (ArgumentError, ValueError):
        return ["must be a database address such as sqlite:////srv/clinic.db"]
    kind = SCHEMES.get(address.drivername)
    if kind is None:
        return [_unknown(address)]
    if kind == "sqlite":
        from adapters.sql.engines import sqlite

        return list(sqlite.wrong_with(address))
    missing = _missing_driver(kind)
    options = _odd_options(address) if kind == "mysql" else []
    return [*_not_on_a_server(address), *options, *([missing] if missing else [])]


def open_engine(url: str, *, timeout: float, booking_timeout: float) -> Engine:
    """The engine for an address; ValueError, in a sentence, where there is none."""
    wrong = wrong_with(url)
    if wrong:
        raise ValueError(f"the database's address {wrong[0]}")
    address = make_url(url)
    kind = SCHEMES[address.drivername]
    if kind == "postgresql":
        from adapters.sql.engines.postgres import open_postgres

        return open_postgres(address, timeout=timeout, booking_timeout=booking_timeout)
    if kind == "mysql":
        from adapters.sql.engines.mysql import open_mysql

        return open_mysql(address, timeout=timeout, booking_timeout=booking_timeout)
    if kind == "mssql":
        from adapters.sql.engines.mssql import MssqlEngine

        return MssqlEngine(address, timeout=timeout, booking_timeout=booking_timeout)
    from adapters.sql.engines.sqlite import SqliteEngine

    return SqliteEngine(address.database or "", timeout=timeout, booking_timeout=booking_timeout)


def _unknown(address: URL) -> str:
    backend = address.get_backend_name()
    if SCHEMES.get(backend) and address.drivername != backend:
        return f"must not name a driver: write {backend}://"
    known = ", ".join(scheme for scheme in SCHEMES if scheme != "postgres")
    if backend in ("http", "https"):
        return f"is no database's: what speaks {backend} needs backend.adapter: rest"
    return f"begins with {backend}, which is not known: use one of {known}"


def _not_on_a_server(address: URL) -> list[str]:
    if address.database:
        return []
    return [f"must name the database, such as {address.drivername}://user:password@host/clinic"]


def _odd_options(address: URL) -> list[str]:
    """The driver would take others too, but as texts where it needs numbers."""
    return [
        f"has an option {name!r} that is not known: {', '.join(MYSQL_OPTIONS)} are"
        for name in address.query
        if name not in MYSQL_OPTIONS
    ]


def _missing_driver(kind: str) -> str | None:
    from importlib.util import find_spec

    if find_spec(DRIVERS[kind]) is not None:
        return None
    return f"needs a driver that is not installed: pip install 'clinic-gateway[{EXTRAS[kind]}]'"
