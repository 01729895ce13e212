"""The rows that a booking writes: the mapping's steps, and where their values come from.

A step inserts or updates a row, moves a counter on, or draws a number of a sequence.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from sqlalchemy import (
    BigInteger,
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
from sqlalchemy import Sequence as SqlSequence
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.types import NullType

from adapters.base import BackendNonsense, Draft, SlotTaken
from adapters.mapped.session import BookingProgress
from adapters.mapping.conversion import DRAFT_FIELDS, Conversion
from adapters.mapping.converters import Converters
from adapters.mapping.models import NAMED, MappingFile, StepMap, WrittenValue
from adapters.sql.columns import sql
from adapters.sql.engines.base import HALF, Criterion, given
from adapters.values.convert import Converter, Text

Values = Mapping[str, Any]


@dataclass(slots=True)
class Done:
    """What a booking has made so far, and how to take it back."""

    progress: BookingProgress = field(default_factory=BookingProgress)
    undo: list[Callable[[], Any]] = field(default_factory=list)

    @property
    def made(self) -> dict[str, Any]:
        """What the steps made: their names to keys and numbers."""
        return self.progress.made


def named_table(name: str, columns: Iterable[str]) -> TableClause:
    """A table by the name that a mapping gives it, with its schema or without."""
    schema, _, bare = name.rpartition(".")
    return table(bare, *(column(each, NullType()) for each in columns), schema=schema or None)


def following(name: str) -> Select[Any]:
    """The next value of a sequence by such a name."""
    schema, _, bare = name.rpartition(".")
    return select(SqlSequence(bare, schema=schema or None).next_value())


class BookingWrites:
    """The rows that a booking writes, in the mapping's order."""

    def __init__(self, mapping: MappingFile, converters: Converters) -> None:
        booking = mapping.booking
        self._appointment = booking.appointment
        # how the draft's values are written where `sql` names them
        plain = Conversion()
        drafts = {name: converters.make(plain, shape) for name, shape in DRAFT_FIELDS.items()}
        made = _StepMaker(converters, drafts, frozenset(booking.without_transactions))
        self._steps = [(write, made.step(write)) for write in booking.steps]
        written = [(write, value) for write in booking.steps for value in write.values.values()]
        encodings = (value.encoding for _, value in written if value.draft == "reason")
        self._reason = next((Text(each) for each in encodings if each is not None), Text())
        # a slot's row that is not given another end is taken as a whole, however short the booking
        self.shortens_slots = any(
            value.draft in ("endTime", "minutes")
            for write, value in written
            if write.update is not None and write.for_ == "slot"
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
                done.progress.place = ("booking", "steps", number)
                step.run(connection, values, done)
                done.progress.tables += [write.table] if write.table else []
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


class SqlStep(Protocol):
    """One step: writes its row, and says in `done` what it has made."""

    def run(self, connection: Connection, values: Values, done: Done) -> None: ...


@dataclass(frozen=True, slots=True)
class _StepMaker:
    """What steps are made with; `unsafe` are the tables that have no transactions."""

    converters: Converters
    drafts: Mapping[str, Converter]
    unsafe: frozenset[str]

    def step(self, write: StepMap) -> SqlStep:
        if write.insert is not None:
            return _Insert(write, self)
        if write.update is not None:
            return _Update(write, self)
        return _Counter(write, self) if write.counter is not None else _Sequence(write)


class _Names:
    """SQL of the mapping in which `:name` stands for a value of the draft or of an earlier step."""

    def __init__(self, expression: str, drafts: Mapping[str, Converter]) -> None:
        self._expression = expression
        self._names = tuple(dict.fromkeys(NAMED(expression)))
        self._drafts = drafts

    def condition(self) -> Criterion:
        # nosemgrep: sql-is-never-put-together-as-text - the mapping is the clinic's own
        return and_(text(f"({self._expression})").bindparams(*map(given, self._names)))

    def taken(self, values: Values, made: Values) -> dict[str, Any]:
        return {name: self._taken(name, values, made) for name in self._names}

    def _taken(self, name: str, values: Values, made: Values) -> Any:
        if name in made:
            return made[name]
        converter = self._drafts.get(name)
        return _encoded(converter, values[name], name)

    def selected(self, connection: Connection, values: Values, made: Values) -> Any:
        """The value of the expression. Values are given a type, as nothing else says theirs."""
        typed = [
            bindparam(name, value, type_=BigInteger() if isinstance(value, int) else String())
            for name, value in self.taken(values, made).items()
        ]
        # nosemgrep: sql-is-never-put-together-as-text - the mapping is the clinic's own
        return connection.execute(text(f"SELECT ({self._expression})").bindparams(*typed)).scalar()


def _encoded(converter: Converter | None, value: Any, name: str) -> Any:
    """A value of the draft as it is written."""
    if converter is None or value is None:
        return value
    raws = converter.encode(value)
    if not raws:
        raise BackendNonsense(f"the mapping has no way to write this {name}")
    return raws[0]


class _Source:
    """Where a column's value comes from: the draft, an earlier step, an expression, a constant."""

    def __init__(self, value: WrittenValue, maker: _StepMaker) -> None:
        self._value = value
        shape = DRAFT_FIELDS.get(value.draft or "")
        self._converter = None if shape is None else maker.converters.make(value, shape)
        self._names = None if value.sql is None else _Names(value.sql, maker.drafts)

    def take(self, connection: Connection, values: Values, made: Values) -> Any:
        name, part = self._value.draft, self._value.part
        if name is not None:
            raw = _encoded(self._converter, values[name], name)
            return raw[part - 1] if isinstance(raw, tuple) and part is not None else raw
        if self._value.made is not None:
            return made[self._value.made]
        if self._names is not None:
            return self._names.selected(connection, values, made)
        return self._value.constant


class _Row:
    """The values of a row, by column."""

    def __init__(self, write: StepMap, maker: _StepMaker) -> None:
        self._sources = {name: _Source(value, maker) for name, value in write.values.items()}
        self.parameters = {name: given(f"v{n}") for n, name in enumerate(self._sources)}

    def taken(self, connection: Connection, values: Values, made: Values) -> dict[str, Any]:
        return {
            each: source.take(connection, values, made) for each, source in self._sources.items()
        }


def _bound(row: Values) -> dict[str, Any]:
    """A row's values by the names of the parameters."""
    return {f"v{number}": value for number, value in enumerate(row.values())}


class _Insert:
    def __init__(self, write: StepMap, maker: _StepMaker) -> None:
        self._row = _Row(write, maker)
        self._keys = write.keys
        self._generated = [name for name in write.keys if name not in write.values]
        self._table = named_table(write.insert or "", {*write.values, *write.keys})
        self._statement = insert(self._table).values(self._row.parameters)
        self._name = write.name
        self._undone = write.table in maker.unsafe

    def run(self, connection: Connection, values: Values, done: Done) -> None:
        row = self._row.taken(connection, values, done.made)
        keys = row | self._numbered(connection, _bound(row))
        raw = tuple(keys[name] for name in self._keys)
        if self._name is not None and raw:
            done.made[self._name] = raw[0] if len(raw) == 1 else raw
        if self._undone:
            connection.info[HALF] = True
            which = [self._table.c[name] == given(None, keys[name]) for name in self._keys]
            made = delete(self._table).where(*which)
            done.undo.append(lambda: connection.execute(made))

    def _numbered(self, connection: Connection, row: dict[str, Any]) -> dict[str, Any]:
        """Insert the row; the columns of its key that the database filled in."""
        if not self._generated:
            connection.execute(self._statement, row)
            return {}
        if connection.dialect.insert_returning:
            wanted = [self._table.c[name] for name in self._generated]
            found = connection.execute(self._statement.returning(*wanted), row).one()
            return dict(zip(self._generated, found, strict=True))
        number = connection.execute(self._statement, row).lastrowid
        return dict.fromkeys(self._generated, number)


class _Update:
    """Changes exactly one row; of a slot's row the key is the slot's."""

    def __init__(self, write: StepMap, maker: _StepMaker) -> None:
        self._row = _Row(write, maker)
        self._names = _Names(write.where or "", maker.drafts)
        rows = update(named_table(write.update or "", write.values))
        self._statement = rows.values(self._row.parameters).where(self._names.condition())
        self._of_slot = write.for_ == "slot"
        self._name = write.name

    def run(self, connection: Connection, values: Values, done: Done) -> None:
        row = self._row.taken(connection, values, done.made)
        named = self._names.taken(values, done.made)
        changed = connection.execute(self._statement, _bound(row) | named).rowcount
        if changed == 0 and self._of_slot:
            raise SlotTaken("another program has taken the slot")
        if changed != 1:
            raise BackendNonsense(f"an update of the mapping changes {changed} rows and not one")
        if self._name is not None and self._of_slot:
            done.made[self._name] = values["slot"]


class _Counter:
    def __init__(self, write: StepMap, maker: _StepMaker) -> None:
        rows = named_table(write.counter or "", [write.column or ""])
        number = rows.c[write.column or ""]
        self._names = _Names(write.where or "1 = 1", maker.drafts)
        which = self._names.condition()
        self._move = update(rows).where(which).values({number: number + sql("1")})
        self._look = select(number).where(which)
        self._name = write.name or ""

    def run(self, connection: Connection, values: Values, done: Done) -> None:
        named = self._names.taken(values, done.made)
        if connection.execute(self._move, named).rowcount != 1:
            raise BackendNonsense("the mapping's counter is not exactly one row")
        done.made[self._name] = connection.execute(self._look, named).scalar_one()


class _Sequence:
    def __init__(self, write: StepMap) -> None:
        self._next = following(write.sequence or "")
        self._name = write.name or ""

    def run(self, connection: Connection, values: Values, done: Done) -> None:
        done.made[self._name] = connection.execute(self._next).scalar_one()
