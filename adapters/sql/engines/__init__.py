"""The databases that a practice system may keep its tables in: one engine each.

The door of the family: `open_engine` knows them by the beginning of the address.
"""

import importlib.util
from collections.abc import Iterator, Sequence

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
        return list(_not_a_file(address))
    return [
        *_not_on_a_server(address),
        *(_odd_options(address) if kind == "mysql" else ()),
        *_missing_driver(kind),
    ]


def open_engine(url: str, *, timeout: float, booking_timeout: float) -> Engine:
    """The engine for an address; ValueError, in a sentence, where there is none."""
    wrong = wrong_with(url)
    if wrong:
        raise ValueError(f"the database's address {wrong[0]}")
    address = make_url(url)
    kind = SCHEMES[address.drivername]
    if kind == "postgresql":
        from adapters.sql.engines.postgres import open_postgres as opened
    elif kind == "mysql":
        from adapters.sql.engines.mysql import open_mysql as opened
    elif kind == "mssql":
        from adapters.sql.engines.mssql import open_mssql as opened
    else:
        from adapters.sql.engines.sqlite import open_sqlite as opened
    return opened(address, timeout=timeout, booking_timeout=booking_timeout)


def _unknown(address: URL) -> str:
    backend = address.get_backend_name()
    if SCHEMES.get(backend) and address.drivername != backend:
        return f"must not name a driver: write {backend}://"
    known = ", ".join(scheme for scheme in SCHEMES if scheme != "postgres")
    if backend in ("http", "https"):
        return f"is no database's: what speaks {backend} needs backend.adapter: rest"
    return f"begins with {backend}, which is not known: use one of {known}"


def _not_a_file(address: URL) -> Iterator[str]:
    if not address.database or address.host or address.database.startswith(":"):
        yield "must name the database's file, such as sqlite:////srv/clinic.db"
    elif address.query:
        yield "takes nothing behind a ?; a ? in a path is written %3F"


def _not_on_a_server(address: URL) -> Iterator[str]:
    if not address.database:
        yield f"must name the database, such as {address.drivername}://user:password@host/clinic"


def _odd_options(address: URL) -> Iterator[str]:
    """The driver would take others too, but as texts where it needs numbers."""
    known = ", ".join(MYSQL_OPTIONS)
    for name in address.query:
        if name not in MYSQL_OPTIONS:
            yield f"has an option {name!r} that is not known: {known} are"


def _missing_driver(kind: str) -> Iterator[str]:
    if importlib.util.find_spec(DRIVERS[kind]) is None:
        extra = f"pip install 'clinic-gateway[{EXTRAS[kind]}]'"
        yield f"needs a driver that is not installed: {extra}"
