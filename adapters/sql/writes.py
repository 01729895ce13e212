"""The rows that a booking writes: the mapping's list of steps, in its order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from sqlalchemy import (
    BigInteger,
    ColumnClause,
    ColumnElement,
    Connection,
    Select,
    String,
    TableClause,
    and_,
    bindparam,
    column,
    delete,
    insert,
    select,
    table,
    text,
    update,
)
from sqlalchemy import (
    Sequence as SqlSequence,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.types import NullType

from adapters.base import BackendNonsense, Draft, SlotTaken
from adapters.conversion import DRAFT_FIELDS, Conversion
from adapters.convert import Converter, Text
from adapters.converters import Converters
from adapters.document import Place
from adapters.slots import Interval
from adapters.sql.columns import sql
from adapters.sql.engines.base import HALF, given
from adapters.sql.mapping import NAMED, Value, Write
from adapters.sql.mapping import Mapping as MappingFile
from adapters.times import instant_text

Values = Mapping[str, Any]


@dataclass(slots=True)
class Done:
    """What a booking has made so far: names to keys and numbers, and how to take it back.

    `tables` were written; `place` is where the mapping says what is being done.
    """

    made: dict[str, Any] = field(default_factory=dict)
    undo: list[Callable[[], None]] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    place: Place = ("booking",)


class _Step(Protocol):
    def run(self, connection: Connection, values: Values, done: Done) -> None: ...


class BookingWrites:
    """The rows that a booking writes, in the mapping's order."""

    def __init__(self, mapping: MappingFile, converters: Converters) -> None:
        booking = mapping.booking
        self._appointment = booking.appointment
        unsafe = frozenset(booking.without_transactions)
        drafts = _drafts(converters)
        self._steps = [
            (write, _step(write, converters, drafts, undone=write.table in unsafe))
            for write in booking.writes
        ]
        self._reason = next(
            (
                Text(value.encoding)
                for write in booking.writes
                for value in write.values.values()
                if value.draft == "reason" and value.encoding is not None
            ),
            Text(),
        )
        # a slot's row that is not given another end is taken as a whole, however short the booking
        self.shortens_slots = any(
            value.draft in ("endTime", "minutes")
            for write in booking.writes
            if write.update is not None and write.for_ == "slot"
            for value in write.values.values()
        )
        self._times = [
            # as a whole: of a time that is written in parts no part can be read by itself
            converters.make(value.model_copy(update={"pattern": None}), DRAFT_FIELDS[value.draft])
            for write in booking.writes
            for value in write.values.values()
            if value.draft in ("scheduledAt", "endTime")
        ]

    def can_write(self, slot: Interval) -> bool:
        """Whether both ends survive being written: a wall clock may show one hour twice."""
        readable = {instant_text(slot.start), instant_text(slot.end)}
        return all(
            {converter.decode(converter.encode(each)[0]) for each in (slot.start, slot.end)}
            == readable
            for converter in self._times
        )

    def kept(self, draft: Draft) -> Draft:
        """The draft as the practice system can keep it: its encoding may lack letters."""
        if draft.reason is None:
            return draft
        return replace(draft, reason=self._reason.encode(draft.reason)[0])

    def write(self, connection: Connection, values: Values, done: Done, *, of_slot: bool) -> Any:
        """Write every row that is for such a time; the key of the appointment.

        SlotTaken where another program has taken the slot's own row.
        """
        which = "slot" if of_slot else "time"
        for number, (write, step) in enumerate(self._steps):
            asked = write.if_ is None or values[write.if_] is not None
            if asked and write.for_ in (None, which):
                done.place = ("booking", "writes", number)
                step.run(connection, values, done)
                done.tables += [write.table] if write.table else []
        return done.made[self._appointment]

    def withdraw(self, connection: Connection, done: Done) -> None:
        """Delete again, last first, what no transaction would undo; as far as it goes."""
        failure: SQLAlchemyError | None = None
        for undo in reversed(done.undo):
            try:
                undo()
            except SQLAlchemyError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        connection.info.pop(HALF, None)


def _drafts(converters: Converters) -> Mapping[str, Converter]:
    """How the draft's values are written where `sql` names them."""
    plain = Conversion()
    return {name: converters.make(plain, shape) for name, shape in DRAFT_FIELDS.items()}


def _step(
    write: Write, converters: Converters, drafts: Mapping[str, Converter], *, undone: bool
) -> _Step:
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


class _Sources:
    """Where the values of a row come from."""

    def __init__(
        self, write: Write, converters: Converters, drafts: Mapping[str, Converter]
    ) -> None:
        self._sources = {
            name: _Source(value, converters, drafts) for name, value in write.values.items()
        }

    def parameters(self) -> dict[str, Any]:
        return {name: given(f"v{number}") for number, name in enumerate(self._sources)}

    def taken(self, connection: Connection, values: Values, made: Values) -> dict[str, Any]:
        """The values by column."""
        return {
            name: source.take(connection, values, made) for name, source in self._sources.items()
        }


def _bound(row: Mapping[str, Any]) -> dict[str, Any]:
    return {f"v{number}": value for number, value in enumerate(row.values())}


class _Insert:
    def __init__(
        self,
        write: Write,
        converters: Converters,
        drafts: Mapping[str, Converter],
        *,
        undone: bool,
    ) -> None:
        self._sources = _Sources(write, converters, drafts)
        self._keys = write.keys
        self._generated = [each for each in write.keys if each not in write.values]
        self._table = named_table(write.insert or "", list({*write.values, *write.keys}))
        self._statement = insert(self._table).values(self._sources.parameters())
        self._name = write.name
        self._undone = undone

    def run(self, connection: Connection, values: Values, done: Done) -> None:
        row = self._sources.taken(connection, values, done.made)
        keys = row | self._numbered(connection, _bound(row))
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
        self, write: Write, converters: Converters, drafts: Mapping[str, Converter]
    ) -> None:
        self._sources = _Sources(write, converters, drafts)
        self._names = _Names(write.where or "", drafts)
        rows = named_table(write.update or "", list(write.values))
        self._statement = (
            update(rows).values(self._sources.parameters()).where(self._names.condition())
        )
        self._of_slot = write.for_ == "slot"
        self._name = write.name

    def run(self, connection: Connection, values: Values, done: Done) -> None:
        row = self._sources.taken(connection, values, done.made)
        named = self._names.taken(values, done.made)
        changed = connection.execute(self._statement, _bound(row) | named).rowcount
        if changed == 0 and self._of_slot:
            raise SlotTaken("another program has taken the slot")
        if changed != 1:
            raise BackendNonsense(f"an update of the mapping changes {changed} rows and not one")
        if self._name is not None and self._of_slot:
            done.made[self._name] = values["slot"]


class _Counter:
    def __init__(self, write: Write, drafts: Mapping[str, Converter]) -> None:
        rows = named_table(write.counter or "", [write.column or ""])
        number: ColumnClause[Any] = rows.c[write.column or ""]
        self._names = _Names(write.where or "1 = 1", drafts)
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
    def __init__(self, write: Write) -> None:
        self._next = following(write.sequence or "")
        self._name = write.name or ""

    def run(self, connection: Connection, values: Values, done: Done) -> None:
        done.made[self._name] = connection.execute(self._next).scalar_one()


class _Names:
    """SQL of the mapping in which `:name` stands for a value of the draft or of an earlier step."""

    def __init__(self, expression: str, drafts: Mapping[str, Converter]) -> None:
        self._expression = expression
        self._names = tuple(dict.fromkeys(NAMED(expression)))
        self._drafts = drafts

    def condition(self) -> ColumnElement[bool]:
        return and_(text(f"({self._expression})").bindparams(*map(given, self._names)))

    def taken(self, values: Values, made: Values) -> dict[str, Any]:
        return {name: self._taken(name, values, made) for name in self._names}

    def _taken(self, name: str, values: Values, made: Values) -> Any:
        if name in made:
            return made[name]
        value = values[name]
        if value is None or name not in self._drafts:
            return value
        return _first(self._drafts[name].encode(value), name)

    def selected(self, connection: Connection, named: dict[str, Any]) -> Any:
        """The value of the expression. Values are given a type, as nothing else says theirs."""
        typed = [
            bindparam(name, value, type_=BigInteger() if isinstance(value, int) else String())
            for name, value in named.items()
        ]
        return connection.execute(text(f"SELECT ({self._expression})").bindparams(*typed)).scalar()


def _first(raw: Sequence[Any], name: str) -> Any:
    if not raw:
        raise BackendNonsense(f"the mapping has no way to write this {name}")
    return raw[0]


class _Source:
    """Where a column's value comes from: the draft, an earlier step, an expression, a constant."""

    def __init__(
        self, value: Value, converters: Converters, drafts: Mapping[str, Converter]
    ) -> None:
        self._value = value
        self._converter: Converter | None = None
        if value.draft in DRAFT_FIELDS:
            self._converter = converters.make(value, DRAFT_FIELDS[value.draft])
        self._names = None if value.sql is None else _Names(value.sql, drafts)

    def take(self, connection: Connection, values: Values, made: Values) -> Any:
        name = self._value.draft
        if name is not None:
            return self._of_draft(name, values[name])
        if self._value.made is not None:
            return made[self._value.made]
        if self._names is not None:
            return self._names.selected(connection, self._names.taken(values, made))
        return self._value.constant

    def _of_draft(self, name: str, value: Any) -> Any:
        if self._converter is None or value is None:
            return value
        raw = _first(self._converter.encode(value), name)
        if isinstance(raw, tuple) and self._value.part is not None:
            return raw[self._value.part - 1]
        return raw
