"""Opens SQLAlchemy's view of a database's structure, on whatever driver."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

NO_LIST = (
    "the tables cannot be listed through this driver: name the database's own in the address"
    " (postgresql://...), or write the mapping by hand (docs/smallest-mapping.md)"
)


class Unlisted(ValueError):
    """Raised where a database's tables cannot be listed; the text says what to do."""


@contextmanager
def inspected(connection: sa.Connection) -> Iterator[sa.Inspector]:
    """Yields what tells tables, columns and keys.

    Raises Unlisted where the tables cannot be listed.
    """
    dialect: Any = connection.dialect
    if dialect.server_version_info is None:
        dialect.initialize(connection)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # types that SQLAlchemy does not know do not matter here
        inspector = sa.inspect(connection)
        try:
            inspector.get_table_names()
        except NotImplementedError:
            raise Unlisted(NO_LIST) from None
        yield inspector
