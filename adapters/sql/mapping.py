"""The models of a mapping file: how a practice system's tables become the gateway's records.

The file is data, checked as a whole: every problem at once, with file, line and column. SQL stands
in it only as expressions and joins in the words of the practice's own database. What the models
cannot see by themselves is in adapters/sql/load.py.
"""

import re
from collections.abc import Mapping as Members
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema

from adapters.conversion import Conversion, Listed, Scalar, Strict, Zone
from adapters.ids import HASHED, NATIVE, SEALED
from adapters.slots import Shift, closed_days, days_of_week, hours_of_day

# The names in a write's `sql`, each with a colon before it.
NAMED = re.compile(r"(?<![:\w\\]):(\w+)(?!:)").findall


def _listed(value: Any) -> Any:
    return (
        (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value
    )


def _long_form(value: Any) -> Any:
    if isinstance(value, int | float):
        raise ValueError("must be a text: put it in quotes")  # noqa: TRY004 - pydantic takes this
    return {"sql": value} if isinstance(value, str | list) else value


# An SQL expression, or several: one value in several columns.
Sql = Annotated[str, Field(min_length=1)]
_SQL_SCHEMA: dict[str, Any] = {"type": "string", "minLength": 1}
_COLUMNS_SCHEMA: dict[str, Any] = {
    "anyOf": [_SQL_SCHEMA, {"type": "array", "items": _SQL_SCHEMA, "minItems": 1}]
}
Columns = Annotated[
    tuple[Sql, ...],
    BeforeValidator(_listed),
    Field(min_length=1, max_length=8),
    WithJsonSchema(_COLUMNS_SCHEMA),
]


class InColumns(Strict):
    """What stands in one column or in several: a text by itself is the expression, a list them."""

    sql: Columns

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return _long_form(value)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        long = handler.resolve_ref_schema(handler(schema))
        long["properties"]["sql"] = _COLUMNS_SCHEMA
        return {"anyOf": [*_COLUMNS_SCHEMA["anyOf"], long]}


class Expression(InColumns, Conversion):
    """A value of a row: an SQL expression, or several columns, and how it is written."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All that is selected for the value, in the order in which its converter takes it."""
        return self.sql if self.plus is None else (*self.sql, self.plus)


class Key(InColumns):
    """What names a row: one column, or several together; `as` is what public ids are made of."""

    as_: Literal["id", "native id", "hashed id"] | None = Field(default=None, alias="as")

    @model_validator(mode="after")
    def _of_one_column(self) -> "Key":
        if len(self.sql) > 1 and self.as_ in (SEALED, NATIVE):
            raise ValueError(f"a key of several columns is no {self.as_}; leave `as` out")
        return self

    @property
    def kind(self) -> str:
        """What its ids are: `id` (sealed), `native id` or `hashed id`."""
        return self.as_ or (SEALED if len(self.sql) == 1 else HASHED)


class Rows(Strict):
    """Rows of one table, or of any joined expression."""

    from_: str = Field(alias="from", min_length=1)
    where: Sql | None = None


class ListOf(Rows):
    """A list inside each record, fetched once a page: `parent` holds the record's key."""

    parent: Columns
    key: Key
    fields: dict[str, Expression]


class ResourceMap(Rows):
    """One resource: a `key` that is unique, and its fields."""

    key: Key
    fields: dict[str, Expression]
    lists: dict[str, ListOf] = Field(default_factory=dict)


class Hours(Strict):
    """Working hours of a vet or in a schedule: rows of the practice system, or written here.

    As rows: `weekday` is 1 for Monday to 7 (0 is Sunday too), or `day` a date; `start` and `end`
    read HH:MM. Written: `days` such as mon-fri, `times` such as 08:30-12:00, for the keys in
    `vets` or `schedules`, or for everybody.
    """

    from_: str | None = Field(default=None, alias="from", min_length=1)
    where: Sql | None = None
    vet: Sql | None = None
    schedule: Sql | None = None
    weekday: Sql | None = None
    day: Sql | None = None
    start: Sql | None = None
    end: Sql | None = None
    days: Listed[str] | None = None
    times: Listed[str] | None = None
    vets: Listed[str | int] | None = None
    schedules: Listed[str | int] | None = None

    @model_validator(mode="after")
    def _rows_or_written(self) -> "Hours":
        rows = {name: getattr(self, name) for name in ("where", "vet", "schedule", "start", "end")}
        rows |= {"weekday": self.weekday, "day": self.day}
        written = {name: getattr(self, name) for name in ("days", "times", "vets", "schedules")}
        strangers = written if self.from_ is not None else rows
        given = [name for name, value in strangers.items() if value is not None]
        if given:
            side = "rows (from)" if self.from_ is not None else "hours that are written here (days)"
            raise ValueError(f"{' and '.join(given)} does not go with {side}")
        if self.from_ is not None:
            self._must_be_whole()
        elif self.days is None or self.times is None:
            raise ValueError("needs from, weekday, start and end, or else days and times")
        return self

    def _must_be_whole(self) -> None:
        if (self.weekday is None) == (self.day is None):
            raise ValueError("rows of hours need weekday or day, one of both")
        if self.start is None or self.end is None:
            raise ValueError("rows of hours need start and end")
        if self.vet is not None and self.schedule is not None:
            raise ValueError("takes vet or schedule, not both")

    @field_validator("days")
    @classmethod
    def _known_days(cls, days: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for each in days or ():
            days_of_week(each)
        return days

    @field_validator("times")
    @classmethod
    def _known_times(cls, times: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for each in times or ():
            hours_of_day(each)
        return times

    @property
    def rows(self) -> Rows:
        """Where the rows of hours are."""
        return Rows(from_=self.from_ or "", where=self.where)

    @property
    def shifts(self) -> tuple[Shift, ...]:
        """The hours that are written here."""
        return tuple(
            Shift(weekday, *hours_of_day(each))
            for days in self.days or ()
            for weekday in days_of_week(days)
            for each in self.times or ()
        )


class Rowspan(Rows):
    """Rows that last from a start to an end, or for so many `minutes`, of a vet or a schedule."""

    vet: Sql | None = None
    schedule: Sql | None = None
    start: Expression
    end: Expression | None = None
    minutes: Sql | None = None

    @model_validator(mode="after")
    def _one_owner(self) -> "Rowspan":
        if self.vet is not None and self.schedule is not None:
            raise ValueError("takes vet or schedule, not both")
        return self


class Busy(Rowspan):
    """What blocks: a vet, a schedule, or where neither is named everybody.

    Without an end it lasts `minutes`, else the default duration. `key` is the appointment's, in the
    source that holds the bookings. With `endless` what has no end goes on for good. `longest`
    (days) promises that no row that has an end lasts longer, so that an index on the start serves.
    """

    key: Columns | None = None
    endless: bool = False
    longest: int | None = Field(default=None, ge=1, le=3660)


class SlotRows(Rowspan):
    """Free slots that the practice system keeps as rows; `key` names one in a booking."""

    key: Sql

    @model_validator(mode="after")
    def _somebodys(self) -> "SlotRows":
        if self.vet is None and self.schedule is None:
            raise ValueError("needs vet or schedule: whose slot it is")
        if self.end is None and self.minutes is None:
            raise ValueError("needs end or minutes")
        return self


class Schedules(Rows):
    """The calendars of a vet, where they belong to rooms or schedules."""

    vet: Sql
    key: Sql


class Durations(Rows):
    """How long a type lasts, in a schedule or in all."""

    type: Columns
    schedule: Sql | None = None
    minutes: Sql


class Diary(Strict):
    """How free times come about; `step` and `duration` in minutes."""

    step: int = Field(default=15, ge=5, le=240)
    duration: int = Field(default=30, ge=5, le=1440)
    hours: Listed[Hours] = ()
    busy: Listed[Busy] = Field(min_length=1)
    closed: Listed[str] = ()
    slots: Listed[SlotRows] = ()
    schedules: Schedules | None = None
    durations: Listed[Durations] = ()

    @field_validator("closed")
    @classmethod
    def _known_days(cls, closed: tuple[str, ...]) -> tuple[str, ...]:
        for each in closed:
            closed_days(each)
        return closed

    @model_validator(mode="after")
    def _some_time(self) -> "Diary":
        if not self.hours and not self.slots:
            raise ValueError("needs hours or slots: when there is time at all")
        return self


class Value(Conversion):
    """What a booking writes into a column: one of these, or a plain constant."""

    draft: str | None = None
    made: str | None = None
    sql: str | None = None
    constant: Scalar = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return value if isinstance(value, dict) else {"constant": value}

    @model_validator(mode="after")
    def _one_source(self) -> "Value":
        named = [name for name in ("draft", "made", "sql") if getattr(self, name) is not None]
        if len(named) > 1:
            raise ValueError(f"takes one of draft, made, sql, not {' and '.join(named)}")
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        long = handler.resolve_ref_schema(handler(schema))
        return {"anyOf": [{"type": ["string", "number", "boolean", "null"]}, long]}


# What makes a step of each kind: what it needs, and what it may have beside `name` and `for`.
_KINDS: Members[str, tuple[frozenset[str], frozenset[str]]] = {
    "insert": (frozenset({"values"}), frozenset({"key"})),
    "update": (frozenset({"values", "where"}), frozenset()),
    "counter": (frozenset({"column", "name"}), frozenset({"where"})),
    "sequence": (frozenset({"name"}), frozenset()),
}


class Write(Strict):
    """One step of a booking: a row inserted or updated, a counter moved on, a sequence's number.

    `name` is what later steps call its key, or its number. `for` keeps it to bookings of a slot
    row, or to those of any other time, `if` to those that have the named value of the draft.
    """

    insert: str | None = None
    update: str | None = None
    counter: str | None = None
    sequence: str | None = None
    for_: Literal["slot", "time"] | None = Field(default=None, alias="for")
    if_: str | None = Field(default=None, alias="if")
    key: Listed[str] | str | None = None
    column: str | None = None
    where: Sql | None = None
    name: str | None = None
    values: dict[str, Value] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_kind(self) -> "Write":
        kinds = [name for name in _KINDS if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise ValueError(f"takes one of {', '.join(_KINDS)}")
        needs, may = _KINDS[kinds[0]]
        given = {n for n in ("key", "column", "where", "name", "values") if getattr(self, n)}
        if missing := needs - given:
            article = "an" if kinds[0][0] in "iu" else "a"
            raise ValueError(f"{article} {kinds[0]} needs {' and '.join(sorted(missing))}")
        if strange := given - needs - may - {"name"}:
            raise ValueError(f"{' and '.join(sorted(strange))} does not go with {kinds[0]}")
        return self

    @property
    def table(self) -> str:
        """The table that it writes; "" for a sequence."""
        return self.insert or self.update or self.counter or ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of an insert that name its row."""
        if self.key is None:
            return ()
        return (self.key,) if isinstance(self.key, str) else self.key

    @property
    def names_a_row(self) -> bool:
        """Whether its name is that of a row: what an appointment can be."""
        return bool(self.insert and self.key) or bool(self.update and self.for_ == "slot")


class Booking(Strict):
    """The rows that a booking writes, in order; `appointment` names the step whose key it is.

    `reference`, of the appointments' rows, is where the draft's reference was written. The tables
    in `without_transactions` may be written though what is written there cannot be undone.
    """

    appointment: str
    reference: Sql | None = None
    writes: Listed[Write] = Field(min_length=1)
    without_transactions: Listed[str] = ()


class Mapping(Strict):
    """A whole mapping file."""

    version: Literal[1]
    zone: Zone
    resources: dict[str, ResourceMap]
    diary: Diary
    booking: Booking

    @property
    def kinds(self) -> dict[str, str]:
        """What the ids of each resource, and of each list inside one, are made of."""
        found = {name: rows.key.kind for name, rows in self.resources.items()}
        for name, rows in self.resources.items():
            found |= {f"{name}/{each}": nested.key.kind for each, nested in rows.lists.items()}
        return found
