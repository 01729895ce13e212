"""The rows that a booking writes: the mapping's list of inserts and counters, in its order."""

from typing import Any

from sqlalchemy import (
    Column,
    ColumnClause,
    ColumnElement,
    Connection,
    Integer,
    MetaData,
    Table,
    column,
    insert,
    select,
    table,
    text,
    update,
)
from sqlalchemy.types import NullType

from adapters.base import BackendNonsense, Draft
from adapters.conversion import DRAFT_FIELDS
from adapters.convert import Converter, instant_text
from adapters.converters import Converters
from adapters.slots import Interval
from adapters.sql.mapping import Mapping, Value, Write
from adapters.sql.reading import sql


class BookingWrites:
    """The rows that a booking writes, in the mapping's order."""

    def __init__(self, mapping: Mapping, converters: Converters) -> None:
        self._appointment = mapping.booking.appointment
        self._steps = [_step(write, converters) for write in mapping.booking.writes]
        self._times = [
            converters.make(value, DRAFT_FIELDS[value.draft])
            for write in mapping.booking.writes
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

    def draft_values(self, draft: Draft, wanted: Interval) -> dict[str, Any]:
        """The draft by the names that a mapping uses."""
        return {
            "clientId": draft.client_id,
            "patientId": draft.patient_id,
            "vetId": draft.vet_id,
            "appointmentTypeId": draft.appointment_type_id,
            "scheduledAt": wanted.start,
            "endTime": wanted.end,
            "createdAt": draft.now,
            "reason": draft.reason,
            "isUrgent": draft.is_urgent,
            "reference": draft.reference,
        }

    def write(self, connection: Connection, values: dict[str, Any]) -> int:
        """Write every row; the key of the appointment."""
        made: dict[str, Any] = {}
        for step in self._steps:
            step.run(connection, values, made)
        return int(made[self._appointment])


def _step(write: Write, converters: Converters) -> "_Insert | _Counter":
    if write.insert is None:
        return _Counter(write)
    return _Insert(write, converters)


class _Insert:
    def __init__(self, write: Write, converters: Converters) -> None:
        columns: list[Column[Any]] = [Column(name, NullType()) for name in write.values]
        if write.key is not None:
            columns.insert(0, Column(write.key, Integer(), primary_key=True))
        self._statement = insert(Table(write.insert or "", MetaData(), *columns))
        self._name = write.name
        self._values = [
            (column, _Source(value, converters)) for column, value in write.values.items()
        ]

    def run(self, connection: Connection, values: dict[str, Any], made: dict[str, Any]) -> None:
        row = {column: source.take(connection, values, made) for column, source in self._values}
        done = connection.execute(self._statement, row)
        if self._name is not None and done.inserted_primary_key:
            made[self._name] = done.inserted_primary_key[0]


class _Counter:
    def __init__(self, write: Write) -> None:
        number: ColumnClause[int] = column(write.column or "", Integer)
        counter = table(write.counter or "", number)
        which: ColumnElement[Any] = sql(write.where or "1 = 1")
        self._move = update(counter).where(which).values({number: number + 1})
        self._look = select(number).where(which)
        self._name = write.name or ""

    def run(self, connection: Connection, values: dict[str, Any], made: dict[str, Any]) -> None:
        moved = connection.execute(self._move)
        if moved.rowcount != 1:
            raise BackendNonsense("the mapping's counter is not exactly one row")
        made[self._name] = connection.execute(self._look).scalar_one()


class _Source:
    """Where a column's value comes from: the draft, an earlier step, an expression, a constant."""

    def __init__(self, value: Value, converters: Converters) -> None:
        self._value = value
        self._converter: Converter | None = None
        if value.draft is not None:
            self._converter = converters.make(value, DRAFT_FIELDS[value.draft])
        self._select = text(f"SELECT {value.sql}") if value.sql is not None else None

    def take(self, connection: Connection, values: dict[str, Any], made: dict[str, Any]) -> Any:
        if self._converter is not None:
            name = self._value.draft or ""
            if values[name] is None:
                return None
            raw = self._converter.encode(values[name])
            if not raw:
                raise BackendNonsense(f"the mapping has no way to write this {name}")
            return raw[0]
        if self._value.made is not None:
            return made[self._value.made]
        if self._select is not None:
            wanted = self._select.compile().params
            return connection.execute(self._select, {n: made[n] for n in wanted}).scalar_one()
        return self._value.constant
