"""Rows with a key and fields, made into records; and keys, as two columns may spell one."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement

from adapters.base import (
    LONGEST_AFTER,
    BackendNonsense,
    Record,
    Report,
    Trouble,
)
from adapters.mapped.plan import FieldPlan, RowPlan
from adapters.sql.columns import Columns
from adapters.values.convert import Unreadable, by_value, whole


class FieldColumn(Columns):
    """One field: its expressions, and its converter."""

    def __init__(self, field: FieldPlan) -> None:
        super().__init__(field.source.expressions)
        self.name = field.name
        self.converter = field.converter


class KeyedRows:
    """Rows with a key and fields, as a plan says: of a resource, or of a list inside it."""

    def __init__(self, plan: RowPlan, report: Report) -> None:
        self.resource, self.prefix = plan.resource, plan.prefix
        self.key = Columns(plan.key.source if plan.key else ())
        self.ids, self.has_id, self.names = plan.ids, plan.has_id, plan.names
        self.report = report
        self.columns = [FieldColumn(field) for field in plan.fields]
        self._decoders = [(each.name, each.width, each.converter.decode) for each in self.columns]
        self.by_name = {column.name: column for column in self.columns}

    def selected(self) -> list[ColumnElement[Any]]:
        """The key and the fields, labelled, so that no two names can clash."""
        found = self.key.labelled("row_key")
        for number, column in enumerate(self.columns):
            found += column.labelled(f"f{number}")
        return found

    @property
    def offsets(self) -> Iterator[tuple[str, int]]:
        """Where each field's columns begin, behind those of the key."""
        offset = 0
        for column in self.columns:
            yield column.name, offset
            offset += column.width

    def record(self, row: Sequence[Any], offset: int = 0) -> Record | None:
        """A row as a record; None where it has no usable id. What can't be read is None."""
        record: Record = dict.fromkeys(self.names)
        shown = self.public_id(self.key.take(row, offset))
        if self.has_id:
            if shown is None:
                self.report(Trouble("no id", self.resource, f"{self.prefix}id", ""))
                return None
            record["id"] = shown
        offset += self.key.width
        for name, width, decode in self._decoders:
            try:
                raw = row[offset] if width == 1 else tuple(row[offset : offset + width])
                record[name] = decode(raw)
            except Unreadable as error:
                field = self.prefix + name
                self.report(Trouble(error.kind, self.resource, field, shown or ""))
            offset += width
        return record

    def public_id(self, key: Any) -> str | None:
        """The id of a raw key; None where it makes none."""
        try:
            return self.ids.shown(key)
        except Unreadable:
            return None


def bare(key: Any) -> Any:
    """A key without what one kind of column adds to it and another lacks.

    That is blanks behind a CHAR, and the places of a DECIMAL.
    """
    if isinstance(key, tuple):
        return tuple(map(bare, key))
    return key.rstrip() if isinstance(key, str) else by_value(key)


def only_texts(raws: Sequence[Any]) -> Sequence[Any]:
    """The spellings of a key that are no numbers, where there are such."""
    return [each for each in raws if not isinstance(each, int)] or raws


def may_be(found: Any, asked: Any) -> bool:
    """Whether the row is the one that was asked for: MySQL finds 12 by the text `12;13` too."""
    found = by_value(found)
    number = isinstance(found, int) and not isinstance(asked, tuple)
    return not number or whole(asked) == found


def spelt(key: Any, *, folded: bool = False) -> tuple[str, ...]:
    """A key by which two are the same, however each of their columns keeps them."""
    shown = Columns.spelling(key)
    return tuple(map(str.casefold, shown)) if folded else shown


def place_of(key: Any) -> str:
    """Where a page ends. A key that makes no id has its place too, though no record."""
    if any(isinstance(part, bytes) for part in (key if isinstance(key, tuple) else (key,))):
        raise BackendNonsense("a page ends with a key that is no number and no text")
    place = json.dumps(bare(key), default=str)
    if len(place) > LONGEST_AFTER:
        raise BackendNonsense("a page ends with a key that is too long")
    return place


def key_at(place: str) -> Any:
    key = json.loads(place)
    return tuple(key) if isinstance(key, list) else key
