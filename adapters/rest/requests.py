"""Makes requests of the mapping's calls, with values written as the backend writes them."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

import orjson

from adapters.base import BackendNonsense, FieldShape, NotFound
from adapters.mapping.converters import Converters, conversion_name
from adapters.mapping.models import CallMap, SentValue, Tree
from adapters.rest.client import Request

Shapes = Mapping[str, FieldShape]
# What stands as it is in a part of a path, and in a name or value of a query.
_PLAIN_PART = re.compile(r"[A-Za-z0-9_.~-]*").fullmatch
_PLAIN_QUERY = re.compile(r"[A-Za-z0-9_.~!$'()*,/:?@-]*").fullmatch
_ALSO_PLAIN = "!$'()*,/:?@"
# How each letter of ASCII is quoted there.
_QUOTED = {code: quote_plus(chr(code), safe=_ALSO_PLAIN) for code in range(128)}


class TemplateValues(NamedTuple):
    """The values for a call: `given` in the gateway's form, `made` as the backend gave them."""

    given: Mapping[str, Any] = MappingProxyType({})
    made: Mapping[str, Any] = MappingProxyType({})


Fill = Callable[[TemplateValues], Any]


class Templates:
    """Makes templates of a mapping; `shapes` are those of the values that may be given."""

    def __init__(self, converters: Converters, secrets: Mapping[str, str]) -> None:
        self.converters = converters
        self.secrets = secrets

    def call(self, call: CallMap, shapes: Shapes) -> "Endpoint":
        body: Tree | None = getattr(call, "body", None)
        return Endpoint(
            method=call.method.upper(),
            label=f"{call.method.upper()} {call.path}",
            parts=[
                self._value_of(part[1:-1], shapes) if part.startswith("{") else quoted(part)
                for part in call.path.split("/")[1:]
            ],
            query=[(name, self.tree(tree, shapes)) for name, tree in call.query.items()],
            body=None if body is None else self.tree(body, shapes),
        )

    def tree(self, tree: Tree, shapes: Shapes) -> Fill:
        """Returns what fills a tree of JSON with values."""
        root: Any = tree.root
        if isinstance(root, SentValue):
            return self._value(root, shapes)
        if isinstance(root, dict):
            members = {name: self.tree(inner, shapes) for name, inner in root.items()}
            return lambda values: {name: fill(values) for name, fill in members.items()}
        if isinstance(root, list):
            items = [self.tree(inner, shapes) for inner in root]
            return lambda values: [fill(values) for fill in items]
        return lambda values: root

    def _value(self, value: SentValue, shapes: Shapes) -> Fill:
        fill, form = self._source(value, shapes), value.form
        if form is None:
            return fill
        return lambda values: (
            None if (inner := fill(values)) is None else form.format(text_of(inner))
        )

    def _value_of(self, name: str, shapes: Shapes) -> Fill:
        value = SentValue(given=name) if name in shapes else SentValue(made=name)
        return self._source(value, shapes)

    def _source(self, value: SentValue, shapes: Shapes) -> Fill:
        """Returns what writes the value as the backend does; None where there is none."""
        name = getattr(value, value.origin)
        if value.origin == "made":
            return partial(_made, name)
        if value.origin in ("constant", "secret"):
            constant = self.secrets[name] if value.origin == "secret" else name
            return lambda values: constant
        shape = shapes[name]
        converter = self.converters.make(value, shape)
        plain_json = conversion_name(value, shape) == "boolean" and value.yes is None

        def fill(values: TemplateValues) -> Any:
            given = values.given.get(name)
            if given is None or (plain_json and isinstance(given, bool)):
                return given
            if raw := converter.encode(given):
                return raw[0]
            if shape.format == "uuid":
                raise NotFound(f"{name} names nothing")
            raise BackendNonsense(f"the mapping has no way to write this {name}")

        return fill


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A call of the mapping, ready to be filled; `parts` of its path are quoted texts, or fills."""

    method: str
    label: str
    parts: list[str | Fill]
    query: list[tuple[str, Fill]]
    body: Fill | None

    def request(self, values: TemplateValues, more: Iterable[tuple[str, Any]] = ()) -> Request:
        """Returns the request; `more` are further parameters."""
        parts = [
            part if isinstance(part, str) else quoted(_path_part(part(values)))
            for part in self.parts
        ]
        body = None if self.body is None else orjson.dumps(self.body(values))
        made = Request(self.label, self.method, "/" + "/".join(parts), body)
        return extended(made, [*((name, fill(values)) for name, fill in self.query), *more])


def extended(request: Request, more: Iterable[tuple[str, Any]]) -> Request:
    """Returns the request with further parameters. What has no value is left out."""
    pairs = [
        f"{_quoted_in_query(name)}={_quoted_in_query(text_of(value))}"
        for name, value in more
        if value is not None
    ]
    if not pairs:
        return request
    label, method, target, body = request
    begin = "&" if "?" in target else "?"
    return Request(label, method, f"{target}{begin}{'&'.join(pairs)}", body)


def _path_part(value: Any) -> str:
    part = "" if value is None else text_of(value)
    if part in (".", ".."):
        raise NotFound("no id looks like that")
    return part


def quoted(part: str) -> str:
    """Returns a part of a path, quoted so that a slash or ? in an id stays within."""
    return part if _PLAIN_PART(part) else quote(part, safe="")


def _quoted_in_query(part: str) -> str:
    if _PLAIN_QUERY(part):
        return part
    return part.translate(_QUOTED) if part.isascii() else quote_plus(part, safe=_ALSO_PLAIN)


def text_of(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _made(name: str, values: TemplateValues) -> Any:
    """Returns what an earlier step kept. Raises BackendNonsense where none did."""
    if name not in values.made:
        raise BackendNonsense(f"no step of this booking kept {name}")
    return values.made[name]
