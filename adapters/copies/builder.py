"""Writes a copy: an SQLite file, made of new and changed tables and of the former copy's others."""

import os
import shutil
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from adapters.copies.tables import CopyError, SourceTable

# Columns, in lower case, that are to have an index in each table that has all of them.
Wishes = Sequence[Sequence[str]]


def build(
    target: Path,
    tables: Sequence[SourceTable],
    wishes: Wishes,
    former: Path | None,
    kept: Mapping[str, str],
) -> None:
    """Writes the tables into a new file. Raises CopyError, sqlite3.Error and OSError.

    `former` is a copy in which the tables of these names and digests are as they are now.
    """
    target.unlink(missing_ok=True)
    # nosemgrep: digests-are-compared-in-constant-time - of files, and no secret
    same = {table.name for table in tables if table.digest and kept.get(table.name) == table.digest}
    if former is not None and same:
        shutil.copyfile(former, target)
    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        for setting in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -65536"):
            # nosemgrep: sql-is-never-put-together-as-text - settings of ours
            copy.execute(f"PRAGMA {setting}")
        copy.execute("BEGIN")
        there = [name for (name,) in copy.execute(_NAMES)]
        for name in there:
            if name not in same:
                # nosemgrep: sql-is-never-put-together-as-text - names in quotes
                copy.execute(f"DROP TABLE {_quoted(name)}")
        for table in tables:
            if table.name not in there or table.name not in same:
                _write(copy, table, wishes)
        copy.execute("COMMIT")
        # which of several indices serves best
        copy.execute("PRAGMA analysis_limit = 400")
        copy.execute("ANALYZE")
    with target.open("rb") as file:
        os.fsync(file.fileno())


_NAMES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
)


def _write(copy: sqlite3.Connection, table: SourceTable, wishes: Wishes) -> None:
    name, columns = _quoted(table.name), table.columns
    if not columns:
        return
    declared = ", ".join(f"{_quoted(one.name)} {one.declared}" for one in columns)
    try:
        # nosemgrep: sql-is-never-put-together-as-text - names in quotes
        copy.execute(f"CREATE TABLE {name} ({declared})")
    except sqlite3.OperationalError as error:
        raise CopyError(f"the columns of {table.name} cannot be those of one table") from error
    marks = ", ".join("?" * len(columns))
    # a name in quotes, and marks of ours
    insert = f"INSERT INTO {name} VALUES ({marks})"  # noqa: S608  # nosec B608
    copy.executemany(insert, table.rows())
    own = {one.name.lower(): one.name for one in columns}
    for indexed in _indices(own, wishes):
        spelt = ", ".join(_quoted(own[column]) for column in indexed)
        index = _quoted(f"{name} ({spelt})")
        # nosemgrep: sql-is-never-put-together-as-text - names in quotes
        copy.execute(f"CREATE INDEX {index} ON {name} ({spelt})")


def _indices(own: Iterable[str], wishes: Wishes) -> list[tuple[str, ...]]:
    """Returns the wished columns that the table has, without those that begin a longer wish."""
    has = set(own)
    fitting = {tuple(wish) for wish in wishes if has.issuperset(wish)}
    return sorted(
        one
        for one in fitting
        if not any(one != other and other[: len(one)] == one for other in fitting)
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
