"""The JSON Schema of a mapping's resources, for editors: the models', with the contract's names."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from adapters.base import FieldShape, Shapes
from adapters.mapping.conversion import CONVERTERS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TIME = FieldShape(format="date-time")

Schema = dict[str, Any]


class SchemaMaker:
    """Makes the parts that depend on the contract, of the models' own `definitions`.

    `source` is the model that says where a field comes from, `needed` the fields of each resource
    that no mapping can leave out.
    """

    def __init__(
        self, definitions: Schema, source: str, needed: Mapping[str, Iterable[str]]
    ) -> None:
        self.definitions = definitions
        self._source = source
        self._needed = needed

    def resources(self, shapes: Shapes) -> Schema:
        """The group of all resources."""
        names = [name for name in shapes if name != "slots"]
        return members({name: self._resource(name, shapes[name]) for name in names}, required=names)

    def _resource(self, name: str, shapes: Mapping[str, FieldShape]) -> Schema:
        own = {path: each for path, each in shapes.items() if "[]" not in path and path != "id"}
        made = self._rows("ResourceMap", own, self._needed.get(name, ()))
        lists = dict.fromkeys(path.split("[].")[0] for path in shapes if "[]." in path)
        if lists:
            inner = {each: self._list(each, shapes) for each in lists}
            made["properties"]["lists"] = members(inner)
        else:
            del made["properties"]["lists"]
        return made

    def _list(self, name: str, shapes: Mapping[str, FieldShape]) -> Schema:
        prefix = f"{name}[]."
        own = {
            path.removeprefix(prefix): shape
            for path, shape in shapes.items()
            if path.startswith(prefix) and path != f"{prefix}id"
        }
        return self._rows("ListOf", own)

    def _rows(
        self, model: str, fields: Mapping[str, FieldShape], required: Iterable[str] = ()
    ) -> Schema:
        made: Schema = deepcopy(self.definitions[model])
        described = {
            name: {"description": _said(shape), "$ref": self.source_of(shape)}
            for name, shape in fields.items()
        }
        made["properties"]["fields"] = members(described, required=required)
        return made

    def source_of(self, shape: FieldShape) -> str:
        """The definition of values that make such a field: its converters, its codes' values."""
        name = " ".join([f"{self._source} of", shape.format, *shape.values]).replace("/", " ")
        if name not in self.definitions:
            made = deepcopy(self.definitions[self._source])
            long = made["anyOf"][-1]["properties"]
            names = [each for each, (_, makes) in CONVERTERS.items() if shape.format in makes]
            long["as"] = {"enum": names}
            if shape.values:
                values = {"enum": [*shape.values, None]}
                long["codes"] = {"type": "object", "additionalProperties": values}
            self.definitions[name] = made
        return f"#/$defs/{name}"


def members(members: Mapping[str, Schema], *, required: Iterable[str] = ()) -> Schema:
    made: Schema = {"type": "object", "properties": dict(members), "additionalProperties": False}
    needed = list(required)
    return made | ({"required": needed} if needed else {})


def _said(shape: FieldShape) -> str:
    """What a field is, for who writes its expression."""
    if shape.refers is not None:
        return f"The key of one of the {shape.refers}."
    if shape.values:
        return f"One of {', '.join(shape.values)}."
    return f"Several of {shape.format}." if shape.many else f"A value of the format {shape.format}."
