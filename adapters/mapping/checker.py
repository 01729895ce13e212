"""Checks a mapping as a whole, and finds every problem at once, at its line and with a remedy.

The models check the shape of each part. Here is checked what they cannot see: what goes with which
kind of practice system, and the names of resources, fields, converters, drafts and steps.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

from adapters.base import FieldShape, Shapes, inside, lists_in
from adapters.documents.document import Document, Place
from adapters.documents.models import MODEL_CHECKS
from adapters.documents.problems import Problem, did_you_mean, read_checks
from adapters.ids.table import REFERS
from adapters.mapping import models
from adapters.mapping.conversion import DRAFT_FIELDS, DRAFT_KEYS, Conversion, Strict
from adapters.mapping.converters import IN_COLUMNS, conversion_faults, conversion_name
from adapters.mapping.expressions import CLOCK
from adapters.mapping.models import ValueSource
from adapters.mapping.paths import path_problem, plain_steps
from adapters.values.times import PATTERN, sorts

CHECKS = {**MODEL_CHECKS, **read_checks(__file__)}
# The resources that a part needs: free times are those of a vet, for a type of appointment, and a
# booking is an appointment of a client's animal.
_OF_DIARY = ("vets", "appointmentTypes")
_NEEDS = {"diary": _OF_DIARY, "booking": ("clients", "patients", *_OF_DIARY, "appointments")}
# The laws that real rows should obey, and that a mapping may switch off.
LAWS = read_checks(__file__, "laws.toml")
# The fields that a booking needs, to know whose an animal is and to recognize itself.
_NEEDED = {"patients": ("clientId",), "appointments": ("vetId", "patientId", "scheduledAt")}
NEEDED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "sql": _NEEDED,
    # a booking is withdrawn by a call, and its status says whether it was
    "rest": {**_NEEDED, "appointments": (*_NEEDED["appointments"], "status")},
}
# The checks that find something missing, and in which sections it may stand beside its own part.
_ABSENT_FROM: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("missing-part", "unfit-parts", "no-such-field", "bad-paging"), ()),
    **dict.fromkeys(("bad-diary", "bad-booking", "bad-step"), ("diary", "booking")),
    "unfilled": ("booking",),
}
_TABLE, _CALL = {"from": "absences a"}, {"get": "/vets/{vet}/absences"}
# The names that a part needs beside those that its model requires, by adapter, with examples.
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
# Resources that are read by id alone.
UNLISTED = frozenset({"appointments", "consultations"})
SEARCH = "search"
# The values that calls of the diary can be given.
GIVEN = {
    "vet": FieldShape(format="uuid", refers="vets"),
    "schedule": FieldShape(format="text"),
    "type": FieldShape(format="uuid", refers="appointmentTypes"),
    "day": FieldShape(format="date"),
    "from": FieldShape(format="date-time"),
    "until": FieldShape(format="date-time"),
    "minutes": FieldShape(format="integer"),
}
# The parts of the diary whose calls are given only some of these.
_GIVEN_TO = {
    "hours": ("vet", "schedule"),
    "schedules": ("vet",),
    "durations": ("vet", "schedule", "type"),
}
TEXT, TIME = FieldShape(format="text"), FieldShape(format="date-time")
# The values that a booking's steps can be given: a draft's, and the calendar and row of its slot.
DRAFT = {**DRAFT_FIELDS, **dict.fromkeys(DRAFT_KEYS, TEXT)}
_PAGING = {
    "offset": (("offset",), {"limit", "total"}),
    "page": (("page",), {"size", "first", "total"}),
    "cursor": (("cursor", "next"), {"limit", "size"}),
    "link": ((), {"next", "header", "limit", "size"}),
}


class Checker:
    """Checks one mapping for the adapter `sql` or `rest`; `secrets` names those in the settings."""

    def __init__(
        self,
        document: Document,
        mapping: models.MappingFile,
        shapes: Shapes,
        adapter: str,
        secrets: frozenset[str],
    ) -> None:
        self.document, self.shapes = document, shapes
        self.found: list[Problem] = []
        self.mapping, self.diary, self.booking = mapping, mapping.diary, mapping.booking
        self.adapter, self.of_sql, self.secrets = adapter, adapter == "sql", secrets
        # what the steps before each step have made, and in the end what all have made
        self._made_for: list[list[str]] = []
        made: dict[str | None, list[str]] = {None: [], "slot": [], "time": []}
        for step in mapping.booking.steps:
            self._made_for.append(self._certain(made, step.for_))
            # what a step for some bookings makes is not there for others
            is_plain = step.each is None
            kept = [n for n, value in step.keep.items() if is_plain and not value.optional]
            made[step.for_] += [step.name] if step.name is not None else kept
        self._made_for.append(self._certain(made, None))

    def say(self, place: Place, code: str, text: str) -> None:
        """Notes a problem at the name that it is about, unless what was not read may solve it."""
        if self.document.partial and self._may_be_unread(place, code):
            return
        self.found.append(self.document.problem(place, text, code, at_key=True))

    def _may_be_unread(self, place: Place, code: str) -> bool:
        """Returns whether what the problem lacks may stand in what was left out of the file."""
        sections = _ABSENT_FROM.get(code)
        in_contract = code == "no-such-field" and place[2:3] != ("list",)
        if sections is None or in_contract or place[-1:] in (("draft",), ("given",)):
            return False
        wholes: list[Place] = [*((section,) for section in sections), place[:2]]
        return any(
            partial[: len(whole)] == whole or whole[: len(partial)] == partial
            for partial in self.document.partial
            for whole in wholes
        )

    def is_known(
        self, place: Place, code: str, name: Any, known: Collection[str], text: str, more: str = ""
    ) -> bool:
        """Returns whether the name is known; else notes `text` with the nearest known name."""
        if name not in known:
            self.say(place, code, f"{text}{did_you_mean(str(name), known)}{more}")
        return name in known

    def conversion(
        self, place: Place, value: Conversion, shape: FieldShape, *, whole: bool = True
    ) -> None:
        for at, code, text in conversion_faults(value, shape, self.shapes, whole=whole):
            self.say((*place, *at), code, text)

    def _certain(self, made: Mapping[str | None, list[str]], which: str | None) -> list[str]:
        """Returns what every booking of a slot row, of another time, or (None) of both makes."""
        keyed = {slots.key is not None for slots in self.diary.slots}
        happens = {"slot": True in keyed, "time": bool(self.diary.hours) or False in keyed}
        kinds = [which] if which is not None else [kind for kind in happens if happens[kind]]
        shared = [set(made[kind]) for kind in kinds]
        return [*made[None], *(set.intersection(*shared) if shared else ())]

    def problems(self) -> list[Problem]:
        """Returns all problems; where parts belong to the other adapter, these alone."""
        left_out = [(part,) for part in _NEEDS if part not in self.mapping.model_fields_set]
        every = [(place, part) for place, part in parts(self.mapping) if place[:1] not in left_out]
        for place, part in every:
            self._strangers(place, part)
        if any(each.code == "wrong-adapter" for each in self.found):
            return self.found
        checks: Mapping[type, Callable[[Place, Any], None]] = {
            Strict: self._required,
            models.CallMap: self._call,
            models.Paging: self._page,
            models.SentValue: self._sent,
            models.TreePart: self._part,
            models.BackendMap: self._backend,
            models.MappingFile: self._whole,
            models.ResourceMap: self._resource,
            models.ListCall: self._listing,
            models.FilterParameter: self._filter,
            models.JoinMap: self._join,
            models.ListMap: self._list,
            models.Owned: self._owned,
            models.HoursMap: self._hours,
            models.TimesMap: self._times,
            models.DiaryMap: self._blocks,
            models.StepMap: self._step,
            models.BookingMap: self._booking,
        }
        for place, part in every:
            if place[:1] != ("resources",) or place[1] in self._wanted:
                for kind in reversed(type(part).__mro__):
                    if kind in checks:
                        checks[kind](place, part)
        return self.found

    def _strangers(self, place: Place, part: Strict) -> None:
        """Notes names in the part that go with the other adapter, and paths that are invalid."""
        other = "rest" if self.of_sql else "sql"
        foreign = part.only_with(other)
        for name in part.model_fields_set:
            info = type(part).model_fields[name]
            at = (*place, shown := info.alias or name)
            if shown in foreign:
                text = f"{shown} stands only in a mapping of the {other} adapter"
                self.say(at, "wrong-adapter", text)
            elif not self.of_sql and models.is_expression(info):
                written = getattr(part, name) or ()
                paths = (written,) if isinstance(written, str) else written
                if len(paths) > 1:
                    self.say(at, "bad-path", "a value of JSON has one path")
                elif paths and (problem := path_problem(paths[0])):
                    self.say(at, "bad-path", f"{shown}: {problem}")

    def _required(self, place: Place, part: Strict) -> None:
        for name, example in REQUIRED[self.adapter].get(type(part).__name__, {}).items():
            if name == "get" and isinstance(part, models.CallMap) and part.method:
                continue
            if getattr(part, "from_" if name == "from" else name) is None:
                self.say(place, "missing-part", f"{name} is missing, such as {name}: {example}")

    # calls, and what is sent

    def _names(self, place: Place) -> tuple[Mapping[str, FieldShape], Sequence[str]]:
        """Returns the names that a call or value there may use: with a shape, and made by steps."""
        match place:
            case ("booking", "steps", int(number), *within):
                return DRAFT, [*self._made_for[number], *self._made_within(number, within)]
            case ("booking", kind, *_):
                return DRAFT_FIELDS, self._made_for[-1] if kind == "cancel" else ()
            case ("diary", str(kind), *_):
                given = _GIVEN_TO.get(kind, tuple(GIVEN))
                if self.diary.schedules is None:
                    given = tuple(name for name in given if name != "schedule")
                return {name: GIVEN[name] for name in given}, ()
            case ("resources", _, "joins", *_):
                return {"of": FieldShape(format="text", many=True)}, ()
            case ("resources", str(name), kind, *_):
                return self.shapes[name] if kind == "list" else {"id": _id_of(name)}, ()
        return {}, ()

    def _made_within(self, number: int, within: Sequence[Any]) -> Iterator[str]:
        """Yields what a step knows besides: by its condition, of its slot, or to undo it."""
        steps = self.booking.steps
        condition = steps[number].if_
        if condition is not None and condition.made is not None:
            yield condition.made
        if joins_rows(steps[number]):
            yield from (name for step in steps[:number] if step.each for name in step.keep)
        if within[:1] == ["undo"]:
            yield from steps[number].keep

    def _call(self, place: Place, call: models.CallMap) -> None:
        known = [name for names in self._names(place) for name in names]
        for name in call.names:
            text = f"nothing here is called {name}"
            self.is_known((*place, call.method), "unfilled", name, known, text)
        self._headers(place, call.headers)

    def _headers(self, place: Place, headers: Mapping[str, models.Tree]) -> None:
        for name, tree in headers.items():
            if isinstance(tree.root, dict | list | models.TreePart):
                text = f"a header is one text, such as {name}: {{secret: token}}"
                self.say((*place, "headers", name), "bad-call", text)
            elif getattr(tree.root, "draft", None) == "reason":
                text = "a reason may have several lines, which no header has: send it in the body"
                self.say((*place, "headers", name), "bad-call", text)

    def _page(self, place: Place, page: models.Paging) -> None:
        needs, may = _PAGING[page.by]
        for name in needs:
            if getattr(page, name) is None:
                self.say(place, "bad-paging", f"{name} is missing: by: {page.by} needs it")
        if page.by == "link" and (page.next is None) != page.header:
            self.say(place, "bad-paging", "by: link needs either next, a path, or header: true")
        for name in sorted(page.model_fields_set - {"by", "most", *needs, *may}):
            self.say((*place, name), "bad-paging", f"{name} does not go with by: {page.by}")

    def _sent(self, place: Place, value: models.SentValue) -> None:
        shapes, made = self._names(place)
        if value.secret is not None:
            self._secret((*place, "secret"), value.secret)
        if value.made is not None:
            who = "step before this one is called" if self.of_sql else "call before this one keeps"
            self.is_known((*place, "made"), "unfilled", value.made, made, f"no {who} {value.made}")
        self._named((*place, "sql"), value.sql or "", made)
        if isinstance(value, models.WrittenValue) and value.each is not None:
            items = self._items(place) if place[3] == "values" else ()
            text = f"the list in each has no {value.each}"
            self.is_known((*place, "each"), "unfilled", value.each, items, text)
        is_drafted = place[0] == "booking"
        what = "a draft has no" if is_drafted else "nothing here is called"
        for origin, here in (("draft", is_drafted), ("given", not is_drafted)):
            name, at = getattr(value, origin), (*place, origin)
            known = shapes if here else {}
            if name is None or not self.is_known(at, "unfilled", name, known, f"{what} {name}"):
                continue
            if name not in DRAFT_KEYS or not is_drafted:
                # what is only sent may leave the time of a day out
                self.conversion(place, value, shapes[name], whole=False)
            elif given := _converted(value):
                text = f"{name} is written as the practice system has it; {given} does not go here"
                self.say(at, "bad-converter", text)

    def _part(self, place: Place, part: models.TreePart) -> None:
        """Checks that a booking knows the condition of a part, or the slots that it is made for."""
        if place[0] != "booking":
            text = "if and each stand in what a booking sends, which alone has a draft and slots"
            self.say((*place, "then"), "unfit-parts", text)
        elif part.if_ is not None:
            text = f"a draft has no {part.if_}"
            self.is_known((*place, "if"), "unfilled", part.if_, DRAFT, text)

    def _items(self, place: Place) -> Sequence[str]:
        """Returns the names in the list that the booking's step at the place is repeated for."""
        match place:
            case ("booking", "steps", int(number), *_):
                items = self.booking.steps[number].items
                return [name for name in {key: 0 for item in items for key in item} if name != "if"]
        return ()

    def _each(self, place: Place, step: models.StepMap) -> None:
        """Checks the list that a step is repeated for, and that all of it is written."""
        if step.items and not self.of_sql:
            text = "a list in each stands only in a mapping of the sql adapter"
            self.say((*place, "each"), "wrong-adapter", text)
        names, taken = self._items(place), {*models.NAMED(step.where or "")}
        for value in step.values.values():
            taken |= {value.each or "", *models.NAMED(value.sql or "")}
        for name in names:
            if name in (*DRAFT, *CLOCK, *self._made_for[int(place[2])]):
                text = f"{name} has a meaning in a booking already: take another name"
                self.say((*place, "each"), "bad-step", text)
            elif name not in taken:
                text = f"no value of this step is {{each: {name}}}, and no SQL of it has :{name}"
                self.say((*place, "each"), "bad-step", text)
        for number, item in enumerate(step.items):
            self._item((*place, "each", number), item, names)

    def _item(
        self, place: Place, item: Mapping[str, models.WrittenValue], names: Sequence[str]
    ) -> None:
        for name in names:
            if name not in item:
                text = f"{name} is missing, which others of this list have; write null for none"
                self.say(place, "bad-step", text)
        if (own := item.get("if")) is not None and isinstance(own.constant, str):
            text = f"a draft has no {own.constant}"
            self.is_known((*place, "if"), "unfilled", own.constant, DRAFT, text)

    def _named(self, place: Place, sql: str, made: Sequence[str]) -> None:
        widths = self._widths() if sql else {}
        for name in models.NAMED(sql):
            text, more = f"no step before this one is called {name}", "; write \\: for a colon"
            parts = [f"{key}_{n}" for key, width in widths.items() for n in range(1, width + 1)]
            known = [*made, *DRAFT, *CLOCK, *self._items(place), *parts]
            if self.is_known(place, "unfilled", name, known, text, more) and name in widths:
                text = f"{name} is a key of {widths[name]} columns: write :{name}_1, :{name}_2"
                self.say(place, "unfilled", text)

    def _widths(self) -> dict[str, int]:
        """Returns how many columns the keys have that a booking knows, where these are several."""
        resources, steps = self.mapping.resources, self.mapping.booking.steps
        found = {step.name: len(step.keys) for step in steps if step.name is not None}
        for name, resource in REFERS.items():
            if resource in resources:
                found[name] = len(resources[resource].key.source)
        return {name: width for name, width in found.items() if width > 1}

    def _secret(self, place: Place, name: str) -> None:
        if name not in self.secrets:
            text = f"backend.{name} is not set, which this needs: write it into gateway.yaml"
            self.say(place, "missing-secret", f"{text} or GATEWAY_BACKEND_{name.upper()}")

    def _backend(self, place: Place, backend: models.BackendMap) -> None:
        for number, name in enumerate(backend.basic or ()):
            self._secret((*place, "basic", number), name)
        if (login := backend.login) and login.seconds is None and login.lifetime is None:
            text = "say how long the token lives: seconds, a path, or lifetime, a number"
            self.say((*place, "login"), "missing-part", text)
        if (oauth := backend.oauth) is not None:
            needs: list[tuple[str, str]] = [("client", secret) for secret in oauth.client]
            needs += [("grant", "token")] if oauth.grant == "refresh_token" else []
            for at, needed in needs:
                self._secret((*place, "oauth", at), needed)
        self._headers(place, backend.headers)

    def _whole(self, place: Place, mapping: models.MappingFile) -> None:
        for name in mapping.accepted:
            text, more = f"no law is called {name}", "; the reference has a table of them"
            self.is_known(("accepted", name), "no-such-law", name, LAWS, text, more)
        self._resources(place, mapping)

    # resources

    @property
    def _wanted(self) -> Sequence[str]:
        return [name for name in self.shapes if name != "slots"]

    def _resources(self, _: Place, mapping: models.MappingFile) -> None:
        for name in mapping.resources:
            text = f"{name} is no resource"
            self.is_known(("resources", name), "unknown-name", name, self._wanted, text)
        for part, resources in _NEEDS.items():
            for name in resources if part in mapping.model_fields_set else ():
                if name not in mapping.resources:
                    text = f"{name} is missing, which the {part} needs: map it, or leave {part} out"
                    self.say((part,), "missing-part", text)
        if "booking" in mapping.model_fields_set and "diary" not in mapping.model_fields_set:
            text = "diary is missing: it says which times can be booked; map it, or leave booking"
            self.say(("booking",), "missing-part", f"{text} out")
        asked = [it for it in mapping.resources.values() if it.list_ and not it.list_.names]
        if not self.of_sql and not asked and mapping.backend.ping is None:
            text = "ping is missing, such as ping: /status: no list here can be asked whether the"
            self.say(("backend",), "missing-part", f"{text} backend answers")

    def _resource(self, place: Place, resource: models.ResourceMap) -> None:
        name = str(place[1])
        self._key((*place, "key"), resource.key, name)
        self._fields(place, "", resource.fields)
        if name == "vets" and len(resource.key.source) > 1:
            text = "a vet's key must be one column: the diary knows vets by it"
            self.say((*place, "key"), "bad-columns", text)
        if not self.of_sql and resource.list_ is None:
            if resource.one is None:
                text = f"{name}: takes one, list, or both: there must be a way to read it"
                self.say(place, "missing-part", text)
            elif name not in UNLISTED:
                text = f"list is missing, such as list: /{name}; {name} cannot be listed without it"
                self.say(place, "missing-part", text)
        if "booking" not in self.mapping.model_fields_set:
            return
        needed = dict.fromkeys(NEEDED[self.adapter].get(name, ()), "")
        if name == "appointments" and self.booking.reference is None:
            needed["createdAt"] = ", unless booking.reference says where a booking's reference is"
        for field in needed.keys() - resource.fields.keys():
            text = f"{field} is missing: no booking can be made without it{needed[field]}"
            self.say((*place, "fields"), "missing-part", text)

    def _join(self, place: Place, join: models.JoinMap) -> None:
        """Checks that the call is given what it is asked for by, and hides no value."""
        sent = [part for name in ("query", "body", "headers") for _, part in parts_of(join, name)]
        if "of" not in join.names and not any(getattr(it, "given", None) == "of" for it in sent):
            text = "of is sent nowhere: write {of} into the path, or {given: of} into query or body"
            self.say((*place, "of"), "unfilled", text)
        if join.item != "@":  # which may be a value itself
            return
        name, resource = str(place[3]), self.mapping.resources[str(place[1])]
        for at, path in _paths(resource, name):
            if plain_steps(path) == (name,):
                text = f"{at} reads {name} as a value, which this join hides: take another name"
                self.say(place, "unfit-parts", text)

    def _list(self, place: Place, inner: models.ListMap) -> None:
        resource, name = str(place[1]), str(place[3])
        own = self.shapes[resource]
        lists = lists_in(own)
        more = f": write lists: with {' or '.join(lists)} in it"
        more = more if lists else ", nor any other: leave lists out"
        text = f"{resource} has no list {name}"
        if not self.is_known(place, "no-such-field", name, lists, text, more):
            return
        key = self.mapping.resources[resource].key
        if inner.parent is not None and len(inner.parent) != len(key.source):
            text = f"parent must have as many columns as the key of {resource}"
            self.say((*place, "parent"), "bad-columns", text)
        if inner.key is not None:
            self._key((*place, "key"), inner.key, resource)
        elif not self.of_sql and f"{name}[].id" in own:
            text = f"key is missing, such as key: id; each of {name} has one"
            self.say(place, "missing-part", text)
        self._fields(place, f"{name}[].", inner.fields)

    def _key(self, place: Place, key: ValueSource, resource: str) -> None:
        if self.of_sql and key.as_ not in (None, "id", "native id", "hashed id"):
            text = f"as: {key.as_} is no way to make an id: use id, native id or hashed id"
            self.say((*place, "as"), "bad-converter", text)
        elif len(key.source) > 1 and key.as_ in ("id", "native id"):
            text = f"key: a key of several columns is no {key.as_}; leave `as` out"
            self.say(place, "bad-converter", text)
        else:
            self.conversion(place, key, _id_of(resource))

    def _fields(self, place: Place, prefix: str, fields: Mapping[str, ValueSource]) -> None:
        """Checks the fields of a resource or (with its prefix) of a list inside one."""
        known = inside(self.shapes[str(place[1])], prefix)
        for name, value in fields.items():
            at = (*place, "fields", name)
            if name == "id":
                self.say(at, "no-such-field", "id is made of the key; leave it out here")
            elif self.is_known(at, "no-such-field", name, known, f"{name} is no field here"):
                self._value(at, value, known[name])
                target = value.of or known[name].refers
                to = self.mapping.resources.get(target or "")
                is_unread = self.document.may_lack(("resources",))
                if to is None and target in self._wanted and not is_unread:
                    text = f"{name} leads to {target}, which this mapping leaves out: map {target},"
                    self.say(at, "no-such-field", f"{text} or leave {name} out")
                if to is not None and len(value.source) != len(to.key.source):
                    text = f"{name} must have as many columns as the key of {target}"
                    self.say(at, "bad-columns", text)

    def _value(self, place: Place, value: ValueSource, shape: FieldShape) -> None:
        self.conversion(place, value, shape)
        name, number = conversion_name(value, shape), len(value.source)
        if number == 1:
            return
        is_time = name in ("local time", "utc time")
        if name not in IN_COLUMNS:
            text = f"as: {name} reads one column, and here are {number}; as: joined text takes more"
            self.say((*place, "source"), "bad-columns", text)
        elif is_time and number != 2:
            text = f"a time stands in one column or in two, a day and a time, not in {number}"
            self.say((*place, "source"), "bad-columns", text)
        elif is_time and " " not in (value.pattern or PATTERN):
            text = "pattern of a time in two columns needs a blank between day and time"
            self.say((*place, "pattern"), "bad-pattern", text)

    def _listing(self, place: Place, call: models.ListCall) -> None:
        name = str(place[1])
        if call.key is not None:
            self._key((*place, "key"), call.key, name)
        if call.details and self.mapping.resources[name].one is None:
            text = "details are read with one, which is missing"
            self.say((*place, "details"), "unfit-parts", text)
        self._filled((*place, "sift"), call.sift)

    def _filter(self, place: Place, by: models.FilterParameter) -> None:
        shapes, field = self.shapes[str(place[1])], str(place[-1])
        self._filled((*place, "fields"), by.fields or ())
        if field == SEARCH:
            if by.fields is None:
                text = "search needs fields: in which it looks for the words"
                self.say(place, "unfit-parts", text)
            return
        for name in ("fields", "words"):
            if getattr(by, name) is not None:
                self.say((*place, name), "unfit-parts", f"{name} goes with search alone")
        self._filled(place, (field,))
        if by.model_fields_set - {"query", "form", "fields", "words"} and field in shapes:
            self.conversion(place, by, shapes[field])

    def _filled(self, place: Place, fields: Sequence[str]) -> None:
        filled = self.mapping.resources[str(place[1])].fields
        for number, field in enumerate(fields):
            text = f"{field} is no field that this mapping fills"
            self.is_known((*place, number), "no-such-field", field, filled, text)

    # diary

    def _owned(self, place: Place, rows: models.Owned) -> None:
        for name in ("vet", "schedule"):
            self._compared((*place, name), getattr(rows, name), name)
        named = rows.schedule is not None or getattr(rows, "schedules", None) is not None
        if named and self.diary.schedules is None:
            text = "a schedule needs diary.schedules, which says whose it is"
            self.say((*place, "schedule"), "bad-diary", text)
        if isinstance(rows, models.DurationsMap):
            self._compared((*place, "type"), rows.type, "type")
        elif rows.method and rows.owner is None:
            whose = {"vet"} if isinstance(rows, models.SchedulesMap) else {"vet", "schedule"}
            if whose.isdisjoint(rows.names):
                text = "vet is missing: it must be known whose a row is, as a parameter may be"
                self.say(place, "missing-part", f"{text} ignored")
        if isinstance(rows, models.SchedulesMap):
            self._compared((*place, "key"), rows.key, "key")
            self._default_type((*place, "default_type"), rows.default_type)

    def _compared(self, place: Place, value: ValueSource | None, name: str) -> None:
        """Checks a value that rows are chosen by, which a database compares as it is kept."""
        if value is None:
            return
        if not self.of_sql:
            self.conversion(place, value, GIVEN.get(name, TEXT))
        elif given := _converted(value):
            text = f"{name} is compared as the database keeps it; leave {given} out"
            self.say(place, "bad-converter", text)
        elif name not in ("type", "key") and len(value.source) > 1:
            self.say(place, "bad-columns", f"{name} must be one column")

    def _default_type(self, place: Place, value: ValueSource | None) -> None:
        types = self.mapping.resources.get("appointmentTypes")
        if value is None or types is None:
            return
        self._value(place, value, GIVEN["type"])
        if len(value.source) != len(types.key.source):
            text = "default_type must have as many columns as the key of appointmentTypes"
            self.say(place, "bad-columns", text)
        appointments = self.mapping.resources.get("appointments")
        if appointments is not None and "appointmentTypeId" not in appointments.fields:
            text = "appointments have no appointmentTypeId, so nobody sees which type was booked:"
            self.say(place, "bad-diary", f"{text} map it")

    def _hours(self, place: Place, hours: models.HoursMap) -> None:
        for name in ("weekday", "day"):
            if (value := getattr(hours, name)) is not None:
                self._value((*place, name), value, TEXT)
                if len(value.source) > 1:
                    self.say((*place, name), "bad-columns", f"{name} must be one column")

    def _times(self, place: Place, times: models.TimesMap) -> None:
        for name in ("start", "end"):
            value: ValueSource | None = getattr(times, name)
            if value is None:
                continue
            at = (*place, name)
            self._value(at, value, TIME)
            if value.plus is not None:
                self.say((*at, "plus"), "unfit-parts", "write it as minutes, beside start")
            elif self.of_sql and not sorts(value.pattern or PATTERN):
                text = "what blocks is looked for by its times: pattern must sort as they do"
                self.say((*at, "pattern"), "bad-pattern", text)
        if isinstance(times, models.SlotsMap):
            self._slots(place, times)
        if times.key is not None and not self.of_sql and isinstance(times, models.BusyMap):
            self._key((*place, "key"), times.key, "appointments")
        else:
            self._compared((*place, "key"), times.key, "key")

    def _slots(self, place: Place, slots: models.SlotsMap) -> None:
        if self.of_sql and slots.owner is None:
            self.say(place, "bad-diary", "slots: needs vet or schedule: whose slot it is")
        if self.of_sql and slots.end is None and slots.minutes is None:
            self.say(place, "bad-diary", "slots: needs end or minutes")
        if slots.key is None and any(step.for_ == "slot" for step in self.booking.steps):
            text = "key is missing: a step `for: slot` books a row by its key"
            self.say(place, "bad-diary", text)

    def _blocks(self, place: Place, diary: models.DiaryMap) -> None:
        of_rows = not diary.hours and all(slots.of_schedule for slots in diary.slots)
        of_rooms = any(busy.of_schedule and busy.key is not None for busy in diary.busy)
        shared = diary.schedules is not None and diary.schedules.shared
        # a call tells the schedules of a vet and not the vets of one, which are not looked at
        if shared and not (self.of_sql or of_rows or of_rooms):
            text = "no source of busy with a key has a schedule: two vets would be booked in one at"
            text += " once; give what blocks a schedule, whoever the vet is, as a source too, or"
            text += " say `shared: false` where each schedule is one vet's"
            self.say((*place, "schedules"), "bad-diary", text)
        if not diary.busy:
            if self.of_sql:
                text = "busy is missing: nothing says what blocks, so a booking cannot be checked"
                self.say(place, "bad-diary", text)
            return
        keyed = [busy for busy in diary.busy if busy.key is not None]
        if not keyed:
            text = "no source here has a key: name that of the appointment in the one that holds"
            text += " the bookings, so that a booking is told from what the desk writes"
            self.say((*place, "busy"), "bad-diary", text)
        of_vets = [busy for busy in keyed if busy.vet or "vet" in busy.names]
        if diary.schedules is not None and not of_vets:
            text = "no source with a key has a vet here: in two schedules one vet would be booked"
            text += " for one time; give what blocks a vet, whatever the schedule, as a source too"
            self.say((*place, "busy"), "bad-diary", text)

    # booking

    def _step(self, place: Place, step: models.StepMap) -> None:
        self._named((*place, "where"), step.where or "", self._names(place)[1])
        self._each(place, step)
        if step.if_ is not None:
            self._condition(place, step.if_)
            if step.name is not None or step.keep:
                text = "a step with `if` may not happen, so it has no name for others"
                self.say((*place, "keep" if step.name is None else "name"), "bad-step", text)
        if step.for_ == "slot" and not self.diary.slots:
            text = "there are no slot rows: diary.slots says where they are"
            self.say((*place, "for"), "bad-step", text)
        if step.table in self.booking.without_transactions:
            text = f"{step.table} has no transactions: "
            if step.insert is not None and not step.keys:
                text += "say its key, by which a row that has to be taken back is deleted"
                self.say((*place, "insert"), "no-transactions", text)
            elif step.update is not None:
                text += "what an update changes there cannot be taken back"
                self.say((*place, "update"), "no-transactions", text)

    def _condition(self, place: Place, condition: models.StepCondition) -> None:
        number, at, made = int(place[2]), (*place, "if"), condition.made
        self._named((*at, "sql"), condition.sql or "", self._made_for[number])
        if (name := condition.draft) is not None:
            self.is_known(at, "unfilled", name, DRAFT, f"a draft has no {name}")
        if made is not None:
            before = self.booking.steps[:number]
            optional = [
                name for step in before for name, kept in step.keep.items() if kept.optional
            ]
            text = f"no call before this one keeps {made} as optional"
            self.is_known((*at, "made"), "unfilled", made, optional, text)

    def _lock(self, place: Place, names: Sequence[str]) -> None:
        """Checks that what is locked is what bookings share."""
        has_schedules = self.diary.schedules is not None
        known = ("vet", "schedule") if has_schedules else ("vet",)
        for name in names:
            text, more = f"a lock is of no {name}", "write \\: for a colon"
            self.is_known(place, "unfilled", name, known, text, more)
        if has_schedules and set(names) == {"vet"}:
            text = "vets may share a schedule, which a lock of the vet leaves open: name :schedule"
            self.say(place, "bad-booking", text)

    def _booking(self, place: Place, booking: models.BookingMap) -> None:
        """Checks that the appointment is made, and its reference both written and read."""
        self._appointment((*place, "appointment"), booking.appointment, booking.steps)
        if booking.find is not None and booking.find.where is not None:
            text = "where does not go here: what find gives is compared with the booking"
            self.say((*place, "find", "where"), "bad-booking", text)
        if booking.lock is not None:
            self._lock((*place, "lock"), models.NAMED(booking.lock))
        is_written = mark_of(booking) is not None
        if is_written and booking.reference is None and self.of_sql:
            text = "reference is missing: say where the reference that is written can be read"
            self.say(place, "bad-booking", text)
        if booking.reference is not None and not is_written:
            named = "{draft: reference} or {draft: uuid}"
            named += ", nor :reference or :uuid in its SQL" if self.of_sql else ""
            text = f"no step has {named}, so there is nothing to be read here"
            self.say((*place, "reference"), "bad-booking", text)

    def _appointment(self, place: Place, name: str, steps: Sequence[models.StepMap]) -> None:
        """Checks that a step makes the appointment, for slot rows and for all other times."""
        if self.of_sql:
            rows = [step for step in steps if step.key or (step.update and step.for_ == "slot")]
            makers = [step for step in rows if step.name == name]
            text = f"{name} is not the name of an insert with a key"
        else:
            kept = [step for step in steps if name in step.keep]
            makers = [it for it in kept if not it.keep[name].optional and it.each is None]
            near = did_you_mean(name, [kept for step in steps for kept in step.keep])
            text = f"{name} is nothing that a call keeps{near}"
            if any(step.each for step in kept):
                text = f"{name} is kept by a call that is made several times: keep it in one call"
            if not any(step.writes for step in steps):
                only = "a get is a read, which may be sent twice: what books must be another method"
                self.say(("booking", "steps"), "bad-booking", only)
        if not makers:
            self.say(place, "bad-booking", text)
            return
        keyed = [slots for slots in self.diary.slots if slots.key]
        for which, sources in (("slot", keyed), ("time", self.diary.hours)):
            if sources and not any(step.for_ in (None, which) for step in makers):
                self.say(place, "bad-booking", f"no step for: {which} makes the {name}")


def written_by(step: models.StepMap) -> set[str]:
    """Returns the names of a draft that a step writes, sends or compares with."""
    names = {*models.NAMED(step.where or ""), *step.names}
    for _, part in parts(step):
        if isinstance(part, models.SentValue):
            names |= {part.draft or "", *models.NAMED(part.sql or "")}
    return names & DRAFT.keys()


def joins_rows(step: models.StepMap) -> bool:
    """Returns whether a step, or a part of its body, is there once for each slot row."""
    return any(getattr(part, "each", None) == "slot" for _, part in parts(step))


def mark_of(booking: models.BookingMap) -> Literal["reference", "uuid"] | None:
    """Returns by what the gateway knows its own bookings: the reference, or the UUID made of it."""
    names = {name for step in booking.steps for name in written_by(step)}
    if "reference" in names:
        return "reference"
    return "uuid" if "uuid" in names else None


def _paths(resource: models.ResourceMap, join: str) -> Iterator[tuple[str, str]]:
    """Yields what reads values of a resource's records once they are joined, and its paths."""
    yield "where", resource.where or "@"
    values = {"key": resource.key, **resource.fields}
    yield from ((name, path) for name, value in values.items() for path in value.expressions)
    names = list(resource.joins)
    for name in names[names.index(join) + 1 :]:
        yield f"joins.{name}", resource.joins[name].of.source


def _id_of(resource: str) -> FieldShape:
    return FieldShape(format="uuid", refers=resource)


def _converted(value: Conversion) -> str:
    """Returns the first name in it that says how it is written; "" for none."""
    given = (name for name in Conversion.model_fields if getattr(value, name) is not None)
    return next(given, "").rstrip("_")


# Most of what stands in a mapping is a value, and holds no part.
_VALUES = (str, int, float, type(None))


def parts(part: Strict, place: Place = ()) -> Iterator[tuple[Place, Strict]]:
    """Yields a part of a mapping and all parts in it, each with its place."""
    yield place, part
    fields = type(part).model_fields
    for name, value in vars(part).items():
        if not isinstance(value, _VALUES):
            yield from _inside(value, (*place, fields[name].alias or name))


def parts_of(part: Strict, name: str) -> Iterator[tuple[Place, Strict]]:
    """Yields the parts under one name of a part of a mapping."""
    yield from _inside(getattr(part, name), (name,))


def _inside(value: Any, place: Place) -> Iterator[tuple[Place, Strict]]:
    if isinstance(value, dict | list | tuple):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if not isinstance(inner, _VALUES):
                yield from _inside(inner, (*place, name))
    elif isinstance(value, Strict):
        yield from parts(value, place)
    elif isinstance(value, models.Tree):
        yield from _inside(value.root, place)
