"""The gateway's own database, on SQLite or PostgreSQL. The door is `open_store`."""

from pathlib import Path

from gateway.store.base import Store, StoreError

__all__ = ["Store", "StoreError", "open_store"]


def open_store(place: str | Path) -> Store:
    """Returns the store in a file, at `sqlite:///path`, or at `postgresql://user:password@host/db`.

    Addresses are URLs, with `%3F` for a `?`. Raises StoreError where there cannot be a store.
    """
    # each driver takes long to import, so the other one's is not
    if isinstance(place, Path) or place.startswith("sqlite:///"):
        from gateway.store.sqlite import SqliteStore, file_of

        return SqliteStore(place if isinstance(place, Path) else file_of(place))
    if place.startswith(("postgresql://", "postgres://")):
        try:
            from gateway.store.postgres import PostgresStore
        except ModuleNotFoundError as error:
            raise StoreError(
                "store: PostgreSQL needs a driver: pip install '.[postgres]' in the clone's folder"
            ) from error
        return PostgresStore(place)
    raise StoreError(
        f"store: {place.partition(':')[0]} is not possible; use sqlite:///path/to/gateway.db, or"
        " postgresql://user:password@host/database"
    )
