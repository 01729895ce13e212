"""The rows that are looked at: a sample of both ends, or all of them, page by page.

No more than a page of rows is held at a time, however large the table is.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import Connection, Select, not_

from adapters.base import Record
from adapters.doctor.values import Tally
from adapters.examination import SAMPLE
from adapters.sql.columns import Columns, KeyedRows
from adapters.values.convert import Unreadable

PAGE = 2_000
# So many records from either end are kept for the looks that need some.
KEPT = SAMPLE // 2


def pages(
    connection: Connection, statement: Select[Any], table: KeyedRows, *, most: int | None
) -> Iterator[list[Any]]:
    """The rows in the order of their keys, each once: those of both ends, or of the whole table."""
    if most is not None:
        yield _of_both_ends(connection, statement, table, most)
        return
    # what has no key has no place among the others: it comes by itself, as far as a page goes
    yield list(connection.execute(statement.where(not_(table.key.present)).limit(PAGE)))
    ordered = statement.where(table.key.present).order_by(*table.key.parts)
    limit, key = PAGE, None
    while True:
        asked = ordered if key is None else ordered.where(table.key.beyond(key, at_least=True))
        found = list(connection.execute(asked.limit(limit)))
        if len(found) < limit:
            yield found
            return
        key = table.key.take(found[-1], 0)
        # the rows of one key stay together: the last key's come again with the next page
        whole = [row for row in found if not _same(table.key.take(row, 0), key)]
        limit = PAGE if whole else 2 * limit
        if whole:
            yield whole


def _same(one: Any, other: Any) -> bool:
    return Columns.spelling(one) == Columns.spelling(other)


def _of_both_ends(
    connection: Connection, statement: Select[Any], table: KeyedRows, most: int
) -> list[Any]:
    first = list(connection.execute(statement.order_by(*table.key.parts).limit(most)))
    if len(first) < most:
        return first
    backwards = statement.order_by(*(each.desc() for each in table.key.parts))
    last = list(connection.execute(backwards.limit(most // 2)))
    known = {table.key.take(row, 0) for row in first[: most // 2]}
    return first[: most // 2] + [r for r in reversed(last) if table.key.take(r, 0) not in known]


class SampleEnds:
    """The first and the last of so many records as are taken, in their order."""

    def __init__(self) -> None:
        self._first: list[Record] = []
        self._last: deque[Record] = deque(maxlen=KEPT)

    def take(self, record: Record) -> None:
        kept = self._first if len(self._first) < KEPT else self._last
        kept.append(record)

    @property
    def records(self) -> list[Record]:
        return [*self._first, *self._last]


def read(
    table: KeyedRows, found: Iterable[Any], tallies: dict[str, Tally], offset: int = 0
) -> Iterator[Record]:
    """The rows as records, each value counted."""
    for row in found:
        record: Record = dict.fromkeys(table.names)
        shown = shown_id(table, table.key.take(row, offset))
        record["id"] = shown
        at = offset + table.key.width
        for column in table.columns:
            raw, is_time = column.take(row, at), hasattr(column.converter, "zero")
            tally = tallies[column.name]
            record[column.name] = tally.take(column.converter.decode, raw, shown, is_time=is_time)
            at += column.width
        yield record


def shown_id(table: KeyedRows, key: Any) -> str | None:
    """The public id of a key; None where it makes none."""
    try:
        return table.ids.shown(key)
    except Unreadable:
        return None


def referred_id(table: KeyedRows, key: Any) -> str | None:
    """The same of a key in another table, where it may be spelt otherwise."""
    try:
        return table.ids.referred(key)
    except Unreadable:
        return None
