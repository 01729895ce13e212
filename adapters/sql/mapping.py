"""Reads a mapping file: how a practice system's tables become the gateway's records.

The file is data, checked as a whole: every problem at once, with file, line and column. SQL stands
in it only as expressions and joins in the words of the practice's own database.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from adapters.base import FieldShape, Shapes
from adapters.conversion import (
    DRAFT_FIELDS,
    Conversion,
    ConversionChecker,
    Listed,
    Scalar,
    Strict,
    Zone,
)
from adapters.document import (
    Document,
    DocumentErrors,
    Place,
    Problem,
    check,
    did_you_mean,
    forgiving,
    read_document,
)

# What a booking cannot do without: to know whose animal it is, and to know itself again.
NEEDED = {
    "patients": ("clientId",),
    "appointments": ("vetId", "patientId", "scheduledAt"),
}
# The names in a write's `sql`, each with a colon before it.
NAMED = re.compile(r"(?<![:\w\\]):(\w+)(?!:)").findall


class Expression(Conversion):
    """A value of a row: an SQL expression, and how it is written."""

    sql: str = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"sql": value} if isinstance(value, str) else value


class Rows(Strict):
    """Rows of one table, or of any joined expression."""

    from_: str = Field(alias="from", min_length=1)
    where: str | None = None


class ListOf(Rows):
    """A list inside each record, fetched once a page: `parent` holds the record's key."""

    parent: str
    key: str
    fields: dict[str, Expression]


class ResourceMap(Rows):
    """One resource: a whole-number `key` that is unique, and its fields."""

    key: str
    fields: dict[str, Expression]
    lists: dict[str, ListOf] = Field(default_factory=dict)


class Hours(Rows):
    """Weekly working hours; `weekday` is 1 for Monday to 7, `start` and `end` read HH:MM."""

    vet: str
    weekday: str
    start: str
    end: str


class Busy(Rows):
    """What blocks a vet. Without an end it lasts `minutes`, else the default duration.

    With `endless` what has no end goes on for good. `longest` (days) promises that no row that has
    an end lasts longer, so that an index on the start can serve.
    """

    vet: str
    start: Expression
    end: Expression
    minutes: str | None = None
    endless: bool = False
    longest: int | None = Field(default=None, ge=1, le=3660)


class Diary(Strict):
    """How free times come about; `step` and `duration` in minutes."""

    step: int = Field(default=15, ge=5, le=240)
    duration: int = Field(default=30, ge=5, le=1440)
    hours: Listed[Hours] = Field(min_length=1)
    busy: Listed[Busy] = Field(min_length=1)


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


class Write(Strict):
    """One step of a booking: a row that is inserted, or a counter that is moved on by one.

    `name` is what later steps call its key, or the counter's new value.
    """

    insert: str | None = None
    counter: str | None = None
    key: str | None = None
    column: str | None = None
    where: str | None = None
    name: str | None = None
    values: dict[str, Value] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_kind(self) -> "Write":
        if (self.insert is None) == (self.counter is None):
            raise ValueError("takes either insert or counter")
        if self.counter is not None and (self.column is None or self.name is None):
            raise ValueError("a counter needs column and name")
        if self.insert is not None and not self.values:
            raise ValueError("an insert needs values")
        return self


class Booking(Strict):
    """The rows that a booking writes, in order; `appointment` names the step whose key it is.

    `reference`, of the appointments' rows, is where the draft's reference was written.
    """

    appointment: str
    reference: str | None = None
    writes: Listed[Write] = Field(min_length=1)


class Mapping(Strict):
    """A whole mapping file."""

    version: Literal[1]
    zone: Zone
    resources: dict[str, ResourceMap]
    diary: Diary
    booking: Booking


def load_mapping(path: Path, shapes: Shapes) -> tuple[Mapping, Document]:
    """The mapping at `path`, and where all of it stands; DocumentErrors with every problem."""
    document, flaws = forgiving(lambda: read_document(path))
    try:
        mapping = check(document, Mapping)
    except DocumentErrors as error:
        raise DocumentErrors([*flaws, *error.problems]) from error
    problems = [*flaws, *_Checker(document, shapes).problems(mapping)]
    if problems:
        raise DocumentErrors(problems)
    return mapping, document


_TIME = FieldShape(format="date-time")


class _Checker:
    """What the models cannot see: names of resources, fields, converters, and codes."""

    def __init__(self, document: Document, shapes: Shapes) -> None:
        self.document = document
        self.shapes = shapes
        self.conversions = ConversionChecker(document, shapes)

    def problems(self, mapping: Mapping) -> Iterator[Problem]:
        wanted = [name for name in self.shapes if name != "slots"]
        for name, resource in mapping.resources.items():
            place: Place = ("resources", name)
            if name not in wanted:
                text = f"{name} is no resource{did_you_mean(name, wanted)}"
                yield self.document.problem(place, text, at_key=True)
                continue
            yield from self._fields(place, self.shapes[name], "", resource.fields)
            for list_name, nested in resource.lists.items():
                inner = (*place, "lists", list_name)
                prefix = f"{list_name}[]."
                if not any(path.startswith(prefix) for path in self.shapes[name]):
                    text = f"{name} has no list {list_name}"
                    yield self.document.problem(inner, text, at_key=True)
                    continue
                yield from self._fields(inner, self.shapes[name], prefix, nested.fields)
        for name in wanted:
            if name not in mapping.resources:
                text = f"{name} is missing: every resource needs its tables"
                yield self.document.problem(("resources",), text, at_key=True)
        yield from self._busy(mapping.diary)
        yield from self._booking(mapping.booking)
        yield from self._needed(mapping)

    def _busy(self, diary: Diary) -> Iterator[Problem]:
        for number, busy in enumerate(diary.busy):
            place: Place = ("diary", "busy", number)
            yield from self.conversions.problems((*place, "start"), busy.start, _TIME)
            yield from self.conversions.problems((*place, "end"), busy.end, _TIME)

    def _needed(self, mapping: Mapping) -> Iterator[Problem]:
        """What must be there so that a booking can be checked, and found again."""
        needed = dict(NEEDED)
        if mapping.booking.reference is None:
            needed["appointments"] = (*NEEDED["appointments"], "createdAt")
        for resource, names in needed.items():
            rows = mapping.resources.get(resource)
            for name in names:
                if rows is not None and name not in rows.fields:
                    text = f"{name} is missing: no booking can be made without it"
                    if name == "createdAt":
                        text += ", unless booking.reference says where a booking's reference is"
                    yield self.document.problem(
                        ("resources", resource, "fields"), text, at_key=True
                    )

    def _fields(
        self, place: Place, shapes: Any, prefix: str, fields: dict[str, Expression]
    ) -> Iterator[Problem]:
        known = {
            path.removeprefix(prefix): shape
            for path, shape in shapes.items()
            if path.startswith(prefix) and "[]" not in path.removeprefix(prefix)
        }
        for name, expression in fields.items():
            at = (*place, "fields", name)
            if name == "id":
                text = "id is made of the key; leave it out here"
                yield self.document.problem(at, text, at_key=True)
            elif name not in known:
                text = f"{name} is no field here{did_you_mean(name, known)}"
                yield self.document.problem(at, text, at_key=True)
            else:
                yield from self.conversions.problems(at, expression, known[name])

    def _booking(self, booking: Booking) -> Iterator[Problem]:
        made: list[str] = []
        for number, write in enumerate(booking.writes):
            place: Place = ("booking", "writes", number)
            for column, value in write.values.items():
                yield from self._value((*place, "values", column), value, made)
            if write.name is not None:
                made.append(write.name)
        inserts = [write.name for write in booking.writes if write.insert and write.key]
        if booking.appointment not in inserts:
            text = f"{booking.appointment} is not the name of an insert with a key"
            yield self.document.problem(("booking", "appointment"), text)
        yield from self._reference(booking)

    def _reference(self, booking: Booking) -> Iterator[Problem]:
        values = (value for write in booking.writes for value in write.values.values())
        is_written = any(value.draft == "reference" for value in values)
        if is_written and booking.reference is None:
            text = "reference is missing: say where the reference that is written can be read"
            yield self.document.problem(("booking",), text, at_key=True)
        if booking.reference is not None and not is_written:
            text = "no write has {draft: reference}, so there is nothing to be read here"
            yield self.document.problem(("booking", "reference"), text)

    def _value(self, place: Place, value: Value, made: list[str]) -> Iterator[Problem]:
        if value.draft is not None:
            if value.draft not in DRAFT_FIELDS:
                text = f"a draft has no {value.draft}{did_you_mean(value.draft, DRAFT_FIELDS)}"
                yield self.document.problem((*place, "draft"), text)
            else:
                yield from self.conversions.problems(place, value, DRAFT_FIELDS[value.draft])
        if value.made is not None and value.made not in made:
            text = f"no step before this one is called {value.made}{did_you_mean(value.made, made)}"
            yield self.document.problem((*place, "made"), text)
        for name in NAMED(value.sql or ""):
            if name not in made:
                near = did_you_mean(name, made)
                text = f"no step before this one is called {name}{near}; write \\: for a colon"
                yield self.document.problem((*place, "sql"), text)
