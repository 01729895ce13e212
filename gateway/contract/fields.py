"""Declares formats and fields: how a value looks on the wire, and how an incoming one is read."""

import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Any

# No control characters; a text of several lines may hold newlines.
_CONTROLS = r"\u0000-\u001f\u007f-\u009f"
_CONTROLS_BUT_NEWLINE = r"\u0000-\u0009\u000b-\u001f\u007f-\u009f"
# What a person at the clinic's desk does not see, or what makes them see another text than the one
# that was sent: the characters that programs show as nothing (Unicode's
# Default_Ignorable_Code_Point, such as zero-width spaces and joiners), the controls of the writing
# direction, the separators of lines and paragraphs, and annotations between lines.
_HIDDEN = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufeff\uffa0\ufff0-\ufffb"
)
_HIDDEN_FURTHER = (
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
# One of these may follow a sign, as emoji need it. A run of them can hide a text.
_SELECTORS = r"\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
UNSEEN = rf"[{_HIDDEN}{_HIDDEN_FURTHER}]|(?<=[{_SELECTORS}])[{_SELECTORS}]"

# Patterns of the interface's description. They name no character above U+FFFF, as not every tool
# reads one in a pattern, and no run of selectors: the field's description says the rest.
PLAIN_LINE = rf"^[^{_CONTROLS}]*$"
# The gateway strips a search before it counts its characters, of which there must be two.
SEARCH = rf"^\s*[^\s{_CONTROLS}][^{_CONTROLS}]*[^\s{_CONTROLS}]\s*$"
PLAIN_TEXT = rf"^[^{_CONTROLS_BUT_NEWLINE}{_HIDDEN}]*$"


Read = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of value.

    `schema` is its JSON Schema, `pattern` what a string on the wire must match as a whole,
    `problem` the end of a sentence that begins with the value's name. `read` turns a text into the
    value that the pipeline works with. It raises ValueError where it cannot.
    """

    name: str
    schema: Mapping[str, Any]
    problem: str
    pattern: str | None = None
    read: Read = str


UUID_PATTERN = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
TIME_PATTERN = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"
DATE_PATTERN = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"

_UUID, _DATE = re.compile(UUID_PATTERN), re.compile(DATE_PATTERN)
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
# A time as it may come in: with its offset, and parts of a second.
INSTANT_PATTERN = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_INSTANT = re.compile(INSTANT_PATTERN)
_DECIMAL = r"-?[0-9]+\.[0-9]{2}"


def _checked(form: re.Pattern[str], text: str) -> str:
    if form.fullmatch(text) is None:
        raise ValueError(text)
    return text


def read_uuid(text: str) -> str:
    """Returns the id as it is. Raises ValueError unless it is a lower-case UUID with hyphens."""
    return _checked(_UUID, text)


def read_instant(text: str) -> datetime:
    """Returns an RFC 3339 date-time in UTC. Raises ValueError for one without an offset."""
    try:
        return datetime.fromisoformat(_checked(_INSTANT, text).upper()).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(text) from error


def read_integer(text: str) -> int:
    """Returns a whole number. Raises ValueError for a plus sign or leading zeros."""
    return int(_checked(_WHOLE_NUMBER, text))


def write_instant(moment: datetime) -> str:
    """Returns ISO 8601 in UTC with a Z and whole seconds."""
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


UUID = Format(
    "uuid",
    {"type": "string", "format": "uuid", "pattern": f"^{UUID_PATTERN}$"},
    "must be a UUID in lower case, such as 0b9f6c1e-7a52-8d3b-9c41-5e2f8a6d7b10",
    UUID_PATTERN,
    read_uuid,
)
TEXT = Format("text", {"type": "string"}, "must be a string")
EMAIL = Format(
    "email", {"type": "string", "format": "email"}, "must be an e-mail address", r"[^@\s]+@[^@\s]+"
)
BOOLEAN = Format("boolean", {"type": "boolean"}, "must be true or false")
INTEGER = Format("integer", {"type": "integer"}, "must be a whole number", read=read_integer)
NUMBER = Format("number", {"type": "number"}, "must be a number", read=float)
INSTANT = Format(
    "date-time",
    {"type": "string", "format": "date-time"},
    "must be a date-time with its offset, such as 2026-03-01T09:00:00Z",
    TIME_PATTERN,
    read_instant,
)
DAY = Format(
    "date",
    {"type": "string", "format": "date"},
    "must be a date in the form YYYY-MM-DD",
    DATE_PATTERN,
    lambda text: date.fromisoformat(_checked(_DATE, text)),
)
MONEY, PERCENT = (
    Format(
        name,
        {"type": "string", "pattern": f"^{_DECIMAL}$", "examples": [example]},
        f'must be a decimal string with two places, such as "{example}"',
        _DECIMAL,
    )
    for name, example in (("money", "45.00"), ("percent", "20.00"))
)
COLOR = Format(
    "color",
    {"type": "string", "pattern": "^#[0-9A-Fa-f]{6}$"},
    "must be a colour such as #2E86AB",
    "#[0-9A-Fa-f]{6}",
)


@dataclass(frozen=True, slots=True)
class Field:
    """One member of a record.

    A field has a format; or `values`, where only these are allowed; or `fields`, where it is a list
    of objects. `many` makes it a list of plain values. `refers` names the resource that an id
    points to. `personal` marks what reaches a person or opens a door. `view` is what the schema of
    a masked value says beyond that of a whole one. `title` names one of the `fields`' objects for
    generated clients; `values` are named by the field. `to_come` marks a time that the clinic's
    booking window bounds.
    """

    name: str
    format: Format = TEXT
    summary: str = ""
    _: KW_ONLY
    values: tuple[str, ...] = ()
    fields: "tuple[Field, ...]" = ()
    many: bool = False
    refers: str | None = None
    required: bool = False
    default: Any = None
    longest: int | None = None
    example: str = ""
    personal: bool = False
    title: str = ""
    to_come: bool = False
    view: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def nullable(self) -> bool:
        """Whether the field may be null: all may but the id."""
        return self.name != "id"

    def schema(self) -> dict[str, Any]:
        """Returns the JSON Schema of a value that is not null."""
        if self.fields:
            members = {member.name: member.answer_schema() for member in self.fields}
            item = {"type": "object", "properties": members, "additionalProperties": False}
            named = {"title": self.title, **item, "required": list(members)}
            return {"type": "array", "items": named}
        schema = dict(self.format.schema)
        if self.values:
            schema["title"] = f"{self.name[0].upper()}{self.name[1:]}"
            schema["enum"] = list(self.values)
        if self.longest is not None:
            schema["maxLength"] = self.longest
        if self.example:
            schema["examples"] = [self.example]
        return {"type": "array", "items": schema} if self.many else schema

    def answer_schema(self) -> dict[str, Any]:
        """Returns the JSON Schema of the member in an answer, null included."""
        schema = self.schema()
        if self.nullable:
            schema["type"] = [schema["type"], "null"]
            if self.values:
                schema["enum"] = [*self.values, None]
        return schema | ({"description": self.summary} if self.summary else {}) | dict(self.view)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind of record, field by field in the order of the answers.

    `name` is the scope name in policies and mappings, `title` the schema name in OpenAPI.
    `class_name` is what generated clients call a record, where the title is a name of their own.
    A resource that is not `governed` is always shown whole.
    """

    name: str
    title: str
    summary: str
    fields: tuple[Field, ...]
    class_name: str = ""
    governed: bool = True
    paths: tuple[str, ...] = field(init=False)
    # the field at a path such as `phone` or `lines[].unitPrice`; KeyError if none
    at: Callable[[str], Field] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        members = dict(_paths(self.fields))
        paths = (path for path, member in members.items() if not member.fields)
        object.__setattr__(self, "paths", tuple(paths))
        object.__setattr__(self, "at", members.__getitem__)


Views = Mapping[str, Mapping[str, Any]]


def opened(
    fields: tuple[Field, ...],
    paths: Set[str],
    views: Views = MappingProxyType({}),
    prefix: str = "",
) -> tuple[Field, ...]:
    """Returns the fields that `paths` name; a list of objects has its open ones, or is left out.

    `views` holds what the schemas of masked fields say beyond those of whole ones, by path.
    """
    kept = []
    for member in fields:
        path = prefix + member.name
        if not member.fields:
            shown = replace(member, view=views[path]) if path in views else member
            kept += [shown] if path in paths else []
        elif inner := opened(member.fields, paths, views, f"{path}[]."):
            kept.append(replace(member, fields=inner))
    return tuple(kept)


def _paths(fields: tuple[Field, ...], prefix: str = "") -> Iterator[tuple[str, Field]]:
    for member in fields:
        yield prefix + member.name, member
        yield from _paths(member.fields, f"{prefix}{member.name}[].")
