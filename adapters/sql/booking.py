"""Writes the rows of a booking: the mapping's steps, and where their values come from."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import NullType

from adapters.base import BackendNonsense, Draft, SlotTaken
from adapters.mapped.session import BookingProgress
from adapters.mapping.conversion import DRAFT_FIELDS, Conversion
from adapters.mapping.converters import Converters
from adapters.mapping.expressions import CLOCK
from adapters.mapping.models import (
    NAMED,
    PART,
    BookingMap,
    MappingFile,
    StepCondition,
    StepMap,
    WrittenValue,
)
from adapters.sql.clock import moment
from adapters.sql.engines.base import HALF, Criterion, given
from adapters.values.convert import Converter, Text

_TEXTS = re.compile("'(?:[^']|'')*'").sub
Values = Mapping[str, Any]
Named = Callable[[str, Any], sa.BindParameter[Any]]
Undo = list[sa.Delete]
"""Statements that delete what no ROLLBACK undoes, in the order in which it was written."""


def named_table(name: str, columns: Iterable[str]) -> sa.TableClause:
    """Returns a table by the name that a mapping gives it, with or without a schema."""
    schema, _, bare = name.rpartition(".")
    return sa.table(bare, *(sa.column(name, NullType()) for name in columns), schema=schema or None)


def following(name: str) -> sa.Select[Any]:
    schema, _, bare = name.rpartition(".")
    return sa.select(sa.Sequence(bare, schema=schema or None).next_value())


def typed(name: str | None, value: Any, *, unique: bool = False) -> sa.BindParameter[Any]:
    """Returns a parameter that has a type, where nothing beside it in the expression says it."""
    kind: Any = sa.BigInteger() if isinstance(value, int) else sa.String()
    return sa.bindparam(name, value, type_=kind, unique=unique)


def truth(condition: str) -> str:
    """Returns SQL that is 1 where the condition holds: some databases have no type for such."""
    return f"CASE WHEN ({condition}) THEN 1 ELSE 0 END"


def names_its_row(step: StepMap, expression: str | None) -> bool:
    """Returns whether SQL of an update names a column of its row, as TABLE.COLUMN.

    Then it is worked out in the UPDATE itself.
    """
    if step.update is None or expression is None:
        return False
    bare = re.escape(step.table.rpartition(".")[2])
    named = rf"(?<!\w)[\"`\[]?{bare}[\"`\]]?\s*\.\s*[\"`\[\w]"
    return re.search(named, _TEXTS(" ", expression), re.IGNORECASE) is not None


def _exactly(key: Any) -> sa.ColumnElement[Any]:
    """Returns a key as a value that a statement can also have written out in it."""
    if isinstance(key, bytes):
        # nosemgrep: sql-is-never-put-together-as-text - hexadecimal digits
        return sa.literal_column(f"X'{key.hex()}'")
    return typed(None, key if isinstance(key, int) else str(key))


def condition_of(item: Mapping[str, WrittenValue]) -> StepCondition | None:
    """Returns the condition of an item of a step's list, where it has one."""
    if (own := item.get("if")) is None:
        return None
    name = None if own.sql is not None else own.draft or str(own.constant)
    return StepCondition(draft=name, sql=own.sql)


def _reason(booking: BookingMap) -> Text:
    """Returns how the appointment keeps a reason: as its own row does, or else any other."""
    own = [step for step in booking.steps if step.name == booking.appointment]
    written = (value for step in (*own, *booking.steps) for value in step.written)
    found = next((value for value in written if value.draft == "reason"), None)
    return Text() if found is None else Text(found.encoding or "utf-8", found.longest)


class BookingWrites:
    """The rows that a booking writes, in the mapping's order."""

    def __init__(self, mapping: MappingFile, converters: Converters) -> None:
        self._booking = booking = mapping.booking
        self._zone = mapping.zone
        # how the draft's values are written where an expression names them
        plain = Conversion()
        self._drafts = {name: converters.make(plain, shape) for name, shape in DRAFT_FIELDS.items()}
        values = [value for step in booking.steps for value in step.written]
        # by the value itself, which the mapping keeps
        self._columns = {
            id(value): converters.make(value, DRAFT_FIELDS[value.draft])
            for value in values
            if value.draft in DRAFT_FIELDS
        }
        self._reason = _reason(booking)

    def kept(self, draft: Draft) -> Draft:
        """Returns the draft as the practice system can keep it: its encoding may lack letters."""
        if draft.reason is None:
            return draft
        return replace(draft, reason=self._reason.encode(draft.reason)[0])

    def write(
        self, connection: sa.Connection, values: Values, progress: BookingProgress, undo: Undo
    ) -> Any:
        """Writes every row that is for such a time; returns the raw key of the appointment.

        Raises SlotTaken where another program has taken the slot's own row.
        """
        kinds = (None, "time" if values["slot"] is None else "slot")
        for number, step in enumerate(self._booking.steps):
            if step.for_ not in kinds:
                continue
            progress.place = ("booking", "steps", number)
            slots = values["slots"] if step.each == "slot" else (values["slot"],)
            items = list(enumerate(step.items or ({},)))
            turns = [(slot, *item) for slot in slots for item in items]
            for turn, (slot, group, item) in enumerate(turns):
                own, converters = {**values, "slot": slot}, (self._drafts, self._columns)
                scope = _Scope(connection, own, progress.made, converters, self._zone, item)
                if step.if_ is not None and not scope.holds(step.if_):
                    continue
                if (condition := condition_of(item)) is not None:
                    happens = scope.holds(condition)
                    progress.groups.add((number, group, happens))
                    if not happens:
                        continue
                progress.taken.add(number)
                made = self._take(number, scope, undo)
                if step.name is not None and turn == 0:  # of several rows the first has the name
                    progress.made[step.name] = made
                progress.tables += [step.table] if step.table else []
        return progress.made[self._booking.appointment]

    def _take(self, number: int, scope: "_Scope", undo: Undo) -> Any:
        """Takes one step; returns its key or number."""
        step, connection = self._booking.steps[number], scope.connection
        row = {name: scope.column_value(value, step) for name, value in step.values.items()}
        if step.insert is None:
            return scope.change(step, row)
        keys = scope.insert(step, row)
        if step.table in self._booking.without_transactions:
            connection.info[HALF] = True
            rows = named_table(step.table, keys)
            same = (rows.c[name] == _exactly(key) for name, key in keys.items())
            undo.append(sa.delete(rows).where(*same))
        return tuple(keys.values()) if len(keys) > 1 else next(iter(keys.values()), None)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The values that `:name` stands for in the mapping's SQL.

    They are the draft's, those `made` by a step, or those of the `item` that the step is for.
    `converters` are those of names in SQL, and those of the values that are written.
    """

    connection: sa.Connection
    values: Values
    made: Values
    converters: tuple[Mapping[str, Converter], Mapping[int, Converter]]
    zone: str
    item: Mapping[str, WrittenValue]

    def column_value(self, value: WrittenValue, step: StepMap | None = None) -> Any:
        """Returns a column's value: from the draft, a step, an expression, or a constant.

        It is SQL for the statement of the `step` where it names a column of the row.
        """
        if value.each is not None:
            value = self.item[value.each]
        if value.draft is not None:
            raw = self._encoded(value.draft, self.converters[1].get(id(value)))
            return raw[value.part - 1] if isinstance(raw, tuple) and value.part else raw
        if value.made is not None:
            return self.made[value.made]
        if value.sql is None:
            return value.constant
        if step is not None and names_its_row(step, value.sql):
            return self._text(value.sql, partial(typed, unique=True))  # its `where` has names too
        return self._evaluated(value.sql)

    def holds(self, condition: StepCondition) -> bool:
        """Returns whether the draft has the value, or the SQL is true."""
        if condition.sql is None:
            return self.values[condition.draft or ""] is not None
        return bool(self._evaluated(truth(condition.sql)))

    def _evaluated(self, expression: str) -> Any:
        return self.connection.scalar(sa.select(self._text(expression, typed)))

    def _text(self, expression: str, parameter: Named) -> sa.TextClause:
        # nosemgrep: sql-is-never-put-together-as-text - the mapping is the clinic's own
        return sa.text(f"({expression})").bindparams(*self._named(expression, parameter))

    def insert(self, step: StepMap, row: dict[str, Any]) -> dict[str, Any]:
        """Inserts the row; returns the columns of its key, with what the database filled in."""
        rows = named_table(step.table, {*row, *step.keys})
        statement = sa.insert(rows).values(_given(row))
        filled = [name for name in step.keys if name not in row]
        if filled and self.connection.dialect.insert_returning:
            made = self.connection.execute(statement.returning(*(rows.c[name] for name in filled)))
            row = row | dict(zip(filled, made.one(), strict=True))
        else:
            result = self.connection.execute(statement)
            if filled:  # where a driver has no such number, asking for it fails
                row = row | dict.fromkeys(filled, result.lastrowid)
        return {name: row[name] for name in step.keys}

    def change(self, step: StepMap, row: dict[str, Any]) -> Any:
        """Runs a step that inserts no row; returns the slot's key, a number, or None."""
        if step.sequence is not None:
            return self.connection.execute(following(step.sequence)).scalar_one()
        if step.update is not None:
            rows = sa.update(named_table(step.table, row)).values(_given(row))
            count = self.connection.execute(rows.where(self._condition(step))).rowcount
            if count == 0 and step.for_ == "slot":
                raise SlotTaken("another program has taken the slot")
            if count != 1:
                raise BackendNonsense(f"an update of the mapping changes {count} rows and not one")
            return self.values["slot"] if step.for_ == "slot" else None
        name = step.column or ""
        counter = named_table(step.table, [name])
        which, number = self._condition(step), counter.c[name]
        moved = sa.update(counter).where(which).values({number: number + sa.literal_column("(1)")})
        if self.connection.execute(moved).rowcount != 1:
            raise BackendNonsense("the mapping's counter is not exactly one row")
        return self.connection.execute(sa.select(number).where(which)).scalar_one()

    def _named(self, expression: str, parameter: Named) -> Iterator[sa.BindParameter[Any]]:
        """Yields a parameter for each name in the expression."""
        for name in dict.fromkeys(NAMED(expression)):
            if name in CLOCK:
                yield moment(name, self.zone, self.values["createdAt"])
            elif name in self.item:
                yield parameter(name, self.column_value(self.item[name]))
            else:
                yield parameter(name, self._raw(name))

    def _raw(self, name: str) -> Any:
        if name in self.made:
            return self.made[name]
        if name not in self.values and (part := PART(name)):
            raw = self._raw(part[1])
            return None if raw is None else raw[int(part[2]) - 1]
        return self._encoded(name, self.converters[0].get(name))

    def _encoded(self, name: str, converter: Converter | None) -> Any:
        value = self.values[name]
        if converter is None or value is None:
            return value
        raws = converter.encode(value)
        if not raws:
            raise BackendNonsense(f"the mapping has no way to write this {name}")
        return raws[0]

    def _condition(self, step: StepMap) -> Criterion:
        expression = step.where or "1 = 1"
        return sa.and_(self._text(expression, given))


def _given(row: Values) -> dict[str, Any]:
    return {
        name: value if isinstance(value, sa.TextClause) else given(None, value)
        for name, value in row.items()
    }
