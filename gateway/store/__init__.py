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

        return SqliteStore(place)
    scheme = place.partition(":")[0]
    raise StoreError(f"store: {scheme} is not possible so far; use sqlite:///path/to/gateway.db")
