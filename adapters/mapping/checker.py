"""Checks a mapping as a whole: every problem at once, each at its line, with what to write instead.

The models see the shape of each part. What they cannot see is checked here: what goes with which
kind of practice system, and the names of resources, fields, converters, drafts and steps.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
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
    Strict,
    conversion_name,
)
from adapters.mapping.models import (
    BRACED,
    NAMED,
    BusyMap,
    CallMap,
    DiaryMap,
    Expressions,
    FilterParameter,
    HoursMap,
    ListCall,
    ListMap,
    MappingFile,
    Owned,
    Paging,
    ResourceMap,
    RowSource,
    SentValue,
    StepMap,
    TimesMap,
    Tree,
    ValueSource,
)
from adapters.mapping.paths import path_problem
from adapters.values.wall_clock import PATTERN, sorts

# What a booking cannot do without: to know whose animal it is, and to know itself again.
NEEDED = {
    "patients": ("clientId",),
    "appointments": ("vetId", "patientId", "scheduledAt"),
}
# Over HTTP a booking is withdrawn by a call: its status says whether it is.
NEEDED_OF_JSON = {**NEEDED, "appointments": (*NEEDED["appointments"], "status")}
# Read by their ids alone.
UNLISTED = frozenset({"appointments", "consultations"})
SEARCH = "search"
# What calls of the diary can be given.
GIVEN = {
    "vet": FieldShape(format="uuid", refers="vets"),
    "schedule": FieldShape(format="text"),
    "type": FieldShape(format="uuid", refers="appointmentTypes"),
    "day": FieldShape(format="date"),
    "from": FieldShape(format="date-time"),
    "until": FieldShape(format="date-time"),
    "minutes": FieldShape(format="integer"),
}
TEXT, TIME = FieldShape(format="text"), FieldShape(format="date-time")
# What a booking's steps can be given: a draft's values, and the calendar and row of its slot.
DRAFT = {**DRAFT_FIELDS, **dict.fromkeys(DRAFT_KEYS, TEXT)}
_PAGING = {
    "offset": (("offset",), {"limit", "total"}),
    "page": (("page",), {"size", "first", "total"}),
    "cursor": (("cursor", "next"), {"limit", "size"}),
    "link": ((), {"next", "header", "limit", "size"}),
}
_CONVERSION = tuple(Conversion.model_fields)


def needed(adapter: str) -> Mapping[str, tuple[str, ...]]:
    """The fields that no mapping for that adapter can leave out, by resource."""
    return NEEDED if adapter == "sql" else NEEDED_OF_JSON


class Checker:
    """Checks one mapping for the adapter `sql` or `rest`.

    `secrets` are the names of those that the settings give.
    """

    def __init__(
        self,
        document: Document,
        mapping: MappingFile,
        shapes: Shapes,
        adapter: str,
        secrets: frozenset[str],
    ) -> None:
        self.document = document
        self.mapping = mapping
        self.shapes = shapes
        self.adapter = adapter
        self.of_sql = adapter == "sql"
        self.secrets = secrets
        self.conversions = ConversionChecker(document, shapes)

    def problems(self) -> Iterator[Problem]:
        """All that is wrong; where parts are of the other kind of mapping, nothing else."""
        strangers = list(
            chain.from_iterable(self._strangers(*each) for each in parts(self.mapping))
        )
        if strangers:
            yield from strangers
            return
        yield from self._backend()
        yield from self._resources()
        yield from self._diary(self.mapping.diary)
        yield from self._booking()
        yield from self._needed()

    def _at_key(self, place: Place, text: str) -> Problem:
        return self.document.problem(place, text, at_key=True)

    def _strangers(self, place: Place, part: Strict) -> Iterator[Problem]:
        """Names of the part that go with the other adapter, and paths that are none."""
        foreign, other = (part.rest_only, "rest") if self.of_sql else (part.sql_only, "sql")
        for name, info in type(part).model_fields.items():
            shown = info.alias or name
            if name not in part.model_fields_set and shown not in part.model_fields_set:
                continue
            if shown in foreign:
                text = f"{shown} stands only in a mapping of the {other} adapter"
                yield self._at_key((*place, shown), text)
            elif not self.of_sql and any(isinstance(e, Expressions) for e in info.metadata):
                yield from self._paths((*place, shown), getattr(part, name))

    def _paths(self, place: Place, expressions: str | Sequence[str] | None) -> Iterator[Problem]:
        if not isinstance(expressions, str | None) and len(expressions) > 1:
            yield self.document.problem(place, "a value of JSON has one path")
            return
        for expression in (expressions,) if isinstance(expressions, str) else expressions or ():
            if problem := path_problem(expression):
                yield self.document.problem(place, f"{place[-1]}: {problem}")

    def _backend(self) -> Iterator[Problem]:
        backend, place = self.mapping.backend, ("backend",)
        for name, tree in backend.headers.items():
            yield from self._tree((*place, "headers", name), tree, {}, ())
        for number, name in enumerate(backend.basic or ()):
            yield from self._secret((*place, "basic", number), name)
        if backend.login is not None:
            yield from self._call((*place, "login"), backend.login, {}, ())
            if backend.login.seconds is None and backend.login.lifetime is None:
                text = "say how long the token lives: seconds, a path, or lifetime, a number"
                yield self._at_key((*place, "login"), text)

    # resources

    def _resources(self) -> Iterator[Problem]:
        wanted = [name for name in self.shapes if name != "slots"]
        for name, resource in self.mapping.resources.items():
            if name in wanted:
                yield from self._resource(("resources", name), name, resource)
            else:
                text = f"{name} is no resource{did_you_mean(name, wanted)}"
                yield self._at_key(("resources", name), text)
        for name in wanted:
            if name not in self.mapping.resources:
                kind = "its tables" if self.of_sql else "its calls"
                text = f"{name} is missing: every resource needs {kind}"
                yield self._at_key(("resources",), text)

    def _resource(self, place: Place, name: str, resource: ResourceMap) -> Iterator[Problem]:
        yield from self._key((*place, "key"), resource.key, name)
        yield from self._fields(place, name, "", resource.fields)
        if self.of_sql:
            yield from self._has(place, resource, "from", "patients p")
        else:
            yield from self._calls(place, name, resource)
        for each, inner in resource.lists.items():
            yield from self._list(place, name, each, inner)
        if name == "vets" and len(resource.key.source) > 1:
            text = "a vet's key must be one column: the diary knows vets by it"
            yield self.document.problem((*place, "key"), text)

    def _has(self, place: Place, part: Strict, name: str, example: str) -> Iterator[Problem]:
        if getattr(part, f"{name}_" if name == "from" else name) is None:
            yield self._at_key(place, f"{name} is missing, such as {name}: {example}")

    def _calls(self, place: Place, name: str, resource: ResourceMap) -> Iterator[Problem]:
        if resource.one is None and resource.list_ is None:
            text = "takes one, list, or both: there must be a way to read it"
            yield self.document.problem(place, f"{name}: {text}")
            return
        if resource.one is not None:
            shapes = {"id": FieldShape(format="uuid", refers=name)}
            yield from self._call((*place, "one"), resource.one, shapes, ())
        if resource.list_ is not None:
            yield from self._listing((*place, "list"), name, resource, resource.list_)
        elif name not in UNLISTED:
            text = f"list is missing, such as list: /{name}; {name} cannot be listed without it"
            yield self._at_key(place, text)

    def _list(self, place: Place, resource: str, name: str, inner: ListMap) -> Iterator[Problem]:
        """A list inside each record."""
        at, prefix, own = (*place, "lists", name), f"{name}[].", self.shapes[resource]
        if not any(path.startswith(prefix) for path in own):
            yield self._at_key(at, _no_list(resource, name, own))
            return
        if self.of_sql:
            yield from self._has(at, inner, "from", "invoice_lines l")
            yield from self._has(at, inner, "parent", "l.invoice_id")
            key = self.mapping.resources[resource].key
            if inner.parent is not None and len(inner.parent) != len(key.source):
                text = f"parent must have as many columns as the key of {resource}"
                yield self.document.problem((*at, "parent"), text)
        else:
            yield from self._has(at, inner, "items", name)
        if inner.key is not None:
            yield from self._key((*at, "key"), inner.key, resource)
        elif self.of_sql or f"{prefix}id" in own:
            text = f"key is missing, such as key: id; each of {name} has one"
            yield self._at_key(at, text)
        yield from self._fields(at, resource, prefix, inner.fields)

    def _key(self, place: Place, key: ValueSource, resource: str) -> Iterator[Problem]:
        shape = FieldShape(format="uuid", refers=resource)
        if self.of_sql and key.as_ is not None and key.as_ not in ("id", "native id", "hashed id"):
            text = f"as: {key.as_} is no way to make an id: use id, native id or hashed id"
            yield self.document.problem((*place, "as"), text)
        elif len(key.source) > 1 and key.as_ in ("id", "native id"):
            text = f"key: a key of several columns is no {key.as_}; leave `as` out"
            yield self.document.problem(place, text)
        else:
            yield from self.conversions.problems(place, key, shape)

    def _fields(
        self, place: Place, resource: str, prefix: str, fields: Mapping[str, ValueSource]
    ) -> Iterator[Problem]:
        """The fields of a resource or (with its prefix) of a list inside one."""
        known = {
            path.removeprefix(prefix): shape
            for path, shape in self.shapes[resource].items()
            if path.startswith(prefix) and "[]" not in path.removeprefix(prefix)
        }
        for name, value in fields.items():
            at = (*place, "fields", name)
            if name == "id":
                yield self._at_key(at, "id is made of the key; leave it out here")
            elif name not in known:
                yield self._at_key(at, f"{name} is no field here{did_you_mean(name, known)}")
            else:
                yield from self._value(at, value, known[name])
                yield from self._reference(at, name, value, known[name])

    def _value(self, place: Place, value: ValueSource, shape: FieldShape) -> Iterator[Problem]:
        yield from self.conversions.problems(place, value, shape)
        name, number = conversion_name(value, shape), len(value.source)
        if number == 1:
            return
        if name not in IN_COLUMNS:
            text = f"as: {name} reads one column, and here are {number}; as: joined text takes more"
            yield self.document.problem((*place, "source"), text)
        elif name in ("local time", "utc time") and number != 2:
            text = f"a time stands in one column or in two, a day and a time, not in {number}"
            yield self.document.problem((*place, "source"), text)
        elif name in ("local time", "utc time") and " " not in (value.pattern or PATTERN):
            text = "pattern of a time in two columns needs a blank between day and time"
            yield self.document.problem((*place, "pattern"), text)

    def _reference(
        self, place: Place, name: str, value: ValueSource, shape: FieldShape
    ) -> Iterator[Problem]:
        """Ids of a resource with a key of several columns need just as many."""
        target = value.of or shape.refers
        to = self.mapping.resources.get(target or "")
        if to is not None and len(value.source) != len(to.key.source):
            text = f"{name} must have as many columns as the key of {target}"
            yield self.document.problem(place, text)

    # lists and pages of JSON

    def _listing(
        self, place: Place, name: str, resource: ResourceMap, call: ListCall
    ) -> Iterator[Problem]:
        shapes = self.shapes[name]
        yield from self._call(place, call, shapes, ())
        yield from self._page((*place, "page"), call.page)
        if call.key is not None:
            yield from self._key((*place, "key"), call.key, name)
        if call.details and resource.one is None:
            yield self._at_key((*place, "details"), "details are read with one, which is missing")
        for field, by in call.filters.items():
            yield from self._filter((*place, "filters", field), field, by, shapes, resource)
        for number, field in enumerate(call.sift):
            yield from self._filled((*place, "sift", number), field, resource)

    def _filter(
        self,
        place: Place,
        field: str,
        by: FilterParameter,
        shapes: Mapping[str, FieldShape],
        resource: ResourceMap,
    ) -> Iterator[Problem]:
        if field == SEARCH:
            if by.fields is None:
                yield self._at_key(place, "search needs fields: in which it looks for the words")
            for number, each in enumerate(by.fields or ()):
                yield from self._filled((*place, "fields", number), each, resource)
            return
        if by.fields is not None:
            yield self._at_key((*place, "fields"), "fields goes with search alone")
        yield from self._filled(place, field, resource)
        if by.model_fields_set - {"query", "form", "fields"} and field in shapes:
            yield from self.conversions.problems(place, by, shapes[field])

    def _filled(self, place: Place, field: str, resource: ResourceMap) -> Iterator[Problem]:
        if field not in resource.fields:
            near = did_you_mean(field, resource.fields)
            yield self._at_key(place, f"{field} is no field that this mapping fills{near}")

    def _page(self, place: Place, page: Paging | None) -> Iterator[Problem]:
        if page is None:
            return
        needs, may = _PAGING[page.by]
        for name in needs:
            if getattr(page, name) is None:
                yield self._at_key(place, f"{name} is missing: by: {page.by} needs it")
        if page.by == "link" and (page.next is None) != page.header:
            yield self._at_key(place, "by: link needs either next, a path, or header: true")
        for name in sorted(page.model_fields_set - {"by", "most", *needs, *may}):
            yield self._at_key((*place, name), f"{name} does not go with by: {page.by}")

    # diary

    def _diary(self, diary: DiaryMap) -> Iterator[Problem]:
        place: Place = ("diary",)
        for number, hours in enumerate(diary.hours):
            if hours.is_rows or hours.days is None:
                yield from self._rows((*place, "hours", number), hours)
                yield from self._when((*place, "hours", number), hours)
        for name in ("busy", "slots"):
            for number, times in enumerate(getattr(diary, name)):
                yield from self._times((*place, name, number), times)
        for number, each in enumerate(diary.durations):
            yield from self._rows((*place, "durations", number), each)
            yield from self._compared((*place, "durations", number, "type"), each.type, "type")
        yield from self._slots(diary)
        yield from self._busy(diary)
        yield from self._schedules(diary)

    def _rows(self, place: Place, rows: RowSource) -> Iterator[Problem]:
        """Rows of the diary, and whose they are."""
        if self.of_sql:
            yield from self._has(place, rows, "from", "work_hours h")
        elif rows.get is None:
            yield self._at_key(place, "get is missing, such as get: /vets/{vet}/hours")
        else:
            yield from self._call(place, rows, self._given(str(place[1])), ())
            yield from self._page((*place, "page"), rows.page)
            if rows.page is not None and rows.page.by == "link":
                yield self._at_key((*place, "page"), "by: link is not possible here")
        if isinstance(rows, Owned):
            yield from self._whose(place, rows)

    def _given(self, kind: str) -> dict[str, FieldShape]:
        """What a call of the diary is given: no schedule where there are none."""
        names = {
            "hours": ("vet", "schedule"), "schedules": ("vet",),
            "durations": ("vet", "schedule", "type"),
        }.get(kind, tuple(GIVEN))  # fmt: skip
        has = self.mapping.diary.schedules is not None
        return {name: GIVEN[name] for name in names if has or name != "schedule"}

    def _whose(self, place: Place, rows: Owned) -> Iterator[Problem]:
        for name in ("vet", "schedule"):
            if (owner := getattr(rows, name)) is not None:
                yield from self._compared((*place, name), owner, name)
        if self.of_sql or rows.get is None or place[1] == "durations":
            return
        named = {"vet"} if place[1] == "schedules" else {"vet", "schedule"}
        if rows.owner is None and not named & set(rows.names):
            text = "vet is missing: it must be known whose a row is, as a parameter may be ignored"
            yield self._at_key(place, text)

    def _compared(self, place: Place, value: ValueSource, name: str) -> Iterator[Problem]:
        """A value that rows are chosen by: a database compares it as it is kept."""
        if not self.of_sql:
            yield from self.conversions.problems(place, value, GIVEN.get(name, TEXT))
        elif given := [each for each in _CONVERSION if getattr(value, each) is not None]:
            text = f"{name} is compared as the database keeps it; leave {_shown(given[0])} out"
            yield self.document.problem(place, text)
        elif name not in ("type", "key") and len(value.source) > 1:
            yield self.document.problem(place, f"{name} must be one column")

    def _when(self, place: Place, hours: HoursMap) -> Iterator[Problem]:
        for name in ("weekday", "day"):
            if (value := getattr(hours, name)) is not None:
                yield from self._value((*place, name), value, TEXT)
                if len(value.source) > 1:
                    yield self.document.problem((*place, name), f"{name} must be one column")

    def _times(self, place: Place, times: TimesMap) -> Iterator[Problem]:
        yield from self._rows(place, times)
        for name in ("start", "end"):
            value: ValueSource | None = getattr(times, name)
            if value is None:
                continue
            at = (*place, name)
            yield from self._value(at, value, TIME)
            if value.plus is not None:
                yield self.document.problem((*at, "plus"), "write it as minutes, beside start")
            elif self.of_sql and not sorts(value.pattern or PATTERN):
                text = "what blocks is looked for by its times: pattern must sort as they do"
                yield self.document.problem((*at, "pattern"), text)
        if times.key is not None and not self.of_sql and place[1] == "busy":
            yield from self._key((*place, "key"), times.key, "appointments")
        elif times.key is not None:
            yield from self._compared((*place, "key"), times.key, "key")

    def _slots(self, diary: DiaryMap) -> Iterator[Problem]:
        for number, slots in enumerate(diary.slots):
            place: Place = ("diary", "slots", number)
            if slots.owner is None and self.of_sql:
                yield self.document.problem(place, "slots: needs vet or schedule: whose slot it is")
            if slots.end is None and slots.minutes is None and self.of_sql:
                yield self.document.problem(place, "slots: needs end or minutes")
            if slots.key is None and self._books_rows():
                text = "key is missing: a step `for: slot` books a row by its key"
                yield self._at_key(place, text)

    def _books_rows(self) -> bool:
        return any(step.for_ == "slot" for step in self.mapping.booking.steps)

    def _busy(self, diary: DiaryMap) -> Iterator[Problem]:
        if not diary.busy:
            if self.of_sql:
                text = "busy is missing: nothing says what blocks, so a booking cannot be checked"
                yield self._at_key(("diary",), text)
            return
        if not any(busy.key for busy in diary.busy):
            text = "no source here has a key: name that of the appointment in the one that holds"
            text += " the bookings, so that a booking is told from what the desk writes"
            yield self._at_key(("diary", "busy"), text)
        if diary.schedules is not None and not any(_blocks_a_vet(busy) for busy in diary.busy):
            text = "no source with a key has a vet here: in two schedules one vet would be booked"
            text += " for one time; give what blocks a vet, whatever the schedule, as a source too"
            yield self._at_key(("diary", "busy"), text)

    def _schedules(self, diary: DiaryMap) -> Iterator[Problem]:
        if diary.schedules is not None:
            at: Place = ("diary", "schedules")
            yield from self._rows(at, diary.schedules)
            yield from self._compared((*at, "key"), diary.schedules.key, "key")
            if self.of_sql:
                yield from self._has(at, diary.schedules, "vet", "s.vet_id")
            return
        named: list[tuple[Place, Any]] = [
            (("diary", kind, number), part.schedule)
            for kind in ("hours", "busy", "slots", "durations")
            for number, part in enumerate(getattr(diary, kind))
        ]
        named += [(("diary", "hours", n), each.schedules) for n, each in enumerate(diary.hours)]
        for place, schedule in named:
            if schedule is not None:
                text = "a schedule needs diary.schedules, which says whose it is"
                yield self.document.problem((*place, "schedule"), text)

    # booking

    def _booking(self) -> Iterator[Problem]:
        # what a step that is only for some bookings makes is there for no others
        made: dict[str | None, list[str]] = {None: [], "slot": [], "time": []}
        for number, step in enumerate(self.mapping.booking.steps):
            known = self._made_for(step.for_, made)
            yield from self._step(("booking", "steps", number), step, known)
            made[step.for_] += [step.name] if step.name is not None else [*step.keep]
        yield from self._appointment([*made[None], *made["slot"], *made["time"]])
        yield from self._marks()
        if self.of_sql:
            return
        booking = self.mapping.booking
        if booking.find is None:
            text = "find is missing: the call that looks up what became of a booking"
            yield self._at_key(("booking",), text)
        elif booking.find.get is None:
            yield self._at_key(("booking", "find"), "get is missing: what reads is a get")
        else:
            yield from self._call(("booking", "find"), booking.find, DRAFT_FIELDS, ())
            yield from self._page(("booking", "find", "page"), booking.find.page)
            if booking.find.where is not None:
                text = "where does not go here: what find gives is compared with the booking"
                yield self._at_key(("booking", "find", "where"), text)
        if booking.cancel is not None:
            known = self._made_for(None, made)
            yield from self._call(("booking", "cancel"), booking.cancel, DRAFT_FIELDS, known)

    def _made_for(self, which: str | None, made: Mapping[str | None, list[str]]) -> list[str]:
        """What has been made in every booking of a slot row, or of another time, or of both."""
        slots = self.mapping.diary.slots
        happens = {
            "slot": any(each.key is not None for each in slots),
            "time": bool(self.mapping.diary.hours) or any(each.key is None for each in slots),
        }
        kinds = [which] if which is not None else [kind for kind in happens if happens[kind]]
        shared = set(made[kinds[0]]).intersection(*(made[kind] for kind in kinds)) if kinds else ()
        return [*made[None], *shared]

    def _step(self, place: Place, step: StepMap, made: list[str]) -> Iterator[Problem]:
        if step.method:
            yield from self._call(place, step, DRAFT, made)
        for column, value in step.values.items():
            yield from self._sent((*place, "values", column), value, DRAFT, made)
        yield from self._named((*place, "where"), step.where or "", made)
        if step.if_ is not None and step.if_ not in DRAFT:
            text = f"a draft has no {step.if_}{did_you_mean(step.if_, DRAFT)}"
            yield self.document.problem((*place, "if"), text)
        elif step.if_ is not None and (step.name is not None or step.keep):
            name = "name" if step.name is not None else "keep"
            text = "a step with `if` may not happen, so it has no name for others"
            yield self._at_key((*place, name), text)
        if step.for_ == "slot" and not self.mapping.diary.slots:
            text = "there are no slot rows: diary.slots says where they are"
            yield self.document.problem((*place, "for"), text)
        if step.table in self.mapping.booking.without_transactions:
            yield from self._never_undone(place, step)

    def _never_undone(self, place: Place, step: StepMap) -> Iterator[Problem]:
        """What could not be taken back, and nothing else, without a transaction."""
        if step.insert is not None and not step.keys:
            text = f"{step.table} has no transactions: say its key, by which a row that has to be"
            yield self.document.problem((*place, "insert"), f"{text} taken back is deleted")
        elif step.update is not None:
            text = f"{step.table} has no transactions: what an update changes there cannot be"
            yield self.document.problem((*place, "update"), f"{text} taken back")

    def _appointment(self, made: Sequence[str]) -> Iterator[Problem]:
        """What makes the appointment, for slot rows and for all other times."""
        booking, diary = self.mapping.booking, self.mapping.diary
        name, place = booking.appointment, ("booking", "appointment")
        steps = booking.steps
        if not self.of_sql:
            if all(step.get is not None for step in steps):
                text = "a get is a read, which may be sent twice: what books must be another method"
                yield self._at_key(("booking", "steps"), text)
            makers = [step for step in steps if name in step.keep]
            if not makers:
                text = f"{name} is nothing that a call keeps{did_you_mean(name, made)}"
                yield self.document.problem(place, text)
                return
        else:
            makers = [step for step in steps if step.name == name and step.names_a_row]
            if not makers:
                text = f"{name} is not the name of an insert with a key"
                yield self.document.problem(place, text)
                return
        for which, sources in (("slot", diary.slots), ("time", diary.hours)):
            keyed = which == "time" or any(each.key for each in diary.slots)
            if sources and keyed and not any(each.for_ in (None, which) for each in makers):
                yield self.document.problem(place, f"no step for: {which} makes the {name}")

    def _marks(self) -> Iterator[Problem]:
        """Whether the reference is both written and read."""
        booking = self.mapping.booking
        is_written = any(
            value.draft == "reference" for step in booking.steps for value in values_of(step)
        )
        if is_written and booking.reference is None and self.of_sql:
            text = "reference is missing: say where the reference that is written can be read"
            yield self._at_key(("booking",), text)
        if booking.reference is not None and not is_written:
            text = "no step has {draft: reference}, so there is nothing to be read here"
            yield self.document.problem(("booking", "reference"), text)

    def _needed(self) -> Iterator[Problem]:
        """What must be there so that a booking can be checked, and found again."""
        for resource, names in needed(self.adapter).items():
            found = self.mapping.resources.get(resource)
            created = resource == "appointments" and self.mapping.booking.reference is None
            for name in (*names, "createdAt") if created else names:
                if found is not None and name not in found.fields:
                    text = f"{name} is missing: no booking can be made without it"
                    if name == "createdAt":
                        text += ", unless booking.reference says where a booking's reference is"
                    yield self._at_key(("resources", resource, "fields"), text)

    # values that are sent

    def _call(
        self, place: Place, call: CallMap, shapes: Mapping[str, FieldShape], made: Iterable[str]
    ) -> Iterator[Problem]:
        """`shapes` are those of the names it may be filled with, `made` what earlier calls keep."""
        known = [*shapes, *made]
        for name in BRACED(call.path):
            if name not in known:
                text = f"nothing here is called {name}{did_you_mean(name, known)}"
                yield self.document.problem((*place, call.method), text)
        for name, tree in call.query.items():
            yield from self._tree((*place, "query", name), tree, shapes, made)
        body: Tree | None = getattr(call, "body", None)
        if body is not None:
            yield from self._tree((*place, "body"), body, shapes, made)

    def _tree(
        self, place: Place, tree: Tree, shapes: Mapping[str, FieldShape], made: Iterable[str]
    ) -> Iterator[Problem]:
        """The same of JSON with values in it."""
        root: object = tree.root
        if isinstance(root, SentValue):
            yield from self._sent(place, root, shapes, made)
        elif isinstance(root, dict | list):
            for name, each in root.items() if isinstance(root, dict) else enumerate(root):
                yield from self._tree((*place, name), each, shapes, made)

    def _sent(
        self,
        place: Place,
        value: SentValue,
        shapes: Mapping[str, FieldShape],
        made: Iterable[str],
    ) -> Iterator[Problem]:
        known_steps = list(made)
        if value.secret is not None:
            yield from self._secret((*place, "secret"), value.secret)
        if value.made is not None and value.made not in known_steps:
            near = did_you_mean(value.made, known_steps)
            kept = "is called" if self.of_sql else "keeps"
            step = "step" if self.of_sql else "call"
            text = f"no {step} before this one {kept} {value.made}{near}"
            yield self.document.problem((*place, "made"), text)
        yield from self._named((*place, "sql"), value.sql or "", known_steps)
        is_drafted = shapes is DRAFT or shapes is DRAFT_FIELDS
        for origin in ("draft", "given"):
            name = getattr(value, origin)
            if name is None:
                continue
            if name not in shapes or (origin == "draft") != is_drafted:
                what = "a draft has no" if is_drafted else "nothing here is called"
                text = f"{what} {name}{did_you_mean(name, shapes)}"
                yield self.document.problem((*place, origin), text)
            elif name in DRAFT_KEYS and is_drafted:
                yield from self._as_it_is(place, name, value)
            else:
                # what is only sent may leave the time of a day out
                yield from self.conversions.problems(place, value, shapes[name], whole=False)

    def _as_it_is(self, place: Place, name: str, value: SentValue) -> Iterator[Problem]:
        if extra := [each for each in _CONVERSION if getattr(value, each) is not None]:
            text = f"{name} is written as the practice system has it;"
            text += f" {_shown(extra[0])} does not go here"
            yield self.document.problem((*place, "draft"), text)

    def _named(self, place: Place, sql: str, made: Iterable[str]) -> Iterator[Problem]:
        known = [*made, *DRAFT]
        for name in NAMED(sql):
            if name not in known:
                near = did_you_mean(name, known)
                text = f"no step before this one is called {name}{near}; write \\: for a colon"
                yield self.document.problem(place, text)

    def _secret(self, place: Place, name: str) -> Iterator[Problem]:
        """Whether the settings give it."""
        if name not in self.secrets:
            text = f"backend.{name} is not set, which this needs: write it into gateway.yaml"
            yield self.document.problem(place, f"{text} or GATEWAY_BACKEND_{name.upper()}")


def _blocks_a_vet(busy: BusyMap) -> bool:
    named = busy.vet is not None or (busy.get is not None and "vet" in busy.names)
    return busy.key is not None and named


def _shown(name: str) -> str:
    return name.rstrip("_")


def _no_list(resource: str, name: str, shapes: Iterable[str]) -> str:
    """What to say of a list that a resource has not: which it has."""
    lists = dict.fromkeys(path.partition("[].")[0] for path in shapes if "[]." in path)
    if not lists:
        return f"{resource} has no list {name}, nor any other: leave lists out"
    near = did_you_mean(name, lists)
    return f"{resource} has no list {name}{near}: write lists: with {' or '.join(lists)} in it"


def parts(part: Strict, place: Place = ()) -> Iterator[tuple[Place, Strict]]:
    """Yields a part of a mapping and all parts in it, each with its place."""
    yield place, part
    for name, info in type(part).model_fields.items():
        yield from _inside(getattr(part, name), (*place, info.alias or name))


def _inside(value: Any, place: Place) -> Iterator[tuple[Place, Strict]]:
    if isinstance(value, Strict):
        yield from parts(value, place)
    elif isinstance(value, Tree):
        yield from _inside(value.root, place)
    elif isinstance(value, dict | list | tuple):
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _inside(each, (*place, name))


def values_of(part: Strict) -> Iterator[SentValue]:
    """Yields every value that a part writes or sends."""
    return (each for _, each in parts(part) if isinstance(each, SentValue))
