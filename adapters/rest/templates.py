"""What is sent: calls of the mapping made into requests, values written as the backend does."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adapters.base import BackendNonsense, FieldShape, NotFound
from adapters.mapping.conversion import Conversion, conversion_name
from adapters.mapping.converters import Converters
from adapters.mapping.models import CallMap, SentValue, Tree
from adapters.rest.client import Request

Shapes = Mapping[str, FieldShape]


@dataclass(frozen=True, slots=True)
class Values:
    """What a template is filled with: by name in the gateway's form, and as the backend gave it."""

    given: Mapping[str, Any] = field(default_factory=dict)
    made: Mapping[str, Any] = field(default_factory=dict)


Fill = Callable[[Values], Any]


class Templates:
    """Makes templates of a mapping."""

    def __init__(
        self,
        converters: Converters,
        secrets: Mapping[str, str],
    ) -> None:
        self.converters = converters
        self.secrets = secrets

    def call(self, call: CallMap, shapes: Shapes) -> "Endpoint":
        """The call with what it is filled with; `shapes` are those of the values' names."""
        return Endpoint(
            call,
            [self._part(part, shapes) for part in call.path.split("/")[1:]],
            [(name, self.tree(each, shapes)) for name, each in call.query.items()],
            None if (body := getattr(call, "body", None)) is None else self.tree(body, shapes),
        )

    def tree(self, tree: Tree, shapes: Shapes) -> Fill:
        """JSON whose values are put in when it is filled."""
        root: Any = tree.root
        if isinstance(root, SentValue):
            return self.value(root, shapes)
        if isinstance(root, dict):
            members = {name: self.tree(each, shapes) for name, each in root.items()}
            return lambda values: {name: fill(values) for name, fill in members.items()}
        if isinstance(root, list):
            items = [self.tree(each, shapes) for each in root]
            return lambda values: [fill(values) for fill in items]
        return lambda values: root

    def value(self, value: SentValue, shapes: Shapes) -> Fill:
        """One value, written as it says, with the text round it."""
        fill = self._source(value, shapes)
        form = value.form
        if form is None:
            return fill

        def formed(values: Values) -> Any:
            found = fill(values)
            return None if found is None else form.format(text_of(found))

        return formed

    def written(self, name: str, conversion: Conversion, shape: FieldShape) -> Fill:
        """The value of that name in the backend's own writing; None where there is none."""
        converter = self.converters.make(conversion, shape)
        plain_json = conversion_name(conversion, shape) == "boolean" and conversion.yes is None

        def fill(values: Values) -> Any:
            found = values.given.get(name)
            if found is None or (plain_json and isinstance(found, bool)):
                return found
            raw = converter.encode(found)
            if not raw:
                if shape.format == "uuid":
                    raise NotFound(f"{name} names nothing")
                raise BackendNonsense(f"the mapping has no way to write this {name}")
            return raw[0]

        return fill

    def _source(self, value: SentValue, shapes: Shapes) -> Fill:
        source = value.origin
        named = getattr(value, source)
        if source == "constant":
            return lambda values: named
        if source == "secret":
            secret = self.secrets[named]
            return lambda values: secret
        if source == "made":
            return lambda values: values.made[named]
        return self.written(named, value, shapes[named])

    def _part(self, part: str, shapes: Shapes) -> Fill:
        if not part.startswith("{"):
            return lambda values: part
        name = part[1:-1]
        if name in shapes:
            return self.written(name, Conversion(), shapes[name])
        return lambda values: values.made[name]


class Endpoint:
    """A call of the mapping, ready to be filled."""

    def __init__(
        self,
        call: CallMap,
        parts: Iterable[Fill],
        query: Iterable[tuple[str, Fill]],
        body: Fill | None,
    ) -> None:
        self.label = f"{call.method.upper()} {call.path}"
        self.method = call.method.upper()
        self._parts = list(parts)
        self._query = list(query)
        self._body = body

    def request(self, values: Values, more: Iterable[tuple[str, Any]] = ()) -> Request:
        """The request; `more` are further parameters."""
        query = [(name, fill(values)) for name, fill in self._query]
        return Request(
            label=self.label,
            method=self.method,
            parts=tuple(_path_part(fill(values)) for fill in self._parts),
            query=tuple(
                (name, text_of(each)) for name, each in [*query, *more] if each is not None
            ),
            body=None if self._body is None else self._body(values),
            sends_body=self._body is not None,
        )


def _path_part(value: Any) -> str:
    part = "" if value is None else text_of(value)
    if part in (".", ".."):
        raise NotFound("no id looks like that")
    return part


def text_of(value: Any) -> str:
    """A value as it stands in an address."""
    return str(value).lower() if isinstance(value, bool) else str(value)
