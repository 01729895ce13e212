"""What keeps an address from being one of an ODBC data source; it needs no driver to be told."""

from collections.abc import Iterator, Mapping
from typing import Any

DIALECTS = ("postgresql", "mysql", "mariadb", "sqlite", "mssql", "plain")
LIMITS = ("fetch", "limit", "top")
"""How SQL without a dialect says that it wants the first rows alone."""


def wrong_with_odbc(query: Mapping[str, Any]) -> Iterator[str]:
    """Yields what is wrong, as ends of sentences."""
    names = {name.lower() for name in query}
    if not names & {"dsn", "driver", "filedsn"}:
        yield "must name a data source or a driver, such as odbc://user:password@/?dsn=clinic"
    if names & {"pwd", "password"}:
        yield "has a password behind the ?: write it before the @, as odbc://user:password@/?dsn=x"
    for option, known in (("dialect", DIALECTS), ("limit", LIMITS)):
        value = query.get(option, known[0])
        if value not in known:
            yield f"has a {option} {value!r} that is not known: {', '.join(known)} are"
