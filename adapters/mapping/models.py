"""The models of a mapping file.

A mapping says how a practice system becomes the gateway's records, how its diary is read, and how
an appointment is booked. Most of it is the same for every practice system. `OfSql` marks what goes
with a database alone, `OfRest` what goes with JSON over HTTP alone. What the models cannot see is
checked in adapters/mapping/checker.py.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    RootModel,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema

from adapters.documents.models import unquoted
from adapters.documents.problems import Misfit
from adapters.ids.seal import HASHED, SEALED
from adapters.mapping.conversion import (
    Conversion,
    Listed,
    OfRest,
    OfSql,
    Scalar,
    Strict,
    Zone,
    checked,
)
from adapters.mapping.expressions import NamedExpressions, dated, on_clock
from adapters.mapping.hours import Shift, closed_days, days_of_week, hours_of_day

METHODS = ("get", "post", "put", "patch", "delete")
Meaning = Literal["slot taken", "not found", "rejected", "unavailable", "logged out", "unusable"]
# The names in a step's SQL, each behind a colon, and those in the braces of a call's path.
NAMED = re.compile(r"(?<![:\w\\]):(\w+)(?!:)").findall
# A column of a key of several, by its number.
PART = re.compile(r"(\w+)_([1-9])").fullmatch
_BRACED = re.compile(r"\{(\w*)\}").findall
# A body that is sent as a form, and what other bodies may be.
FORM = "form"
_JSON_TYPE = re.compile(r"application/([\w.-]+\+)?json").fullmatch
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file is read with: its named expressions and zone, and the backend's address."""

    named: NamedExpressions
    zone: str
    address: str = ""


def _written_out(text: str, info: ValidationInfo) -> str:
    """Returns an expression without named ones in it."""
    reading: Reading | None = info.context
    return text if reading is None else reading.named.expanded(text)


def _readable(text: str, info: ValidationInfo) -> str:
    """Returns the same of what is read, which may name the time on the clinic's clock."""
    reading: Reading | None = info.context
    if reading is None:
        return text
    written = reading.named.expanded(text)
    return (on_clock if reading.named.is_sql else dated)(written, reading.zone)


class BackendKind(str):
    """The kind of a reference to the backend's own records; `address` is the backend's."""

    __slots__ = ("address",)
    address: str


def _of_backend(kind: str, info: ValidationInfo) -> BackendKind:
    made, reading = BackendKind(kind), info.context
    made.address = "" if reading is None else reading.address
    return made


def _texts(value: Any) -> Any:
    if not isinstance(value, str | list | tuple):
        more = ": put it in quotes" if isinstance(value, int | float) else ", or a list of texts"
        more = unquoted(value) or more
        raise Misfit("wrong-kind", f"must be a text{more}")
    return (value,) if isinstance(value, str) else tuple(value)


def _regular(expression: str) -> re.Pattern[str]:
    try:
        return re.compile(expression)
    except re.error as error:
        raise Misfit("bad-pattern", f"this is no regular expression: {error}") from error


def _with_group(expression: str) -> None:
    if not _regular(expression).groups:
        raise Misfit("bad-pattern", "must have a group in parentheses: the part that is taken")


def _one_place(form: str) -> None:
    if form.count("{}") != 1:
        raise Misfit("bad-pattern", "must have one {} where the value goes")


def _call_path(written: str) -> None:
    if not written.startswith("/") or set(written) & set("?#\\ "):
        raise Misfit("bad-call", "must be a path such as /clients/{id}; parameters go into query")
    for part in written.split("/")[1:]:
        if part in (".", "..") or re.fullmatch(r"\{\w+\}|[^{}]*", part) is None:
            text = "each part between slashes is either plain or one name in braces"
            raise Misfit("bad-call", text)


def _media_type(content: str) -> None:
    if content != FORM and not _JSON_TYPE(content):
        text = "must be form, or a media type of JSON such as application/merge-patch+json"
        raise Misfit("bad-call", text)


def _header_name(name: str) -> None:
    if not _HEADER(name):
        raise Misfit("bad-call", f"{name!r} is no name of a header; write one such as If-Match")


def _token_address(url: str) -> None:
    if url.startswith("/"):
        _call_path(url)
    elif not re.fullmatch(r"https?://[^/?#@\s]+(/[^?#\s]*)?", url):
        text = "must be a path such as /oauth2/token, or an address such as"
        raise Misfit("bad-address", f"{text} https://login.example.org/oauth2/token")


class Expressions:
    """Marks the texts that are SQL in a mapping of a database, and JMESPath in one of JSON."""


def is_expression(info: FieldInfo) -> bool:
    """Returns whether a field is marked so, even where it may be left out."""
    kinds = [getattr(kind, "__metadata__", ()) for kind in get_args(info.annotation)]
    return any(isinstance(mark, Expressions) for marks in (info.metadata, *kinds) for mark in marks)


_TEXT_SCHEMA: dict[str, Any] = {"type": "string", "minLength": 1}
_TEXTS_SCHEMA: dict[str, Any] = {
    "anyOf": [_TEXT_SCHEMA, {"type": "array", "items": _TEXT_SCHEMA, "minItems": 1}]
}
Expr = Annotated[str, Field(min_length=1), AfterValidator(_readable), Expressions()]
Exprs = Annotated[
    tuple[Annotated[str, Field(min_length=1), AfterValidator(_readable)], ...],
    BeforeValidator(_texts),
    Field(min_length=1, max_length=8),
    WithJsonSchema(_TEXTS_SCHEMA),
    Expressions(),
]
# What a step of a booking computes, with names of its own behind colons.
Sql = Annotated[str, Field(min_length=1), AfterValidator(_written_out), Expressions()]
# The kind of a reference, such as Patient in Patient/123.
Kind = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$"), AfterValidator(_of_backend)]
Match = Annotated[str, Field(min_length=1), checked(_with_group)]
From = Annotated[OfSql[Expr | None], Field(alias="from")]
Form = Annotated[str, checked(_one_place)]
CallPath = Annotated[str, checked(_call_path)]
HeaderName = Annotated[str, checked(_header_name)]
Nulls = Literal["send", "omit"]


class ShortForm(Strict):
    """A part that may be written as a plain value, which stands for the name `short`."""

    short: ClassVar[str] = "source"

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if value is None and cls.short != "constant":
            raise Misfit("wrong-kind", "is empty: write a text, or leave it out")
        if isinstance(value, dict) and (more := unquoted(value)) and not cls._knows(value):
            raise Misfit("wrong-kind", f"must be a text{more}")
        return value if isinstance(value, dict | Strict) else {cls.short: value}

    @classmethod
    def _knows(cls, names: Collection[str]) -> bool:
        """Returns whether one of the names stands in the long form."""
        fields = cls.model_fields.items()
        return any(name in names or info.alias in names for name, info in fields)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        long = handler.resolve_ref_schema(handler(schema))
        if any(name != cls.short for name in long.get("required", ())):
            return long
        short = long["properties"][cls.short]
        return {"anyOf": [*short.get("anyOf", [short]), long]}


class ValueSource(ShortForm, Conversion):
    """Where a value stands in a row or an answer, and how it is written.

    `source` is an expression, or several columns of a database that make one value. `match` takes a
    part of what a path finds. `reference` is the kind of what is referred to, in texts such as
    `Patient/123`: of one or several, the first of that kind is taken.
    """

    source: Exprs
    match: OfRest[Match | None] = None
    reference: OfRest[Kind | None] = None
    plus: Expr | None = None

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.match is not None and self.reference is not None:
            yield "takes match or reference, not both"
        if self.longest is not None:
            yield "longest goes with what a booking writes"

    @property
    def expressions(self) -> tuple[str, ...]:
        """All expressions of the value, in the order in which its converter takes them."""
        return self.source if self.plus is None else (*self.source, self.plus)

    @property
    def text(self) -> str:
        """The only expression, or the first."""
        return self.source[0]

    @property
    def ids(self) -> str:
        """The kind of public ids, where the value is a key: `id` (sealed) or another."""
        return self.as_ or (SEALED if len(self.source) == 1 else HASHED)


class KeptValue(ShortForm):
    """A plain value of an answer: at a path, or the part that `match` or `reference` takes."""

    source: Expr
    match: Match | None = None
    reference: Kind | None = None

    def faults(self) -> Iterator[str]:
        if self.match is not None and self.reference is not None:
            yield "takes match or reference, not both"


class StepKept(KeptValue):
    """What a call of a booking leaves for later ones.

    It may stand in a `header` of the answer. An `optional` one may be missing: then steps with
    `if: {made: ...}` do not happen. For others `missing` may say what it means.
    """

    source: Expr | None = None  # type: ignore[assignment]  # it is not there beside a header
    header: HeaderName | None = None
    optional: bool = False
    missing: Literal["slot taken", "not found", "rejected"] | None = None

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if (self.source is None) == (self.header is None):
            yield "takes source, a path, or header, the name of a header"
        if self.optional and self.missing is not None:
            yield "takes optional or missing, not both"


class SentValue(Conversion):
    """A value that is written or sent: where it comes from, and the text around it.

    It has one of `draft`, `made`, `given`, `secret`, `sql` and `constant`.
    """

    draft: str | None = None
    made: str | None = None
    given: OfRest[str | None] = None
    secret: OfRest[Literal["user", "password", "token"] | None] = None
    sql: OfSql[Sql | None] = None
    constant: Any = None
    form: OfRest[Form | None] = None

    @property
    def origin(self) -> str:
        """The name that says where it comes from."""
        return next((name for name in ORIGINS if name in self.model_fields_set), "constant")

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        named = [name for name in ORIGINS if name in self.model_fields_set]
        if len(named) > 1:
            yield f"takes one of {', '.join(ORIGINS)}, not {' and '.join(named)}"


ORIGINS = ("draft", "made", "given", "secret", "sql", "constant")


class WrittenValue(ShortForm, SentValue):
    """What a booking writes into a column; a plain value stands for itself."""

    short = "constant"

    constant: Scalar = None
    each: str | None = None

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.each is not None and (others := self.model_fields_set - {"each"}):
            yield f"{' and '.join(sorted(others))} does not go with each"


def _kind(value: Any) -> str:
    if isinstance(value, SentValue):
        return "<value>"
    if isinstance(value, TreePart):
        return "<part>"
    if isinstance(value, dict):
        if "then" in value:
            return "<part>"
        return "<group>" if value.keys().isdisjoint(ORIGINS) else "<value>"
    return "<list>" if isinstance(value, list) else "<plain>"


class TreePart(Strict):
    """A part of what is sent that is there under a condition, or once for each slot row.

    `if` names the value of a draft without which it is left out. `each` makes a list of it.
    """

    if_: OfRest[str | None] = Field(default=None, alias="if")
    each: OfRest[Literal["slot"] | None] = None
    then: OfRest["Tree"]

    def faults(self) -> Iterator[str]:
        if (self.if_ is None) == (self.each is None):
            yield "then goes with if, a value of the draft, or with each: slot"


_Value = Annotated[SentValue, Tag("<value>")]
_Part = Annotated[TreePart, Tag("<part>")]
_Group = Annotated[dict[str, "Tree"], Tag("<group>")]
_List = Annotated[list["Tree"], Tag("<list>")]
_Plain = Annotated[Scalar, Tag("<plain>")]


class Tree(RootModel[Annotated[_Value | _Part | _Group | _List | _Plain, Discriminator(_kind)]]):
    """JSON that may contain values to be sent."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        made = handler.resolve_ref_schema(handler(schema))
        kinds = made.pop("oneOf")
        for kind in kinds:
            if kind.get("type") == "object":  # a group has none of a value's names
                kind["not"] = {"anyOf": [{"required": [name]} for name in (*ORIGINS, "then")]}
        return {**made, "anyOf": kinds}


class ErrorRule(Strict):
    """What an answer means that meets all the conditions."""

    status: Listed[int] | int | None = None
    path: Expr | None = None
    is_: Listed[Scalar] | None = Field(default=None, alias="is", min_length=1)
    text: Annotated[str, Field(min_length=1), checked(_regular)] | None = None
    means: Meaning

    def faults(self) -> Iterator[str]:
        if self.status is None and self.is_ is None and self.text is None:
            yield "needs a condition: status, path and is, or text"
        judged = self.is_ is not None or self.text is not None
        if (self.is_ is not None and self.path is None) or (self.path is not None and not judged):
            yield "path goes with is or text, and is with path"
        statuses = (self.status,) if isinstance(self.status, int) else self.status or (0,)
        is_well = all(200 <= status < 300 for status in statuses)
        if self.text is not None and self.path is None and is_well:
            yield "text needs path in an answer of 2xx, which may repeat what a partner wrote"


class CallMap(Strict):
    """A call: its path with names in braces, parameters, headers, and a body.

    A list in `query` gives the parameter several times. `content` is the media type of the body, or
    `form`. With `nulls: omit` the body lacks what has no value. `errors` are asked before those of
    the backend.
    """

    kinds: ClassVar[tuple[str, ...]] = ("get", "post")
    # the fewest methods that one has: rows of a database, or written ones, have none
    least: ClassVar[int] = 1

    get: OfRest[CallPath | None] = None
    post: OfRest[CallPath | None] = None
    query: OfRest[dict[str, Tree]] = Field(default_factory=dict)
    headers: OfRest[dict[HeaderName, Tree]] = Field(default_factory=dict)
    body: OfRest[Tree | None] = None
    content: OfRest[Annotated[str, checked(_media_type)] | None] = None
    nulls: OfRest[Nulls | None] = None
    errors: OfRest[Listed[ErrorRule]] = ()

    def faults(self) -> Iterator[str]:
        count = sum(getattr(self, name) is not None for name in self.kinds)
        if count > 1 or count < self.least:
            yield f"takes one of {', '.join(self.kinds)}"
        if self.get is not None and self.body is not None:
            yield "get takes no body: write query"
        if self.body is None and (self.content is not None or self.nulls is not None):
            yield f"{'nulls' if self.content is None else 'content'} goes with a body"
        if self.content == FORM and not _is_flat(self.body):
            yield "a form holds values, or lists of these, each under its name"

    @property
    def method(self) -> str:
        """The method's name, as the mapping writes it; "" for what is no call."""
        return next((name for name in METHODS if getattr(self, name, None) is not None), "")

    @property
    def path(self) -> str:
        """The path behind the backend's address."""
        return str(getattr(self, self.method))

    @property
    def names(self) -> list[str]:
        """The names in the path's braces; none for what is no call."""
        return _BRACED(self.path) if self.method else []


def _is_flat(body: Tree | None) -> bool:
    """Returns whether a body can be sent as a form: texts and numbers under names, or lists."""
    members = None if body is None else body.root
    return isinstance(members, dict) and all(map(_is_in_form, members.values()))


def _is_in_form(tree: Tree) -> bool:
    root: Any = tree.root.then.root if isinstance(tree.root, TreePart) else tree.root
    items = [item.root for item in root] if isinstance(root, list) else [root]
    return not any(isinstance(item, dict | list | TreePart) for item in items)


class MethodCall(CallMap):
    """A call of any method."""

    kinds: ClassVar[tuple[str, ...]] = METHODS
    fails = "bad-call"

    put: OfRest[CallPath | None] = None
    patch: OfRest[CallPath | None] = None
    delete: OfRest[CallPath | None] = None


class AnyCall(ShortForm, MethodCall):
    """A call of any method, which may be written as the path of a get."""

    short = "get"


class OneCall(ShortForm, CallMap):
    """The call that reads one record: the record is at `item` of the answer."""

    short = "get"
    fails = "bad-call"

    get: CallPath | None = Field(default=None, examples=["/clients/{id}"])
    item: Expr = "@"


class Paging(Strict):
    """How the backend divides a long list into pages."""

    by: Literal["offset", "page", "cursor", "link"]
    offset: str | None = None
    limit: str | None = None
    page: str | None = None
    size: str | None = None
    first: int = Field(default=1, ge=0, le=1)
    most: int = Field(default=100, ge=1, le=1_000)
    total: Expr | None = None
    cursor: str | None = None
    next: Expr | None = None
    header: bool = False


class FilterParameter(ShortForm, Conversion):
    """The parameter by which the backend filters.

    Of a search, `words` says how it takes several: in one text, each as a parameter of its own, or
    one of them.
    """

    short = "query"

    query: str = Field(min_length=1)
    form: Form | None = None
    fields: Listed[str] | None = Field(default=None, min_length=1)
    words: Literal["together", "each", "one"] | None = None


class ListCall(ShortForm, CallMap):
    """The call that reads the records of a resource: an array at `items`, perhaps in pages."""

    short = "get"
    fails = "bad-call"

    get: CallPath | None = Field(default=None, examples=["/clients"])
    items: Expr = "@"
    page: Paging | None = None
    filters: dict[str, FilterParameter] = Field(default_factory=dict)
    sift: Listed[str] = ()
    details: bool = False
    key: ValueSource | None = None


class RowSource(CallMap):
    """Where rows come from: a table or joined expression, or the array that a call answers with.

    For a call `items` is the array's place, and `page` says how it is divided into pages.
    """

    least: ClassVar[int] = 0

    from_: From = None
    items: OfRest[Expr] = "@"
    page: OfRest[Paging | None] = None
    where: Expr | None = None

    @property
    def is_rows(self) -> bool:
        """Whether rows are read, and not written in the mapping."""
        return self.from_ is not None or bool(self.method)


class JoinMap(ShortForm, CallMap):
    """A call that tells more of records, which their paths find under its name.

    `of` is the value in a record that it is asked for by. Alone it is made for each record, which
    finds the `item` of the answer. With a `key` it is made for up to `most` records at once: then
    `of` is a list, and the `items` are told apart by that key. With `many` a record finds the array
    of all items that have its key, else the first.
    """

    short = "get"
    fails = "bad-call"

    get: CallPath | None = Field(default=None, examples=["/owners/{of}"])
    of: KeptValue = Field(examples=["owner.id"])
    item: Expr = "@"
    items: Expr = "@"
    key: KeptValue | None = None
    many: bool = False
    page: Paging | None = None
    most: int = Field(default=50, ge=1, le=1_000)

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        of_many = self.model_fields_set & {"items", "many", "page", "most"}
        if self.key is None and of_many:
            yield f"{min(of_many)} goes with a key, by which one call tells of many records"
        if self.key is not None and "item" in self.model_fields_set:
            yield "item goes with a call for each record; with a key write items"
        if self.key is not None and "of" in self.names:
            yield "a path asks for one record: send {given: of} in query or body, or leave key out"


class ListMap(Strict):
    """A list inside each record.

    In a database its rows are read once for each page, `parent` holds the record's key, and they
    stand in the `order` of expressions, such as `l.position DESC`. In JSON they stand in the record
    at `items`.
    """

    from_: From = None
    where: OfSql[Expr | None] = None
    parent: OfSql[Exprs | None] = None
    items: OfRest[Expr | None] = None
    within: OfRest[Annotated[str, Field(pattern=r"^\w+$")] | None] = None
    key: ValueSource | None = None
    order: OfSql[Exprs | None] = None
    fields: dict[str, ValueSource]


class ResourceMap(Strict):
    """One resource: where its records are, the `key` that is unique, and the fields."""

    from_: From = None
    one: OfRest[OneCall | None] = None
    list_: OfRest[ListCall | None] = Field(default=None, alias="list")
    where: Expr | None = None
    key: ValueSource = Field(examples=["p.id"])
    fields: dict[str, ValueSource] = Field(examples=["{name: p.name}"])
    joins: OfRest[dict[str, JoinMap]] = Field(default_factory=dict)
    lists: dict[str, ListMap] = Field(default_factory=dict)


class Owned(RowSource):
    """Rows of a vet, of a schedule, or of everybody where neither is named."""

    vet: ValueSource | None = None
    schedule: ValueSource | None = None

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.vet is not None and self.schedule is not None:
            yield "takes vet or schedule, not both"

    @property
    def owner(self) -> ValueSource | None:
        """Whose the rows are."""
        return self.vet or self.schedule

    @property
    def of_schedule(self) -> bool:
        """Whether the rows are those of a schedule, so that a vet without one has none."""
        return self.schedule is not None or (bool(self.method) and "schedule" in self.names)


# A number becomes a text, so that the error lists the names of days.
Days = Annotated[
    str,
    BeforeValidator(lambda day: str(day) if isinstance(day, int) else day),
    checked(days_of_week),
]


class HoursMap(Owned):
    """Working hours of a vet or in a schedule: rows of the practice system, or written here.

    In rows `weekday` is 1 for Monday to 7 (0 is Sunday too) or several of them such as 1-5 or
    1,3,5, or `day` is a date; without either a row opens every day. `start` and `end` read HH:MM.
    Written here, `days` are such as mon-fri and `times` such as 08:30-12:00, for the keys in `vets`
    or `schedules`, or for everybody.
    """

    fails = "bad-hours"

    weekday: ValueSource | None = None
    day: ValueSource | None = None
    start: Expr | None = None
    end: Expr | None = None
    days: Listed[Days] | None = None
    times: Listed[Annotated[str, checked(hours_of_day)]] | None = None
    vets: Listed[str | int] | None = None
    schedules: Listed[str | int] | None = None

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        written = ("days", "times", "vets", "schedules")
        rows: tuple[str, ...] = ("where", "vet", "schedule", "start", "end", "weekday", "day")
        rows += ("query", "headers", "body", "errors", "page")
        given = [name for name in (written if self.is_rows else rows) if getattr(self, name)]
        if given:
            source = self.method or "from"
            side = f"rows ({source})" if self.is_rows else "hours that are written here (days)"
            yield f"{' and '.join(given)} does not go with {side}"
        if not self.is_rows and (self.days is None or self.times is None):
            yield "needs rows with weekday, start and end, or else days and times"
        if self.weekday is not None and self.day is not None:
            yield "rows of hours take weekday or day, not both; without either a row is every day's"
        if self.is_rows and (self.start is None or self.end is None):
            yield "rows of hours need start and end"

    @property
    def of_schedule(self) -> bool:
        return super().of_schedule or bool(self.schedules)

    @property
    def shifts(self) -> tuple[Shift, ...]:
        """The hours that are written here."""
        return tuple(
            Shift(weekday, *hours_of_day(time))
            for days in self.days or ()
            for weekday in days_of_week(days)
            for time in self.times or ()
        )


class TimesMap(Owned):
    """Rows that last from a start to an end, or for so many `minutes`."""

    start: ValueSource = Field(examples=["a.start_time"])
    end: ValueSource | None = None
    minutes: Expr | None = None
    key: ValueSource | None = None


class BusyMap(TimesMap):
    """What blocks a vet, a schedule, or everybody where neither is named.

    Without an end it lasts `minutes`, else the default duration. `key` is the appointment's, in the
    source that holds the bookings. With `endless`, a row without an end never ends. `longest`
    (days) promises that no row with an end lasts longer, so that fewer rows are read.
    """

    endless: bool = False
    longest: int | None = Field(default=None, ge=1, le=3660)


class SlotsMap(TimesMap):
    """Free times that the practice system keeps as rows.

    A row with a `key` is booked by itself. Rows without one are offered where together they cover
    the whole duration.
    """


class SchedulesMap(Owned):
    """The calendars of a vet, where they belong to rooms or schedules.

    Each may have a `step` and a `duration` of its own, in minutes or HH:MM, and a `default_type`:
    the type that is booked where none is asked for. Without `shared`, each is that of one vet.
    """

    vet: ValueSource | None = Field(default=None, examples=["s.vet_id"])
    key: ValueSource = Field(examples=["s.id"])
    step: Expr | None = None
    duration: Expr | None = None
    default_type: ValueSource | None = None
    shared: OfRest[bool] = True


class DurationsMap(Owned):
    """How long a type lasts, in a schedule or in all.

    With `only`, a type without a row is not offered there.
    """

    type: ValueSource = Field(examples=["t.id"])
    minutes: Expr = Field(examples=["t.minutes"])
    only: bool = False


class DiaryMap(Strict):
    """How free times come about; `step` and `duration` in minutes."""

    fails = "bad-diary"

    step: int = Field(default=15, ge=5, le=240)
    duration: int = Field(default=30, ge=5, le=1440)
    hours: Listed[HoursMap] = ()
    busy: Listed[BusyMap] = ()
    closed: Listed[Annotated[str, checked(closed_days)]] = ()
    slots: Listed[SlotsMap] = ()
    schedules: SchedulesMap | None = None
    durations: Listed[DurationsMap] = ()

    def faults(self) -> Iterator[str]:
        if not self.hours and not self.slots:
            yield "needs hours or slots: when there is time at all"
        if self.hours and not self.busy:
            yield "busy is missing: beside hours it must be said what blocks"


# What each kind of step needs, and what it may have beside `name`, `for` and `if`.
_CALLS: tuple[str, ...] = ("query", "headers", "body", "content", "nulls", "errors", "keep")
_KINDS: dict[str, tuple[set[str], set[str]]] = {
    "insert": ({"values"}, {"key"}),
    "update": ({"values", "where"}, set()),
    "counter": ({"column", "name"}, {"where"}),
    "sequence": ({"name"}, set()),
    **dict.fromkeys(METHODS, (set(), {*_CALLS})),
}


class StepCondition(ShortForm):
    """When a step happens: where the draft has a value, or SQL is true.

    Over HTTP also where an earlier call has kept an optional value.
    """

    short = "draft"

    draft: str | None = None
    made: OfRest[str | None] = None
    sql: OfSql[Sql | None] = None

    def faults(self) -> Iterator[str]:
        if sum(value is not None for value in (self.draft, self.made, self.sql)) != 1:
            yield "takes a name of the draft, or one of made and sql"


def _repeated(value: Any) -> str:
    return "<list>" if isinstance(value, list | tuple) else "<slot>"


_Items = Listed[Annotated[dict[str, WrittenValue], Field(min_length=1)]]
# What a step is repeated for: each slot row, or each group of a list.
Each = Annotated[
    Annotated[Literal["slot"], Tag("<slot>")]
    | Annotated[_Items, Field(min_length=1), Tag("<list>")],
    Discriminator(_repeated),
]


class StepMap(MethodCall):
    """One step of a booking.

    In a database it inserts or updates a row, increments a counter, or draws a sequence's number.
    `name` is what later steps call its key or number. Over HTTP it is a call, and `keep` takes
    values out of the answer. `for` limits a step to bookings of a slot row or of any other time,
    `if` to those that have the named value of the draft, or for which an SQL condition is true.
    `each: slot` repeats it for each slot row that the time takes, and `each` with a list for each
    of its groups, whose values `{each: NAME}` stands for. A post may say that it only `reads`.
    `undo` is the call that takes a step back.
    """

    kinds = tuple(_KINDS)
    fails = "bad-step"

    insert: OfSql[str | None] = None
    update: OfSql[str | None] = None
    counter: OfSql[str | None] = None
    sequence: OfSql[str | None] = None
    for_: Literal["slot", "time"] | None = Field(default=None, alias="for")
    if_: StepCondition | None = Field(default=None, alias="if")
    each: Each | None = None
    key: OfSql[Listed[str] | str | None] = None
    column: OfSql[str | None] = None
    where: OfSql[Sql | None] = None
    name: OfSql[str | None] = None
    values: OfSql[dict[str, WrittenValue]] = Field(default_factory=dict)
    keep: OfRest[dict[str, StepKept]] = Field(default_factory=dict)
    reads: OfRest[bool] = False
    undo: OfRest[AnyCall | None] = None

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        kinds = (name for name in _KINDS if getattr(self, name) is not None)
        if kind := next(kinds, None):
            yield from self._amiss(kind)

    def _amiss(self, kind: str) -> Iterator[str]:
        needs, may = _KINDS[kind]
        names: tuple[str, ...] = ("key", "column", "where", "name", "values", *_CALLS)
        given = {name for name in names if getattr(self, name)}
        if missing := needs - given:
            article = "an" if kind[0] in "iu" else "a"
            yield f"{article} {kind} needs {' and '.join(sorted(missing))}"
        if strange := given - needs - may - {"name"}:
            yield f"{' and '.join(sorted(strange))} does not go with {kind}"
        if self.each and kind in ("counter", "sequence"):
            yield f"each does not go with {kind}"
        if self.items and self.name is not None:
            yield "a step with a list in each happens several times, so it has no name for others"
        if self.each == "slot" and self.for_ != "slot":
            yield "each: slot needs for: slot, as only such times take rows"
        if self.reads and self.post is None:
            yield "reads goes with post: a get only reads, and what changes something does not"
        if self.undo is not None and not self.writes:
            yield "undo goes with a call that writes"

    @property
    def writes(self) -> bool:
        """Whether a call changes something in the practice system."""
        return self.get is None and not self.reads

    @property
    def items(self) -> tuple[dict[str, WrittenValue], ...]:
        """The groups for which it happens; () where `each` is no list."""
        return self.each if isinstance(self.each, tuple) else ()

    @property
    def written(self) -> Iterator[WrittenValue]:
        """All values that it may write."""
        yield from self.values.values()
        for item in self.items:
            yield from item.values()

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


class BookingMap(Strict):
    """How an appointment is booked: the steps, in order.

    `appointment` names the step or the kept value that has the new appointment's key. `reference`
    is where the draft's reference stands in an appointment. The tables in `without_transactions`
    may be written though that cannot be undone. `find` looks a booking up, and `cancel` withdraws
    one. `settle` are the seconds for which a call may still have effects. `lock` is a statement
    that keeps other bookings of `:vet`, or of `:schedule`, away until this one ends.
    """

    appointment: str = Field(examples=["visit"])
    reference: Expr | None = None
    lock: OfSql[Sql | None] = None
    steps: Listed[StepMap] = Field(min_length=1)
    without_transactions: OfSql[Listed[str]] = ()
    find: OfRest[RowSource | None] = None
    cancel: OfRest[AnyCall | None] = None
    settle: OfRest[int] = Field(default=30, ge=0, le=600)

    @property
    def can_withdraw(self) -> bool:
        """Whether a call takes an appointment back: `cancel`, or the `undo` of what makes it."""
        makers = [step for step in self.steps if self.appointment in step.keep]
        return self.cancel is not None or all(step.undo is not None for step in makers)


class TokenMap(Strict):
    """How calls carry a token, and how many seconds it lives where no answer says so."""

    lifetime: int | None = Field(default=None, ge=5, le=86_400)
    header: HeaderName = "Authorization"
    form: Form = "Bearer {}"


class Login(AnyCall, TokenMap):
    """The call that gets a token."""

    token: Expr = Field(examples=["access_token"])
    seconds: Expr | None = None


class OAuth(TokenMap):
    """A token of OAuth 2 for the gateway itself.

    It is asked for at `url`, by a `grant`. `client` names the secrets that are the client's id and
    its secret, which go into a header (`basic`) or into the form (`body`). `more` are further
    parameters of the form.
    """

    fails = "bad-call"

    url: Annotated[str, checked(_token_address)] = Field(examples=["/oauth2/token"])
    grant: Literal["client_credentials", "refresh_token"] = "client_credentials"
    client: Listed[Literal["user", "password", "token"]] = Field(
        default=("user", "password"), min_length=2, max_length=2
    )
    authenticate: Literal["basic", "body"] = "basic"
    scope: str | None = Field(default=None, min_length=1)
    more: dict[str, str] = Field(default_factory=dict)

    def faults(self) -> Iterator[str]:
        own = {"grant_type", "client_id", "client_secret", "scope", "refresh_token"}
        if strange := sorted(own & self.more.keys()):
            yield f"{strange[0]} is no further parameter: the gateway writes it by itself"


class BackendMap(Strict):
    """What all calls to a backend of JSON over HTTP have in common."""

    headers: dict[HeaderName, Tree] = Field(default_factory=dict)
    basic: Listed[Literal["user", "password", "token"]] | None = Field(
        default=None, min_length=2, max_length=2
    )
    login: Login | None = None
    oauth: OAuth | None = None
    nulls: Nulls = "send"
    errors: Listed[ErrorRule] = ()
    ping: CallPath | None = None

    def faults(self) -> Iterator[str]:
        if self.login is not None and self.oauth is not None:
            yield "takes login or oauth, not both: each of them gets a token"
        tokens = self.oauth or self.login
        if (
            self.basic is not None
            and tokens is not None
            and tokens.header.lower() == "authorization"
        ):
            name = "login" if self.oauth is None else "oauth"
            yield f"basic and {name} both write the header Authorization: leave basic out"


def _reason(written: str) -> None:
    if not any(map(str.isalpha, written)):
        raise Misfit("wrong-kind", "needs a reason: why this practice breaks the law and is right")


Reason = Annotated[str, checked(_reason)]


def _not_empty(resources: dict[str, Any]) -> dict[str, Any]:
    if not resources:
        text = "nothing is mapped yet: confirm the guesses in the comments, or write a resource"
        raise Misfit("missing-part", text)
    return resources


class MappingFile(Strict):
    """A whole mapping file.

    It may leave out any resource, the diary and the booking. A diary that is left out is an empty
    one, without any time, and so is the booking, without any step. `accepted` are the laws that the
    mapping switches off, each with the reason. The named `expressions` stand in all others already.
    """

    version: Literal[2] = Field(examples=[2])
    zone: Zone = Field(examples=["Europe/Paris"])
    backend: OfRest[BackendMap] = Field(default_factory=BackendMap)
    expressions: dict[str, str] = Field(default_factory=dict)
    resources: Annotated[dict[str, ResourceMap], AfterValidator(_not_empty)] = Field(
        json_schema_extra={"minProperties": 1}
    )
    diary: DiaryMap = Field(default_factory=lambda: DiaryMap.model_construct(set()))
    booking: BookingMap = Field(
        default_factory=lambda: BookingMap.model_construct(set(), appointment="", steps=())
    )
    accepted: dict[str, Reason] = Field(default_factory=dict)

    def offers(self, part: Literal["diary", "booking"]) -> bool:
        """Returns whether the mapping has that part."""
        return part in self.model_fields_set

    @property
    def ids(self) -> dict[str, str]:
        """The kinds of ids of each resource and of each list inside one."""
        kinds = {name: resource.key.ids for name, resource in self.resources.items()}
        for name, resource in self.resources.items():
            for inner_name, inner in resource.lists.items():
                if inner.key is not None:
                    kinds[f"{name}/{inner_name}"] = inner.key.ids
        return kinds
