"""The steps of a booking: a row inserted or updated, a counter moved on, a number drawn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy import (
    ColumnClause,
    ColumnElement,
    Connection,
    Select,
    TableClause,
    and_,
    column,
    delete,
    insert,
    select,
    table,
    update,
)
from sqlalchemy import (
    Sequence as SqlSequence,
)
from sqlalchemy.types import NullType

from adapters.base import BackendNonsense, SlotTaken
from adapters.mapped.session import BookingProgress
from adapters.mapping.converters import Converters
from adapters.mapping.models import StepMap
from adapters.sql.columns import sql
from adapters.sql.engines.base import HALF, given
from adapters.sql.values import Names, Sources, Values, bound
from adapters.values.convert import Converter


@dataclass(slots=True)
class Done:
    """What a booking has made so far, and how to take it back."""

    progress: BookingProgress = field(default_factory=BookingProgress)
    undo: list[Callable[[], None]] = field(default_factory=list)

    @property
    def made(self) -> dict[str, Any]:
        """What the steps made: their names to keys and numbers."""
        return self.progress.made


class SqlStep(Protocol):
    """One step: writes its row, and says in `done` what it has made."""

    def run(self, connection: Connection, values: Values, done: Done) -> None: ...


def step_of(
    write: StepMap, converters: Converters, drafts: Mapping[str, Converter], *, undone: bool
) -> SqlStep:
    if write.insert is not None:
        return _Insert(write, converters, drafts, undone=undone)
    if write.update is not None:
        return _Update(write, converters, drafts)
    return _Counter(write, drafts) if write.counter is not None else _Sequence(write)


def named_table(name: str, columns: Sequence[str]) -> TableClause:
    """A table by the name that a mapping gives it, with its schema or without."""
    schema, _, bare = name.rpartition(".")
    made = [column(each, NullType()) for each in columns]
    return table(bare, *made, schema=schema or None)


def following(name: str) -> Select[Any]:
    """The next value of a sequence by such a name."""
    schema, _, bare = name.rpartition(".")
    return select(SqlSequence(bare, schema=schema or None).next_value())


class _Insert:
    def __init__(
        self,
        write: StepMap,
        converters: Converters,
        drafts: Mapping[str, Converter],
        *,
        undone: bool,
    ) -> None:
        self._sources = Sources(write, converters, drafts)
        self._keys = write.keys
        self._generated = [each for each in write.keys if each not in write.values]
        self._table = named_table(write.insert or "", list({*write.values, *write.keys}))
        self._statement = insert(self._table).values(self._sources.parameters())
        self._name = write.name
        self._undone = undone

    def run(self, connection: Connection, values: Values, done: Done) -> None:
        row = self._sources.taken(connection, values, done.made)
        keys = row | self._numbered(connection, bound(row))
        raw = tuple(keys[each] for each in self._keys)
        if self._name is not None and raw:
            done.made[self._name] = raw[0] if len(raw) == 1 else raw
        if self._undone:
            connection.info[HALF] = True
            which = and_(
                *(self._table.c[n] == given(None, v) for n, v in zip(self._keys, raw, strict=True))
            )
            done.undo.append(lambda: _delete(connection, self._table, which))

    def _numbered(self, connection: Connection, row: dict[str, Any]) -> dict[str, Any]:
        """Insert the row; the columns of its key that the database filled in."""
        if not self._generated:
            connection.execute(self._statement, row)
            return {}
        if connection.dialect.insert_returning:
            wanted = [self._table.c[each] for each in self._generated]
            found = connection.execute(self._statement.returning(*wanted), row).one()
            return dict(zip(self._generated, found, strict=True))
        number = connection.execute(self._statement, row).lastrowid
        return dict.fromkeys(self._generated, number)


def _delete(connection: Connection, rows: TableClause, which: ColumnElement[bool]) -> None:
    connection.execute(delete(rows).where(which))


class _Update:
    """Changes exactly one row; of a slot's row the key is the slot's."""

    def __init__(
        self, write: StepMap, converters: Converters, drafts: Mapping[str, Converter]
    ) -> None:
        self._sources = Sources(write, converters, drafts)
        self._names = Names(write.where or "", drafts)
        rows = named_table(write.update or "", list(write.values))
        self._statement = (
            update(rows).values(self._sources.parameters()).where(self._names.condition())
        )
        self._of_slot = write.for_ == "slot"
        self._name = write.name

    def run(self, connection: Connection, values: Values, done: Done) -> None:
        row = self._sources.taken(connection, values, done.made)
        named = self._names.taken(values, done.made)
        changed = connection.execute(self._statement, bound(row) | named).rowcount
        if changed == 0 and self._of_slot:
            raise SlotTaken("another program has taken the slot")
        if changed != 1:
            raise BackendNonsense(f"an update of the mapping changes {changed} rows and not one")
        if self._name is not None and self._of_slot:
            done.made[self._name] = values["slot"]


class _Counter:
    def __init__(self, write: StepMap, drafts: Mapping[str, Converter]) -> None:
        rows = named_table(write.counter or "", [write.column or ""])
        number: ColumnClause[Any] = rows.c[write.column or ""]
        self._names = Names(write.where or "1 = 1", drafts)
        which = self._names.condition()
        self._move = update(rows).where(which).values({number: number + sql("1")})
        self._look = select(number).where(which)
        self._name = write.name or ""

    def run(self, connection: Connection, values: Values, done: Done) -> None:
        named = self._names.taken(values, done.made)
        moved = connection.execute(self._move, named)
        if moved.rowcount != 1:
            raise BackendNonsense("the mapping's counter is not exactly one row")
        done.made[self._name] = connection.execute(self._look, named).scalar_one()


class _Sequence:
    def __init__(self, write: StepMap) -> None:
        self._next = following(write.sequence or "")
        self._name = write.name or ""

    def run(self, connection: Connection, values: Values, done: Done) -> None:
        done.made[self._name] = connection.execute(self._next).scalar_one()
