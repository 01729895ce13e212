"""The gateway's own database: keys, bookings, what must not change. The door is `open_store`."""

from gateway.store.base import Store, StoreError

__all__ = ["Store", "StoreError", "open_store"]


def open_store(url: str) -> Store:
    """The store at `sqlite:///path`; StoreError, in a sentence, where there can't be one."""
    if url.startswith("sqlite:///"):
        from gateway.store.sqlite import SqliteStore

        return SqliteStore(url)
    scheme = url.partition(":")[0]
    raise StoreError(f"store: {scheme} is not possible so far; use sqlite:///path/to/gateway.db")
