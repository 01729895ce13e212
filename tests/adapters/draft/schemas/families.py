"""Makes the databases of the families of schemas."""

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.adapters.draft.schemas import acts, desk, french, party, plain, upper
from tests.adapters.draft.schemas.spelling import Put
from tests.adapters.draft.schemas.world import World

HERE = Path(__file__).parent
FAMILIES: dict[str, Callable[[World, Put], None]] = {
    "plain": plain.fill,
    "party": party.fill,
    "acts": acts.fill,
    "desk": desk.fill,
    "french": french.fill,
    "upper": upper.fill,
}


def make(family: str, folder: Path) -> Path:
    """Makes the practice of a family as a SQLite database in the folder."""
    file = folder / f"{family}.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executescript((HERE / f"{family}.sql").read_text(encoding="utf-8"))

        def put(table: str, rows: Iterable[tuple[Any, ...]]) -> None:
            for row in rows:
                marks = ", ".join("?" * len(row))
                connection.execute(f'INSERT INTO "{table}" VALUES ({marks})', row)

        FAMILIES[family](World(), put)
    return file


def truth(family: str) -> str:
    """The resources of the family as a person who knows it would map them."""
    return (HERE / f"{family}.yaml").read_text(encoding="utf-8")
