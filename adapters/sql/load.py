"""Reads a mapping file, and checks what its models cannot see: names, converters, codes, steps."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from adapters.base import FieldShape, Shapes
from adapters.documents.document import Document, Place
from adapters.documents.problems import Problem, did_you_mean
from adapters.mapping.conversion import (
    DRAFT_FIELDS,
    DRAFT_KEYS,
    IN_COLUMNS,
    Conversion,
    ConversionChecker,
    conversion_name,
)
from adapters.mapping.loading import fields_checked, lacking, load, no_list
from adapters.sql.mapping import (
    NAMED,
    Booking,
    Diary,
    Expression,
    Mapping,
    Rowspan,
    Value,
    Write,
)
from adapters.values.wall_clock import PATTERN, sorts

# What a booking cannot do without: to know whose animal it is, and to know itself again.
NEEDED = {
    "patients": ("clientId",),
    "appointments": ("vetId", "patientId", "scheduledAt"),
}
_TIME = FieldShape(format="date-time")
_DRAFT = (*DRAFT_FIELDS, *DRAFT_KEYS)


def load_mapping(path: Path, shapes: Shapes) -> tuple[Mapping, Document]:
    """The mapping at `path`, and where all of it stands; DocumentErrors with every problem."""
    return load(
        path, Mapping, lambda found, made: _Checker(found, shapes).problems(made), adapter="sql"
    )


class _Checker:
    """What the models cannot see: names of resources, fields, converters, and codes."""

    def __init__(self, document: Document, shapes: Shapes) -> None:
        self.document = document
        self.shapes = shapes
        self.conversions = ConversionChecker(document, shapes)

    def problems(self, mapping: Mapping) -> Iterator[Problem]:
        yield from self._resources(mapping)
        yield from self._vets(mapping)
        yield from self._diary(mapping.diary)
        yield from _BookingChecker(self.document, self.conversions, mapping.diary).problems(
            mapping.booking
        )
        yield from self._needed(mapping)

    def _resources(self, mapping: Mapping) -> Iterator[Problem]:
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
                    text = no_list(name, list_name, self.shapes[name])
                    yield self.document.problem(inner, text, at_key=True)
                    continue
                if len(nested.parent) != len(resource.key.sql):
                    text = f"parent must have as many columns as the key of {name}"
                    yield self.document.problem((*inner, "parent"), text)
                yield from self._fields(inner, self.shapes[name], prefix, nested.fields)
        for name in wanted:
            if name not in mapping.resources:
                text = f"{name} is missing: every resource needs its tables"
                yield self.document.problem(("resources",), text, at_key=True)
        yield from self._references(mapping)

    def _references(self, mapping: Mapping) -> Iterator[Problem]:
        """Ids of a resource with a key of several columns need just as many."""
        for name, rows in mapping.resources.items():
            owners: list[tuple[Place, str, dict[str, Expression]]] = [((), "", rows.fields)]
            for each, nested in rows.lists.items():
                owners.append((("lists", each), f"{each}[].", nested.fields))
            for inner, prefix, fields in owners:
                for field, expression in fields.items():
                    shape = self.shapes.get(name, {}).get(prefix + field)
                    target = expression.of or (shape.refers if shape else None)
                    key = mapping.resources.get(target or "")
                    if key is not None and len(expression.sql) != len(key.key.sql):
                        text = f"{field} must have as many columns as the key of {target}"
                        place = ("resources", name, *inner, "fields", field)
                        yield self.document.problem(place, text)

    def _vets(self, mapping: Mapping) -> Iterator[Problem]:
        vets = mapping.resources.get("vets")
        if vets is not None and len(vets.key.sql) > 1:
            text = "a vet's key must be one column: the diary knows vets by it"
            yield self.document.problem(("resources", "vets", "key"), text)

    def _diary(self, diary: Diary) -> Iterator[Problem]:
        for number, busy in enumerate(diary.busy):
            yield from self._span(("diary", "busy", number), busy)
        for number, slots in enumerate(diary.slots):
            yield from self._span(("diary", "slots", number), slots)
        if not any(busy.key for busy in diary.busy):
            text = "no source here has a key: name that of the appointment in the one that holds"
            text += " the bookings, so that a booking is told from what the desk writes"
            yield self.document.problem(("diary", "busy"), text, at_key=True)
        if diary.schedules is None:
            yield from self._no_schedules(diary)
        elif not any(busy.key and busy.vet for busy in diary.busy):
            text = "no source with a key has a vet here: in two schedules one vet would be booked"
            text += " for one time; give what blocks a vet, whatever the schedule, as a source too"
            yield self.document.problem(("diary", "busy"), text, at_key=True)

    def _span(self, place: Place, rows: Rowspan) -> Iterator[Problem]:
        for name in ("start", "end"):
            expression: Expression | None = getattr(rows, name)
            if expression is None:
                continue
            inner = (*place, name)
            yield from self._expression(inner, expression, _TIME)
            if expression.plus is not None:
                yield self.document.problem((*inner, "plus"), "write it as minutes, beside start")
            elif not sorts(expression.pattern or PATTERN):
                text = "what blocks is looked for by its times: pattern must sort as they do"
                yield self.document.problem((*inner, "pattern"), text)

    def _no_schedules(self, diary: Diary) -> Iterator[Problem]:
        named: list[tuple[Place, Any]] = [
            (("diary", kind, number), each.schedule)
            for kind in ("hours", "busy", "slots", "durations")
            for number, each in enumerate(getattr(diary, kind))
        ]
        named += [(("diary", "hours", n), each.schedules) for n, each in enumerate(diary.hours)]
        for place, schedule in named:
            if schedule is not None:
                text = "a schedule needs diary.schedules, which says whose it is"
                yield self.document.problem((*place, "schedule"), text)

    def _needed(self, mapping: Mapping) -> Iterator[Problem]:
        kept = mapping.booking.reference is not None
        yield from lacking(self.document, NEEDED, mapping.resources, keeps_reference=kept)

    def _fields(
        self, place: Place, shapes: Any, prefix: str, fields: dict[str, Expression]
    ) -> Iterator[Problem]:
        check = self._expression
        yield from fields_checked(self.document, place, shapes, prefix, fields, check)

    def _expression(
        self, place: Place, expression: Expression, shape: FieldShape
    ) -> Iterator[Problem]:
        yield from self.conversions.problems(place, expression, shape)
        name, number = conversion_name(expression, shape), len(expression.sql)
        if number == 1:
            return
        if name not in IN_COLUMNS:
            text = f"as: {name} reads one column, and here are {number}; as: joined text takes more"
            yield self.document.problem((*place, "sql"), text)
        elif name in ("local time", "utc time") and number != 2:
            text = f"a time stands in one column or in two, a day and a time, not in {number}"
            yield self.document.problem((*place, "sql"), text)
        elif name in ("local time", "utc time") and " " not in (expression.pattern or PATTERN):
            text = "pattern of a time in two columns needs a blank between day and time"
            yield self.document.problem((*place, "pattern"), text)


class _BookingChecker:
    """Looks at the steps of a booking in their order."""

    def __init__(self, document: Document, conversions: ConversionChecker, diary: Diary) -> None:
        self.document = document
        self.conversions = conversions
        self.diary = diary

    def problems(self, booking: Booking) -> Iterator[Problem]:
        made: list[str] = []
        for number, write in enumerate(booking.writes):
            place: Place = ("booking", "writes", number)
            for column, value in write.values.items():
                yield from self._value((*place, "values", column), value, made)
            yield from self._named((*place, "where"), write.where or "", made)
            if write.if_ is not None and write.if_ not in _DRAFT:
                text = f"a draft has no {write.if_}{did_you_mean(write.if_, _DRAFT)}"
                yield self.document.problem((*place, "if"), text)
            elif write.if_ is not None and write.name is not None:
                text = "a step with `if` may not happen, so it has no name for others"
                yield self.document.problem((*place, "name"), text, at_key=True)
            if write.for_ == "slot" and not self.diary.slots:
                text = "there are no slot rows: diary.slots says where they are"
                yield self.document.problem((*place, "for"), text)
            if write.table in booking.without_transactions:
                yield from self._never_undone(place, write)
            if write.name is not None:
                made.append(write.name)
        yield from self._appointment(booking)
        yield from self._reference(booking)

    def _never_undone(self, place: Place, write: Write) -> Iterator[Problem]:
        """What could not be taken back, and nothing else, without a transaction."""
        if write.insert is not None and not write.keys:
            text = f"{write.table} has no transactions: say its key, by which a row that has to be"
            yield self.document.problem((*place, "insert"), f"{text} taken back is deleted")
        elif write.update is not None:
            text = f"{write.table} has no transactions: what an update changes there cannot be"
            yield self.document.problem((*place, "update"), f"{text} taken back")

    def _appointment(self, booking: Booking) -> Iterator[Problem]:
        """The step that makes the appointment, for slot rows and for all other times."""
        steps = [each for each in booking.writes if each.name == booking.appointment]
        makers = [each for each in steps if each.names_a_row]
        if not makers:
            text = f"{booking.appointment} is not the name of an insert with a key"
            yield self.document.problem(("booking", "appointment"), text)
            return
        for which, needed in (("slot", self.diary.slots), ("time", self.diary.hours)):
            if needed and not any(each.for_ in (None, which) for each in makers):
                text = f"no step for: {which} makes the {booking.appointment}"
                yield self.document.problem(("booking", "appointment"), text)

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
            yield from self._draft(place, value)
        if value.made is not None and value.made not in made:
            text = f"no step before this one is called {value.made}{did_you_mean(value.made, made)}"
            yield self.document.problem((*place, "made"), text)
        yield from self._named((*place, "sql"), value.sql or "", made)

    def _draft(self, place: Place, value: Value) -> Iterator[Problem]:
        name = value.draft or ""
        if name not in _DRAFT:
            text = f"a draft has no {name}{did_you_mean(name, _DRAFT)}"
            yield self.document.problem((*place, "draft"), text)
        elif name in DRAFT_FIELDS:
            yield from self.conversions.problems(place, value, DRAFT_FIELDS[name], whole=False)
        elif extra := [
            each for each in Conversion.model_fields if getattr(value, each) is not None
        ]:
            text = f"{name} is written as the practice system has it; {extra[0]} does not go here"
            yield self.document.problem((*place, "draft"), text)

    def _named(self, place: Place, sql: str, made: Iterable[str]) -> Iterator[Problem]:
        known = [*made, *_DRAFT]
        for name in NAMED(sql):
            if name not in known:
                near = did_you_mean(name, known)
                text = f"no step before this one is called {name}{near}; write \\: for a colon"
                yield self.document.problem(place, text)
