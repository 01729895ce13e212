"""The gateway's own database: keys, bookings, what must not change. The door is `open_store`."""

from pathlib import Path

from gateway.store.base import Store, StoreError

__all__ = ["Store", "StoreError", "open_store"]


def open_store(place: str | Path) -> Store:
    """The store in a file, at `sqlite:///path`, or at `postgresql://user:password@host/database`.

    As URLs are written: `%3F` for a `?`. StoreError, in a sentence, where there can't be one.
    """
    if isinstance(place, Path) or place.startswith("sqlite:///"):
        from gateway.store.sqlite import SqliteStore

        return SqliteStore(place if isinstance(place, Path) else _file(place))
    if place.startswith(("postgresql://", "postgres://")):
        return _on_postgres(place)
    scheme = place.partition(":")[0]
    raise StoreError(
        f"store: {scheme} is not possible; use sqlite:///path/to/gateway.db, or"
        " postgresql://user:password@host/database"
    )


def _on_postgres(url: str) -> Store:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        from gateway.store.postgres import PostgresStore
    except ModuleNotFoundError as error:
        raise StoreError(
            "store: PostgreSQL needs a driver: pip install 'clinic-gateway[postgres]'"
        ) from error
    try:
        return PostgresStore(make_url(url))
    except (ArgumentError, ValueError):  # their words may quote the address
        raise StoreError(
            "store: must be an address such as postgresql://user:password@host:5432/database"
        ) from None


def _file(url: str) -> Path:
    from sqlalchemy.engine import make_url

    address = make_url(url)
    if not address.database or address.query:
        raise StoreError(
            f"store: {url} must name a file, such as sqlite:////srv/gateway/gateway.db,"
            " with %3F for a ? in its path"
        )
    return Path(address.database)
