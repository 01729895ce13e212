"""The gateway's own database: keys, bookings, what must not change. The door is `open_store`."""

from pathlib import Path

from gateway.store.base import Store, StoreError

__all__ = ["Store", "StoreError", "open_store"]


def open_store(place: str | Path) -> Store:
    """The store in a file, or at `sqlite:///path` as URLs are written: `%3F` for a `?`.

    StoreError, in a sentence, where there can't be one.
    """
    if isinstance(place, Path) or place.startswith("sqlite:///"):
        from gateway.store.sqlite import SqliteStore

        return SqliteStore(place if isinstance(place, Path) else _file(place))
    scheme = place.partition(":")[0]
    raise StoreError(f"store: {scheme} is not possible so far; use sqlite:///path/to/gateway.db")


def _file(url: str) -> Path:
    from sqlalchemy.engine import make_url

    address = make_url(url)
    if not address.database or address.query:
        raise StoreError(
            f"store: {url} must name a file, such as sqlite:////srv/gateway/gateway.db,"
            " with %3F for a ? in its path"
        )
    return Path(address.database)
