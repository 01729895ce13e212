"""The JSON Schema of a mapping file, for editors: the models', with the contract's own names."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from adapters.base import FieldShape, Shapes
from adapters.conversion import CONVERTERS, DRAFT_FIELDS, DRAFT_KEYS
from adapters.sql.load import NEEDED
from adapters.sql.mapping import Mapping as MappingFile

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TIME = FieldShape(format="date-time")

Schema = dict[str, Any]


def mapping_schema(shapes: Shapes) -> Schema:
    """The schema of a mapping for the `sql` adapter, with resources and fields of these shapes."""
    schema = MappingFile.model_json_schema(by_alias=True)
    made = _Maker(schema["$defs"])
    names = [name for name in shapes if name != "slots"]
    schema["properties"]["resources"] = _members(
        {name: made.resource(name, shapes[name]) for name in names}, required=names
    )
    made.value()
    made.spans()
    return {"$schema": _DIALECT, **schema, "title": "Mapping of a practice database"}


class _Maker:
    """Makes the parts that depend on the contract, of the models' own definitions."""

    def __init__(self, definitions: Schema) -> None:
        self._definitions = definitions

    def resource(self, name: str, shapes: Mapping[str, FieldShape]) -> Schema:
        own = {path: each for path, each in shapes.items() if "[]" not in path and path != "id"}
        made = self._rows("ResourceMap", own, NEEDED.get(name, ()))
        lists = dict.fromkeys(path.split("[].")[0] for path in shapes if "[]." in path)
        if lists:
            inner = {each: self._list(each, shapes) for each in lists}
            made["properties"]["lists"] = _members(inner)
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
        made: Schema = deepcopy(self._definitions[model])
        described = {
            name: {"description": _said(shape), "$ref": self._expression(shape)}
            for name, shape in fields.items()
        }
        made["properties"]["fields"] = _members(described, required=required)
        return made

    def _expression(self, shape: FieldShape) -> str:
        """The definition of values that make such a field: its converters, its codes' values."""
        name = " ".join(["Expression of", shape.format, *shape.values]).replace("/", " ")
        if name not in self._definitions:
            made = deepcopy(self._definitions["Expression"])
            long = made["anyOf"][-1]["properties"]
            names = [each for each, (_, makes) in CONVERTERS.items() if shape.format in makes]
            long["as"] = {"enum": names}
            if shape.values:
                values = {"enum": [*shape.values, None]}
                long["codes"] = {"type": "object", "additionalProperties": values}
            self._definitions[name] = made
        return f"#/$defs/{name}"

    def value(self) -> None:
        """What a booking writes: the draft's names, and every converter."""
        long = self._definitions["Value"]["anyOf"][-1]["properties"]
        long["draft"] = {"enum": [*DRAFT_FIELDS, *DRAFT_KEYS]}
        long["as"] = {"enum": list(CONVERTERS)}

    def spans(self) -> None:
        """The starts and ends of the diary are times."""
        time = {"$ref": self._expression(_TIME)}
        for model in ("Busy", "SlotRows"):
            self._definitions[model]["properties"]["start"] = time
            self._definitions[model]["properties"]["end"] = time


def _members(members: Mapping[str, Schema], *, required: Iterable[str] = ()) -> Schema:
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
