"""The mapping file of a practice system that speaks JSON over HTTP, as models.

What the models alone cannot see is checked in adapters/rest/checking.py; docs/connecting-json.md is
the reference.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    RootModel,
    Tag,
    model_validator,
)
from pydantic_core import CoreSchema

from adapters.conversion import Conversion, Listed, Scalar, Strict, Zone
from adapters.rest.paths import path_problem

METHODS = ("get", "post", "put", "patch", "delete")
SOURCES = ("draft", "made", "given", "secret", "constant")
SECRETS = ("user", "password", "token")
MEANINGS = ("slot taken", "not found", "rejected", "unavailable", "logged out", "unusable")
# The names in braces of a call's path.
BRACED = re.compile(r"\{(\w*)\}").findall


def _jmespath(expression: str) -> str:
    if problem := path_problem(expression):
        raise ValueError(problem)
    return expression


def _regular(expression: str) -> str:
    try:
        re.compile(expression)
    except re.error as error:
        raise ValueError(f"this is no regular expression: {error}") from error
    return expression


def _with_group(expression: str) -> str:
    if not re.compile(_regular(expression)).groups:
        raise ValueError("must have a group in parentheses: the part that is taken")
    return expression


def _one_place(form: str) -> str:
    if form.count("{}") != 1:
        raise ValueError("must have one {} where the value goes")
    return form


def _call_path(written: str) -> str:
    if not written.startswith("/") or set(written) & set("?#\\ "):
        raise ValueError("must be a path such as /clients/{id}; parameters go into query")
    for part in written.split("/")[1:]:
        whole = re.fullmatch(r"\{\w+\}|[^{}]*", part)
        if whole is None or part in (".", ".."):
            raise ValueError("each part between slashes is either plain or one name in braces")
    return written


Expr = Annotated[str, Field(min_length=1), AfterValidator(_jmespath)]
Regex = Annotated[str, Field(min_length=1), AfterValidator(_regular)]
Match = Annotated[str, Field(min_length=1), AfterValidator(_with_group)]
Form = Annotated[str, AfterValidator(_one_place)]
CallPath = Annotated[str, AfterValidator(_call_path)]


class OrText(Strict):
    """What may be written as a text alone."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        long = handler.resolve_ref_schema(handler(schema))
        needed = [each for each in long.get("required", ()) if each not in _SHORT]
        return long if needed else {"anyOf": [{"type": "string"}, long]}


# What a text alone stands for.
_SHORT = ("path", "query", "get")


class Found(OrText, Conversion):
    """A value of an answer: a path into the JSON, what is taken of it, and how it is written."""

    path: Expr
    match: Match | None = None
    plus: Expr | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value


class Kept(OrText):
    """What a call of a booking leaves for later ones."""

    path: Expr
    match: Match | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value


class Value(Conversion):
    """A value that is sent: where it comes from, how it is written, and the text round it."""

    draft: str | None = None
    made: str | None = None
    given: str | None = None
    secret: Literal["user", "password", "token"] | None = None
    constant: Any = None
    form: Form | None = None

    @model_validator(mode="after")
    def _one_source(self) -> "Value":
        named = [name for name in SOURCES if name in self.model_fields_set]
        if len(named) > 1:
            raise ValueError(f"takes one of {', '.join(SOURCES)}, not {' and '.join(named)}")
        return self


def _kind(value: Any) -> str:
    if isinstance(value, Value) or (
        isinstance(value, dict) and not value.keys().isdisjoint(SOURCES)
    ):
        return "<value>"
    if isinstance(value, dict):
        return "<group>"
    return "<list>" if isinstance(value, list) else "<plain>"


_Value = Annotated[Value, Tag("<value>")]
_Group = Annotated[dict[str, "Tree"], Tag("<group>")]
_List = Annotated[list["Tree"], Tag("<list>")]
_Plain = Annotated[Scalar, Tag("<plain>")]


class Tree(RootModel[Annotated[_Value | _Group | _List | _Plain, Discriminator(_kind)]]):
    """JSON with values in it."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        made = handler.resolve_ref_schema(handler(schema))
        kinds = made.pop("oneOf")
        for kind in kinds:
            if kind.get("type") == "object":  # a value is no group
                kind["not"] = {"anyOf": [{"required": [name]} for name in SOURCES]}
        return {**made, "anyOf": kinds}


class Call(OrText):
    """One request: its method and path, its parameters and its body."""

    get: CallPath | None = None
    post: CallPath | None = None
    put: CallPath | None = None
    patch: CallPath | None = None
    delete: CallPath | None = None
    query: dict[str, Tree] = Field(default_factory=dict)
    body: Tree | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"get": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_method(self) -> "Call":
        if len([name for name in METHODS if getattr(self, name) is not None]) != 1:
            raise ValueError(f"takes one of {', '.join(METHODS)}")
        if self.get is not None and self.body is not None:
            raise ValueError("get takes no body: write query")
        return self

    @property
    def method(self) -> str:
        """Its name, as the mapping writes it."""
        return next(name for name in METHODS if getattr(self, name) is not None)

    @property
    def path(self) -> str:
        """The path behind the backend's address."""
        return str(getattr(self, self.method))

    @property
    def names(self) -> list[str]:
        """The names in the path's braces."""
        return BRACED(self.path)


class One(Call):
    """Reads one record."""

    item: Expr = "@"


class Many(Call):
    """Reads an array of records."""

    items: Expr = "@"


class Paging(Strict):
    """How the backend parts a long list."""

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


class Paged(Many):
    """Reads an array of records that may come in pages."""

    page: Paging | None = None


class FilterBy(OrText, Conversion):
    """The parameter by which the backend filters."""

    query: str = Field(min_length=1)
    form: Form | None = None
    fields: Listed[str] | None = Field(default=None, min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"query": value} if isinstance(value, str) else value


class ListCall(Paged):
    """Reads the records of a resource."""

    filters: dict[str, FilterBy] = Field(default_factory=dict)
    sift: Listed[str] = ()
    details: bool = False
    key: Found | None = None


class ListOf(Strict):
    """A list inside each record."""

    items: Expr
    key: Found | None = None
    fields: dict[str, Found]


class ResourceMap(Strict):
    """One resource."""

    one: One | None = None
    list_: ListCall | None = Field(default=None, alias="list")
    where: Expr | None = None
    key: Found
    fields: dict[str, Found]
    lists: dict[str, ListOf] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _readable(self) -> "ResourceMap":
        if self.one is None and self.list_ is None:
            raise ValueError("takes one, list, or both: there must be a way to read it")
        return self


class HoursCall(Many):
    """Weekly working hours of a vet, asked of the backend."""

    where: Expr | None = None
    vet: Found | None = None
    weekday: Found
    start: Expr
    end: Expr


Clock = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-4]):[0-5][0-9]$")]
Weekday = Annotated[int, Field(ge=1, le=7)]


class HoursWritten(Strict):
    """Weekly working hours, written down; without `vets` they are everybody's."""

    days: Listed[Weekday] = Field(min_length=1)
    start: Clock
    end: Clock
    vets: Listed[int | str] | None = Field(default=None, min_length=1)


def _source_of_hours(value: Any) -> str:
    written = isinstance(value, HoursWritten) or (isinstance(value, dict) and "days" in value)
    return "<written>" if written else "<call>"


Hours = Annotated[
    Annotated[HoursWritten, Tag("<written>")] | Annotated[HoursCall, Tag("<call>")],
    Discriminator(_source_of_hours),
]


class Times(Paged):
    """Spans of time of a vet: what blocks, or what is free."""

    where: Expr | None = None
    key: Found | None = None
    vet: Found | None = None
    start: Found
    end: Found | None = None
    minutes: Expr | None = None
    endless: bool = False
    longest: int = Field(default=1, ge=1, le=366)


class Diary(Strict):
    """How free times come about; `step` and `duration` in minutes."""

    step: int = Field(default=15, ge=5, le=240)
    duration: int = Field(default=30, ge=5, le=1440)
    hours: Listed[Hours] = ()
    free: Listed[Times] = ()
    busy: Listed[Times] = ()

    @model_validator(mode="after")
    def _some_source(self) -> "Diary":
        if bool(self.hours) == bool(self.free):
            raise ValueError("takes either hours or free")
        if self.hours and not self.busy:
            raise ValueError("busy is missing: beside hours it must be said what blocks")
        return self


class Step(Call):
    """One call of a booking; `keep` takes values out of its answer."""

    keep: dict[str, Kept] = Field(default_factory=dict)


class Booking(Strict):
    """The calls of a booking, how to look one up, and how to withdraw one."""

    appointment: str
    reference: Expr | None = None
    calls: Listed[Step] = Field(min_length=1)
    find: Paged
    cancel: Call | None = None
    settle: int = Field(default=30, ge=0, le=600)


class Login(Call):
    """Gets a token."""

    token: Expr
    seconds: Expr | None = None
    lifetime: int | None = Field(default=None, ge=5, le=86_400)
    header: str = "Authorization"
    form: Form = "Bearer {}"


class ErrorRule(Strict):
    """What an answer means that fits all the conditions."""

    status: Listed[int] | int | None = None
    path: Expr | None = None
    is_: Listed[Scalar] | None = Field(default=None, alias="is", min_length=1)
    text: Regex | None = None
    means: Literal["slot taken", "not found", "rejected", "unavailable", "logged out", "unusable"]

    @model_validator(mode="after")
    def _some_condition(self) -> "ErrorRule":
        if self.status is None and self.is_ is None and self.text is None:
            raise ValueError("needs a condition: status, path and is, or text")
        if (self.is_ is not None and self.path is None) or (
            self.path is not None and self.is_ is None and self.text is None
        ):
            raise ValueError("path goes with is or text, and is with path")
        if self.text is not None and self.path is None and self._good_alone():
            raise ValueError(
                "text needs path in an answer of 2xx, which may repeat what a partner wrote"
            )
        return self

    def _good_alone(self) -> bool:
        """Whether only answers that say that all is well are meant."""
        statuses = (self.status,) if isinstance(self.status, int) else self.status
        return statuses is not None and all(200 <= each < 300 for each in statuses)


class Backend(Strict):
    """How to speak to the backend, whatever is asked of it."""

    headers: dict[str, Tree] = Field(default_factory=dict)
    basic: Listed[Literal["user", "password", "token"]] | None = Field(
        default=None, min_length=2, max_length=2
    )
    login: Login | None = None
    errors: Listed[ErrorRule] = ()
    ping: CallPath | None = None


class Mapping(Strict):
    """A whole mapping file."""

    version: Literal[1]
    zone: Zone
    backend: Backend = Field(default_factory=Backend)
    resources: dict[str, ResourceMap]
    diary: Diary
    booking: Booking
