"""Writes tables of dBASE and FoxPro, by the library `dbf`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dbf


def write_dbf(
    path: Path,
    fields: str,
    rows: Sequence[Sequence[Any]],
    kind: str = "db3",
    page: str = "cp850",
) -> Path | None:
    """Writes a table, and returns the file of its memos where it has one."""
    with _opened(dbf.Table(str(path), fields, dbf_type=kind, codepage=page)) as table:
        for row in rows:
            table.append(tuple(row))
    memos = (path.with_suffix(end) for end in (".fpt", ".dbt"))
    return next((memo for memo in memos if memo.exists()), None)


@contextmanager
def open_dbf(path: Path) -> Iterator[Any]:
    """Yields a table that exists, to be changed."""
    with _opened(dbf.Table(str(path))) as table:
        yield table


@contextmanager
def _opened(table: Any) -> Iterator[Any]:
    table.open(mode=dbf.READ_WRITE)
    try:
        yield table
    finally:
        table.close()
        for file in (table._meta.dfd, table._meta.mfd):  # which it leaves open
            with suppress(AttributeError):
                file.close()
