"""Checks a mapping as a whole: every problem at once, each at its line, with what to write instead.

The models see the shape of each part. What they cannot see is checked here: what goes with which
kind of practice system, and the names of resources, fields, converters, drafts and steps.
"""

from collections.abc import Iterator, Mapping, Sequence
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
    NAMED,
    CallMap,
    Expressions,
    FilterParameter,
    HoursMap,
    ListCall,
    ListMap,
    MappingFile,
    Owned,
    Paging,
    ResourceMap,
    SentValue,
    SlotsMap,
    StepMap,
    TimesMap,
    Tree,
    ValueSource,
)
from adapters.mapping.paths import path_problem
from adapters.values.wall_clock import PATTERN, sorts

# What a booking cannot do without: to know whose animal it is, and to know itself again.
_NEEDED = {"patients": ("clientId",), "appointments": ("vetId", "patientId", "scheduledAt")}
NEEDED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "sql": _NEEDED,
    # a booking is withdrawn by a call: its status says whether it is
    "rest": {**_NEEDED, "appointments": (*_NEEDED["appointments"], "status")},
}
_TABLE, _CALL = {"from": "absences a"}, {"get": "/vets/{vet}/absences"}
# What a part cannot do without beside what its model says, by adapter, with an example of each.
REQUIRED: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "sql": {
        "ResourceMap": {"from": "patients p"},
        "ListMap": {"from": "invoice_lines l", "parent": "l.invoice_id", "key": "l.id"},
        **dict.fromkeys(("BusyMap", "SlotsMap", "DurationsMap"), _TABLE),
        "SchedulesMap": {"from": "schedules s", "vet": "s.vet_id"},
    },
    "rest": {
        "ListMap": {"items": "lines"},
        **dict.fromkeys(("BusyMap", "SlotsMap", "DurationsMap", "SchedulesMap"), _CALL),
        "BookingMap": {"find": "{get: /visits, items: visits}"},
        "RowSource": {"get": "/visits"},
    },
}
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
# Those that not all of it is given, by the part of the diary that asks.
_GIVEN_TO = {
    "hours": ("vet", "schedule"),
    "schedules": ("vet",),
    "durations": ("vet", "schedule", "type"),
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


class Checker(ConversionChecker):
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
        super().__init__(document, shapes)
        self.mapping, self.adapter, self.secrets = mapping, adapter, secrets
        self.of_sql = adapter == "sql"
        # what the steps of a booking make: of every one, of a slot row, and of another time
        self._made: dict[str | None, list[str]] = {None: [], "slot": [], "time": []}

    def problems(self) -> list[Problem]:
        """All that is wrong; where parts are of the other kind of mapping, nothing else."""
        every = list(parts(self.mapping))
        for place, part in every:
            self._strangers(place, part)
        if self.found:
            return self.found
        for place, part in every:
            for name, example in REQUIRED[self.adapter].get(type(part).__name__, {}).items():
                if getattr(part, "from_" if name == "from" else name) is None:
                    self.say(place, f"{name} is missing, such as {name}: {example}")
        self._backend()
        self._resources()
        self._diary()
        self._booking()
        return self.found

    def _strangers(self, place: Place, part: Strict) -> None:
        """Names of the part that go with the other adapter, and paths that are none."""
        foreign, other = (part.rest_only, "rest") if self.of_sql else (part.sql_only, "sql")
        for name in part.model_fields_set:
            info = type(part).model_fields[name]
            at = (*place, shown := info.alias or name)
            if shown in foreign:
                self.say(at, f"{shown} stands only in a mapping of the {other} adapter")
            elif not self.of_sql and any(isinstance(e, Expressions) for e in info.metadata):
                written = getattr(part, name) or ()
                paths = (written,) if isinstance(written, str) else written
                if len(paths) > 1:
                    self.say(at, "a value of JSON has one path")
                elif paths and (problem := path_problem(paths[0])):
                    self.say(at, f"{shown}: {problem}")

    def _backend(self) -> None:
        backend = self.mapping.backend
        for name, tree in backend.headers.items():
            self._tree(("backend", "headers", name), tree, {})
        for number, secret in enumerate(backend.basic or ()):
            self._secret(("backend", "basic", number), secret)
        if (login := backend.login) is not None:
            self._call(("backend", "login"), login, {})
            if login.seconds is None and login.lifetime is None:
                text = "say how long the token lives: seconds, a path, or lifetime, a number"
                self.say(("backend", "login"), text)

    # resources

    def _resources(self) -> None:
        wanted = [name for name in self.shapes if name != "slots"]
        for name, resource in self.mapping.resources.items():
            place = ("resources", name)
            if name in wanted:
                self._resource(place, name, resource)
            else:
                self.say(place, f"{name} is no resource{did_you_mean(name, wanted)}")
        for name in wanted:
            if name not in self.mapping.resources:
                kind = "its tables" if self.of_sql else "its calls"
                self.say(("resources",), f"{name} is missing: every resource needs {kind}")

    def _resource(self, place: Place, name: str, resource: ResourceMap) -> None:
        self._key((*place, "key"), resource.key, name)
        self._fields(place, name, "", resource.fields)
        for each, inner in resource.lists.items():
            self._list((*place, "lists", each), name, each, inner)
        if name == "vets" and len(resource.key.source) > 1:
            text = "a vet's key must be one column: the diary knows vets by it"
            self.say((*place, "key"), text)
        if not self.of_sql:
            self._calls(place, name, resource)
        needed = NEEDED[self.adapter].get(name, ())
        for field in needed:
            if field not in resource.fields:
                text = f"{field} is missing: no booking can be made without it"
                self.say((*place, "fields"), text)
        no_reference = name == "appointments" and self.mapping.booking.reference is None
        if no_reference and "createdAt" not in resource.fields:
            text = "createdAt is missing: no booking can be made without it, unless"
            text += " booking.reference says where a booking's reference is"
            self.say((*place, "fields"), text)

    def _calls(self, place: Place, name: str, resource: ResourceMap) -> None:
        if resource.one is not None:
            self._call((*place, "one"), resource.one, {"id": _id_of(name)})
        if resource.list_ is not None:
            self._listing((*place, "list"), name, resource, resource.list_)
        elif resource.one is None:
            self.say(place, f"{name}: takes one, list, or both: there must be a way to read it")
        elif name not in UNLISTED:
            text = f"list is missing, such as list: /{name}; {name} cannot be listed without it"
            self.say(place, text)

    def _list(self, place: Place, resource: str, name: str, inner: ListMap) -> None:
        """A list inside each record."""
        prefix, own = f"{name}[].", self.shapes[resource]
        lists = dict.fromkeys(path.partition("[].")[0] for path in own if "[]." in path)
        if name not in lists:
            text = f"{resource} has no list {name}"
            near, those = did_you_mean(name, lists), " or ".join(lists)
            more = f"{near}: write lists: with {those} in it"
            self.say(place, text + (more if lists else ", nor any other: leave lists out"))
            return
        key = self.mapping.resources[resource].key
        if inner.parent is not None and len(inner.parent) != len(key.source):
            text = f"parent must have as many columns as the key of {resource}"
            self.say((*place, "parent"), text)
        if inner.key is not None:
            self._key((*place, "key"), inner.key, resource)
        elif not self.of_sql and f"{prefix}id" in own:
            self.say(place, f"key is missing, such as key: id; each of {name} has one")
        self._fields(place, resource, prefix, inner.fields)

    def _key(self, place: Place, key: ValueSource, resource: str) -> None:
        if self.of_sql and key.as_ not in (None, "id", "native id", "hashed id"):
            text = f"as: {key.as_} is no way to make an id: use id, native id or hashed id"
            self.say((*place, "as"), text)
        elif len(key.source) > 1 and key.as_ in ("id", "native id"):
            self.say(place, f"key: a key of several columns is no {key.as_}; leave `as` out")
        else:
            self.conversion(place, key, _id_of(resource))

    def _fields(
        self, place: Place, resource: str, prefix: str, fields: Mapping[str, ValueSource]
    ) -> None:
        """The fields of a resource or (with its prefix) of a list inside one."""
        known = {
            path.removeprefix(prefix): shape
            for path, shape in self.shapes[resource].items()
            if path.startswith(prefix) and "[]" not in path.removeprefix(prefix)
        }
        for name, value in fields.items():
            at = (*place, "fields", name)
            if name == "id":
                self.say(at, "id is made of the key; leave it out here")
            elif name not in known:
                self.say(at, f"{name} is no field here{did_you_mean(name, known)}")
            else:
                self._value(at, value, known[name])
                target = value.of or known[name].refers
                to = self.mapping.resources.get(target or "")
                if to is not None and len(value.source) != len(to.key.source):
                    self.say(at, f"{name} must have as many columns as the key of {target}")

    def _value(self, place: Place, value: ValueSource, shape: FieldShape) -> None:
        """A value that is read, perhaps out of several columns."""
        self.conversion(place, value, shape)
        name, number = conversion_name(value, shape), len(value.source)
        if number == 1:
            return
        is_time = name in ("local time", "utc time")
        if name not in IN_COLUMNS:
            text = f"as: {name} reads one column, and here are {number}; as: joined text takes more"
            self.say((*place, "source"), text)
        elif is_time and number != 2:
            text = f"a time stands in one column or in two, a day and a time, not in {number}"
            self.say((*place, "source"), text)
        elif is_time and " " not in (value.pattern or PATTERN):
            text = "pattern of a time in two columns needs a blank between day and time"
            self.say((*place, "pattern"), text)

    # lists and pages of JSON

    def _listing(self, place: Place, name: str, resource: ResourceMap, call: ListCall) -> None:
        shapes = self.shapes[name]
        self._call(place, call, shapes)
        if call.key is not None:
            self._key((*place, "key"), call.key, name)
        if call.details and resource.one is None:
            self.say((*place, "details"), "details are read with one, which is missing")
        for field, by in call.filters.items():
            at = (*place, "filters", field)
            if field == SEARCH:
                self._search(at, by, resource)
                continue
            if by.fields is not None:
                self.say((*at, "fields"), "fields goes with search alone")
            self._filled(at, field, resource)
            if by.model_fields_set - {"query", "form", "fields"} and field in shapes:
                self.conversion(at, by, shapes[field])
        for number, field in enumerate(call.sift):
            self._filled((*place, "sift", number), field, resource)

    def _search(self, place: Place, by: FilterParameter, resource: ResourceMap) -> None:
        if by.fields is None:
            self.say(place, "search needs fields: in which it looks for the words")
        for number, each in enumerate(by.fields or ()):
            self._filled((*place, "fields", number), each, resource)

    def _filled(self, place: Place, field: str, resource: ResourceMap) -> None:
        if field not in resource.fields:
            near = did_you_mean(field, resource.fields)
            self.say(place, f"{field} is no field that this mapping fills{near}")

    def _page(self, place: Place, page: Paging) -> None:
        needs, may = _PAGING[page.by]
        for name in needs:
            if getattr(page, name) is None:
                self.say(place, f"{name} is missing: by: {page.by} needs it")
        if page.by == "link" and (page.next is None) != page.header:
            self.say(place, "by: link needs either next, a path, or header: true")
        for name in sorted(page.model_fields_set - {"by", "most", *needs, *may}):
            self.say((*place, name), f"{name} does not go with by: {page.by}")

    # diary

    def _sources(self, *kinds: str) -> Iterator[tuple[Place, Any]]:
        """The parts of the diary of these kinds, each with its place."""
        for kind in kinds:
            for number, part in enumerate(getattr(self.mapping.diary, kind)):
                yield ("diary", kind, number), part

    def _diary(self) -> None:
        for place, hours in self._sources("hours"):
            if hours.is_rows:
                self._hours(place, hours)
        for place, times in self._sources("busy", "slots"):
            self._times(place, times)
        for place, durations in self._sources("durations"):
            self._rows(place, durations)
            self._compared((*place, "type"), durations.type, "type")
        for place, slots in self._sources("slots"):
            self._slots(place, slots)
        self._busy()
        self._schedules()

    def _hours(self, place: Place, hours: HoursMap) -> None:
        self._rows(place, hours)
        for name in ("weekday", "day"):
            if (value := getattr(hours, name)) is not None:
                self._value((*place, name), value, TEXT)
                if len(value.source) > 1:
                    self.say((*place, name), f"{name} must be one column")

    def _slots(self, place: Place, slots: SlotsMap) -> None:
        if self.of_sql and slots.owner is None:
            self.say(place, "slots: needs vet or schedule: whose slot it is")
        if self.of_sql and slots.end is None and slots.minutes is None:
            self.say(place, "slots: needs end or minutes")
        if slots.key is None and any(step.for_ == "slot" for step in self.mapping.booking.steps):
            self.say(place, "key is missing: a step `for: slot` books a row by its key")

    def _rows(self, place: Place, rows: Owned) -> None:
        """Rows of the diary, and whose they are."""
        for name in ("vet", "schedule"):
            if (owner := getattr(rows, name)) is not None:
                self._compared((*place, name), owner, name)
        if rows.get is None:
            return
        kind, has_schedules = str(place[1]), self.mapping.diary.schedules is not None
        names = [name for name in _GIVEN_TO.get(kind, GIVEN) if has_schedules or name != "schedule"]
        self._call(place, rows, {name: GIVEN[name] for name in names})
        if rows.page is not None and rows.page.by == "link":
            self.say((*place, "page"), "by: link is not possible here")
        whose = {"vet"} if kind == "schedules" else {"vet", "schedule"}
        if kind != "durations" and rows.owner is None and whose.isdisjoint(rows.names):
            text = "vet is missing: it must be known whose a row is, as a parameter may be ignored"
            self.say(place, text)

    def _compared(self, place: Place, value: ValueSource, name: str) -> None:
        """A value that rows are chosen by: a database compares it as it is kept."""
        if not self.of_sql:
            self.conversion(place, value, GIVEN.get(name, TEXT))
        elif given := _converted(value):
            self.say(place, f"{name} is compared as the database keeps it; leave {given} out")
        elif name not in ("type", "key") and len(value.source) > 1:
            self.say(place, f"{name} must be one column")

    def _times(self, place: Place, times: TimesMap) -> None:
        self._rows(place, times)
        for name in ("start", "end"):
            value: ValueSource | None = getattr(times, name)
            if value is None:
                continue
            at = (*place, name)
            self._value(at, value, TIME)
            if value.plus is not None:
                self.say((*at, "plus"), "write it as minutes, beside start")
            elif self.of_sql and not sorts(value.pattern or PATTERN):
                text = "what blocks is looked for by its times: pattern must sort as they do"
                self.say((*at, "pattern"), text)
        if times.key is not None and not self.of_sql and place[1] == "busy":
            self._key((*place, "key"), times.key, "appointments")
        elif times.key is not None:
            self._compared((*place, "key"), times.key, "key")

    def _busy(self) -> None:
        busy, place = self.mapping.diary.busy, ("diary", "busy")
        if not busy:
            if self.of_sql:
                text = "busy is missing: nothing says what blocks, so a booking cannot be checked"
                self.say(("diary",), text)
            return
        keyed = [each for each in busy if each.key is not None]
        if not keyed:
            text = "no source here has a key: name that of the appointment in the one that holds"
            text += " the bookings, so that a booking is told from what the desk writes"
            self.say(place, text)
        of_vets = [each for each in keyed if each.vet or (each.get and "vet" in each.names)]
        if self.mapping.diary.schedules is not None and not of_vets:
            text = "no source with a key has a vet here: in two schedules one vet would be booked"
            text += " for one time; give what blocks a vet, whatever the schedule, as a source too"
            self.say(place, text)

    def _schedules(self) -> None:
        at: Place = ("diary", "schedules")
        if (schedules := self.mapping.diary.schedules) is not None:
            self._rows(at, schedules)
            self._compared((*at, "key"), schedules.key, "key")
            return
        for place, part in self._sources("hours", "busy", "slots", "durations"):
            if part.schedule is not None or getattr(part, "schedules", None) is not None:
                text = "a schedule needs diary.schedules, which says whose it is"
                self.say((*place, "schedule"), text)

    # booking

    def _booking(self) -> None:
        booking, place = self.mapping.booking, ("booking",)
        for number, step in enumerate(booking.steps):
            self._step((*place, "steps", number), step)
            # what a step that is only for some bookings makes is there for no others
            self._made[step.for_] += [step.name] if step.name is not None else [*step.keep]
        self._appointment()
        self._marks()
        if booking.find is not None and booking.find.get is not None:
            self._call((*place, "find"), booking.find, DRAFT_FIELDS)
            if booking.find.where is not None:
                text = "where does not go here: what find gives is compared with the booking"
                self.say((*place, "find", "where"), text)
        if booking.cancel is not None:
            self._call((*place, "cancel"), booking.cancel, DRAFT_FIELDS, self._made_for(None))

    def _made_for(self, which: str | None) -> list[str]:
        """What has been made in every booking of a slot row, or of another time, or of both."""
        slots = self.mapping.diary.slots
        happens = {
            "slot": any(each.key is not None for each in slots),
            "time": bool(self.mapping.diary.hours) or any(each.key is None for each in slots),
        }
        kinds = [which] if which is not None else [kind for kind in happens if happens[kind]]
        shared = [set(self._made[kind]) for kind in kinds]
        return [*self._made[None], *(set.intersection(*shared) if shared else ())]

    def _step(self, place: Place, step: StepMap) -> None:
        made = self._made_for(step.for_)
        if step.method:
            self._call(place, step, DRAFT, made)
        for column, value in step.values.items():
            self._sent((*place, "values", column), value, DRAFT, made)
        self._named((*place, "where"), step.where or "", made)
        if step.if_ is not None:
            self._condition(place, step, step.if_)
        if step.for_ == "slot" and not self.mapping.diary.slots:
            text = "there are no slot rows: diary.slots says where they are"
            self.say((*place, "for"), text)
        if step.table not in self.mapping.booking.without_transactions:
            return
        if step.insert is not None and not step.keys:
            text = f"{step.table} has no transactions: say its key, by which a row that has to be"
            self.say((*place, "insert"), f"{text} taken back is deleted")
        elif step.update is not None:
            text = f"{step.table} has no transactions: what an update changes there cannot be"
            self.say((*place, "update"), f"{text} taken back")

    def _condition(self, place: Place, step: StepMap, name: str) -> None:
        if name not in DRAFT:
            self.say((*place, "if"), f"a draft has no {name}{did_you_mean(name, DRAFT)}")
        elif step.name is not None or step.keep:
            text = "a step with `if` may not happen, so it has no name for others"
            self.say((*place, "name" if step.name is not None else "keep"), text)

    def _appointment(self) -> None:
        """What makes the appointment, for slot rows and for all other times."""
        booking, diary = self.mapping.booking, self.mapping.diary
        name, place = booking.appointment, ("booking", "appointment")
        if self.of_sql:
            makers = [step for step in booking.steps if step.name == name and step.names_a_row]
            text = f"{name} is not the name of an insert with a key"
        else:
            makers = [step for step in booking.steps if name in step.keep]
            near = did_you_mean(name, [made for kind in self._made.values() for made in kind])
            text = f"{name} is nothing that a call keeps{near}"
            if all(step.get is not None for step in booking.steps):
                only = "a get is a read, which may be sent twice: what books must be another method"
                self.say(("booking", "steps"), only)
        if not makers:
            self.say(place, text)
            return
        for which, sources in (("slot", diary.slots), ("time", diary.hours)):
            keyed = which == "time" or any(each.key for each in diary.slots)
            if sources and keyed and not any(each.for_ in (None, which) for each in makers):
                self.say(place, f"no step for: {which} makes the {name}")

    def _marks(self) -> None:
        """Whether the reference is both written and read."""
        booking = self.mapping.booking
        values = [part for step in booking.steps for _, part in parts(step)]
        written = any(getattr(value, "draft", None) == "reference" for value in values)
        if written and booking.reference is None and self.of_sql:
            text = "reference is missing: say where the reference that is written can be read"
            self.say(("booking",), text)
        if booking.reference is not None and not written:
            text = "no step has {draft: reference}, so there is nothing to be read here"
            self.say(("booking", "reference"), text)

    # values that are sent

    def _call(
        self,
        place: Place,
        call: CallMap,
        shapes: Mapping[str, FieldShape],
        made: Sequence[str] = (),
    ) -> None:
        """`shapes` are those of the names it may be filled with, `made` what earlier calls keep."""
        known = [*shapes, *made]
        for name in call.names:
            if name not in known:
                text = f"nothing here is called {name}{did_you_mean(name, known)}"
                self.say((*place, call.method), text)
        for name, tree in call.query.items():
            self._tree((*place, "query", name), tree, shapes, made)
        if (body := getattr(call, "body", None)) is not None:
            self._tree((*place, "body"), body, shapes, made)
        if (page := getattr(call, "page", None)) is not None:
            self._page((*place, "page"), page)

    def _tree(
        self,
        place: Place,
        tree: Tree,
        shapes: Mapping[str, FieldShape],
        made: Sequence[str] = (),
    ) -> None:
        """The same of JSON with values in it."""
        for at, value in _inside(tree, place):
            if isinstance(value, SentValue):
                self._sent(at, value, shapes, made)

    def _sent(
        self, place: Place, value: SentValue, shapes: Mapping[str, FieldShape], made: Sequence[str]
    ) -> None:
        if value.secret is not None:
            self._secret((*place, "secret"), value.secret)
        if value.made is not None and value.made not in made:
            who = "step before this one is called" if self.of_sql else "call before this one keeps"
            self.say((*place, "made"), f"no {who} {value.made}{did_you_mean(value.made, made)}")
        self._named((*place, "sql"), value.sql or "", made)
        is_drafted = shapes is DRAFT or shapes is DRAFT_FIELDS
        for origin in ("draft", "given"):
            name = getattr(value, origin)
            if name is None:
                continue
            if name not in shapes or (origin == "draft") != is_drafted:
                what = "a draft has no" if is_drafted else "nothing here is called"
                self.say((*place, origin), f"{what} {name}{did_you_mean(name, shapes)}")
            elif name not in DRAFT_KEYS or not is_drafted:
                # what is only sent may leave the time of a day out
                self.conversion(place, value, shapes[name], whole=False)
            elif given := _converted(value):
                text = f"{name} is written as the practice system has it; {given} does not go here"
                self.say((*place, origin), text)

    def _named(self, place: Place, sql: str, made: Sequence[str]) -> None:
        known = [*made, *DRAFT]
        for name in NAMED(sql):
            if name not in known:
                near = did_you_mean(name, known)
                text = f"no step before this one is called {name}{near}; write \\: for a colon"
                self.say(place, text)

    def _secret(self, place: Place, name: str) -> None:
        """Whether the settings give it."""
        if name not in self.secrets:
            text = f"backend.{name} is not set, which this needs: write it into gateway.yaml"
            self.say(place, f"{text} or GATEWAY_BACKEND_{name.upper()}")


def _id_of(resource: str) -> FieldShape:
    return FieldShape(format="uuid", refers=resource)


def _converted(value: Conversion) -> str:
    """The first name in it that says how it is written; "" for none."""
    given = (name for name in Conversion.model_fields if getattr(value, name) is not None)
    return next(given, "").rstrip("_")


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
