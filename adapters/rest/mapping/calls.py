"""A call of a mapping: its path, what it is filled with, and what is taken of its answer."""

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

from adapters.mapping.conversion import Conversion, Scalar, Strict
from adapters.rest.paths import path_problem

METHODS = ("get", "post", "put", "patch", "delete")
SOURCES = ("draft", "made", "given", "secret", "constant")
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

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("is empty: write a text, or leave it out")
        if isinstance(value, int | float | list):
            raise ValueError("must be a text, or a group of names and values")  # noqa: TRY004
        if not isinstance(value, str):
            return value
        return {next(name for name in _SHORT if name in cls.model_fields): value}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        long = handler.resolve_ref_schema(handler(schema))
        needed = [each for each in long.get("required", ()) if each not in _SHORT]
        return long if needed else {"anyOf": [{"type": "string"}, long]}


# What a text alone stands for: the first of them that there is.
_SHORT = ("path", "get", "query")


class Found(OrText, Conversion):
    """A value of an answer: a path into the JSON, what is taken of it, and how it is written."""

    path: Expr
    match: Match | None = None
    plus: Expr | None = None


class Kept(OrText):
    """What a call of a booking leaves for later ones."""

    path: Expr
    match: Match | None = None


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
