"""Makes requests of the mapping's calls, with values written as the backend writes them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

import orjson

from adapters.base import BackendNonsense, FieldShape, NotFound
from adapters.mapping.converters import Converters, conversion_name
from adapters.mapping.models import FORM, CallMap, SentValue, Tree, TreePart
from adapters.rest.client import JSON, Request
from adapters.rest.rules import Rules, rules_of

Shapes = Mapping[str, FieldShape]
# What stands as it is in a part of a path, and in a name or value of a query.
_PLAIN_PART = re.compile(r"[A-Za-z0-9_.~-]*").fullmatch
_PLAIN_QUERY = re.compile(r"[A-Za-z0-9_.~!$'()*,/:?@-]*").fullmatch
_ALSO_PLAIN = "!$'()*,/:?@"
# How each letter of ASCII is quoted there.
_QUOTED = {code: quote_plus(chr(code), safe=_ALSO_PLAIN) for code in range(128)}


class TemplateValues(NamedTuple):
    """The values for a call: `given` in the gateway's form, `made` as the backend gave them.

    `slots` are the raw keys of the slot rows that a booking takes, `made_of` what steps kept for
    each of them.
    """

    given: Mapping[str, Any] = MappingProxyType({})
    made: Mapping[str, Any] = MappingProxyType({})
    slots: Sequence[Any] = ()
    made_of: Sequence[dict[str, Any]] = ()

    def of_slot(self, number: int) -> "TemplateValues":
        """Returns the values for one of the slot rows."""
        made = {**self.made, **(self.made_of[number] if self.made_of else {})}
        return TemplateValues({**self.given, "slot": self.slots[number]}, made)


Fill = Callable[[TemplateValues], Any]
# Stands for what is left out.
NOTHING: Any = object()


class Templates:
    """Makes templates of a mapping; `shapes` are those of the values that may be given.

    With `omits` the bodies of calls lack what has no value, unless a call says otherwise.
    """

    def __init__(
        self, converters: Converters, secrets: Mapping[str, str], *, omits: bool = False
    ) -> None:
        self.converters = converters
        self.secrets = secrets
        self._omits = omits

    def call(self, call: CallMap, shapes: Shapes) -> "Endpoint":
        omits = self._omits if call.nulls is None else call.nulls == "omit"
        body = None if call.body is None else self.tree(call.body, shapes)
        return Endpoint(
            method=call.method.upper(),
            label=f"{call.method.upper()} {call.path}",
            parts=[
                self._value_of(part[1:-1], shapes) if part.startswith("{") else quoted(part)
                for part in call.path.split("/")[1:]
            ],
            query=[(name, self.tree(tree, shapes)) for name, tree in call.query.items()],
            body=_without_nulls(body) if body is not None and omits else body,
            content=call.content or JSON,
            headers=[(name, self.tree(tree, shapes)) for name, tree in call.headers.items()],
            rules=rules_of(call.errors),
        )

    def tree(self, tree: Tree, shapes: Shapes) -> Fill:
        """Returns what fills a tree of JSON with values."""
        root: Any = tree.root
        if isinstance(root, SentValue):
            return self._value(root, shapes)
        if isinstance(root, TreePart):
            return self._part(root, shapes)
        if isinstance(root, dict):
            members = {name: self.tree(inner, shapes) for name, inner in root.items()}
            return lambda values: {
                name: value
                for name, fill in members.items()
                if (value := fill(values)) is not NOTHING
            }
        if isinstance(root, list):
            items = [self.tree(inner, shapes) for inner in root]
            return lambda values: [
                value for fill in items if (value := fill(values)) is not NOTHING
            ]
        return lambda values: root

    def _part(self, part: TreePart, shapes: Shapes) -> Fill:
        """Returns what fills a part once for each slot row, or if the draft has a value."""
        fill, name = self.tree(part.then, shapes), part.if_
        if name is None:
            return lambda values: [
                value
                for number in range(len(values.slots))
                if (value := fill(values.of_slot(number))) is not NOTHING
            ]
        return lambda values: NOTHING if values.given.get(name) is None else fill(values)

    def _value(self, value: SentValue, shapes: Shapes) -> Fill:
        fill, form = self._source(value, shapes), value.form
        if value.given is not None and shapes[value.given].many:
            return _listed(fill, form, value.separator)
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
        if shape.many:
            return lambda values: values.given.get(name)
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


def _listed(fill: Fill, form: str | None, separator: str | None) -> Fill:
    """Returns what writes one text, or each of several; with a separator these are one text."""

    def written(values: TemplateValues) -> Any:
        inner = fill(values)
        many = inner if isinstance(inner, list) else [inner]
        texts = [form.format(text_of(each)) if form else text_of(each) for each in many]
        if separator is not None:
            return separator.join(texts)
        return texts if isinstance(inner, list) else texts[0]

    return written


def _without_nulls(fill: Fill) -> Fill:
    """Returns what fills the body without members that have no value, or nothing in them."""

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            members = ((name, kept(inner)) for name, inner in value.items())
            left: Any = {name: inner for name, inner in members if inner is not None}
        elif isinstance(value, list):
            left = [inner for item in value if (inner := kept(item)) is not None]
        else:
            return value
        return None if value and not left else left

    return lambda values: kept(fill(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A call of the mapping, ready to be filled; `parts` of its path are quoted texts, or fills.

    `rules` are those for its answers alone.
    """

    method: str
    label: str
    parts: list[str | Fill]
    query: list[tuple[str, Fill]]
    body: Fill | None
    content: str = JSON
    headers: Sequence[tuple[str, Fill]] = ()
    rules: Rules = ()

    def request(self, values: TemplateValues, more: Iterable[tuple[str, Any]] = ()) -> Request:
        """Returns the request; `more` are further parameters, in the body where there is one."""
        parts = [
            part if isinstance(part, str) else quoted(_path_part(part(values), self.label))
            for part in self.parts
        ]
        target = "/" + "/".join(parts)
        query = [(name, fill(values)) for name, fill in self.query]
        headers = header_texts(self.headers, values)
        body, content = None, self.content
        if self.body is None:
            query += more
        else:
            tree = self.body(values)
            if content == FORM:
                content = FORM_TYPE
                members = tree.items() if isinstance(tree, dict) else ()
                body = pairs_text([*members, *more]).encode()
            else:
                for name, value in more:
                    tree = _with_member(tree, name.split("."), value)
                body = None if tree is NOTHING else orjson.dumps(tree)
        made = Request(self.label, self.method, target, body, content, headers, self.rules)
        return extended(made, query)

    def further(
        self, first: Request, values: TemplateValues, more: Sequence[tuple[str, Any]]
    ) -> Request:
        """Returns a request made of those values, with further parameters."""
        return extended(first, more) if self.body is None else self.request(values, more)


def header_texts(headers: Iterable[tuple[str, Fill]], values: TemplateValues) -> dict[str, str]:
    """Returns the headers that have a value."""
    filled = ((name, fill(values)) for name, fill in headers)
    return {name: text_of(value) for name, value in filled if value not in (None, NOTHING)}


def extended(request: Request, more: Iterable[tuple[str, Any]]) -> Request:
    """Returns the request with further parameters in its query."""
    pairs = pairs_text(more)
    if not pairs:
        return request
    begin = "&" if "?" in request.target else "?"
    return request._replace(target=f"{request.target}{begin}{pairs}")


FORM_TYPE = "application/x-www-form-urlencoded"


def _with_member(tree: Any, way: Sequence[str], value: Any) -> Any:
    """Returns the tree with a value at that way into it; a value that is None adds nothing."""
    if value is None:
        return tree
    inner = tree if isinstance(tree, dict) else {}
    first, *rest = way
    return {**inner, first: _with_member(inner.get(first), rest, value) if rest else value}


def pairs_text(pairs: Iterable[tuple[str, Any]]) -> str:
    """Returns parameters as a query or form has them: a list gives several, None gives none."""
    each = (
        (name, one)
        for name, value in pairs
        for one in (value if isinstance(value, list | tuple) else (value,))
        if one is not None and one is not NOTHING
    )
    return "&".join(
        f"{_quoted_in_query(name)}={_quoted_in_query(text_of(value))}" for name, value in each
    )


def _path_part(value: Any, label: str) -> str:
    """Returns a part of a path. Raises BackendNonsense for an empty one: all would be meant."""
    part = "" if value is None else text_of(value)
    if part in (".", ".."):
        raise NotFound("no id looks like that")
    if not part:
        raise BackendNonsense(f"{label}: there is no value for a name in the path")
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
