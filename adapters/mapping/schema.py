"""Makes the JSON Schema of a mapping, for editors, from the models and the contract's names."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from adapters.base import FieldShape, Shapes, inside, lists_in
from adapters.mapping import models
from adapters.mapping.checker import DRAFT, GIVEN, LAWS, NEEDED, REQUIRED, SEARCH, TIME, UNLISTED
from adapters.mapping.conversion import Strict
from adapters.mapping.converters import CONVERTERS
from adapters.mapping.models import CallMap, MappingFile

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TITLES = {"sql": "Mapping of a practice database", "rest": "Mapping of a practice system's JSON"}
Schema = dict[str, Any]


def mapping_schema(shapes: Shapes, adapter: str) -> Schema:
    """Returns the schema of a mapping for that adapter, with these resources and fields."""
    schema: Schema = MappingFile.model_json_schema(by_alias=True)
    made = _Maker(schema["$defs"], adapter, shapes)
    made.only_of(schema, MappingFile)
    for name, definition in schema["$defs"].items():
        model = getattr(models, name, None)
        if isinstance(model, type) and issubclass(model, Strict):
            made.only_of(_long(definition), model)
    made.values()
    schema["properties"]["resources"] = made.resources()
    schema["properties"]["accepted"] = _members(
        {name: {"type": "string", "description": f"{law.title}."} for name, law in LAWS.items()}
    )
    return {"$schema": DIALECT, **schema, "title": TITLES[adapter]}


def _long(definition: Schema) -> Schema:
    """Returns the long form of what may be written as a text."""
    long: Schema = definition["anyOf"][-1] if "anyOf" in definition else definition
    return long


@dataclass(slots=True)
class _Maker:
    """Adapts the models' definitions to the adapter and to the contract."""

    definitions: Schema
    adapter: str
    shapes: Shapes

    def only_of(self, definition: Schema, model: type[Strict]) -> None:
        """Leaves out what goes with the other adapter, and requires what this one needs."""
        for name in model.only_with("rest" if self.adapter == "sql" else "sql"):
            definition["properties"].pop(name, None)
        more = set(REQUIRED[self.adapter].get(model.__name__, ()))
        if self.adapter == "rest" and issubclass(model, CallMap):
            more.discard("get")
            if model.least or model.__name__ in REQUIRED["rest"]:
                definition["oneOf"] = [{"required": [name]} for name in model.kinds]
        if more:
            definition["required"] = sorted({*definition.get("required", ()), *more})

    def values(self) -> None:
        """Narrows what is written and sent, the diary's times, and the converters."""
        fields = sorted({path for own in self.shapes.values() for path in own})
        for name in ("SentValue", "WrittenValue"):
            own = _long(self.definitions[name])["properties"]
            own["draft"] = {"enum": [*DRAFT]}
            own["as"] = {"enum": list(CONVERTERS)}
            if "given" in own:
                own["given"] = {
                    "enum": [*GIVEN, "of", *(path for path in fields if path not in GIVEN)]
                }
        _long(self.definitions["FilterParameter"])["properties"]["as"] = {"enum": list(CONVERTERS)}
        for name in ("BusyMap", "SlotsMap"):
            times = self.definitions[name]["properties"]
            times["start"] = times["end"] = {"$ref": self._source_of(TIME)}

    def resources(self) -> Schema:
        names = [name for name in self.shapes if name != "slots"]
        return _members({name: self._resource(name) for name in names})

    def _resource(self, name: str) -> Schema:
        shapes = self.shapes[name]
        own = [path for path in inside(shapes) if path != "id"]
        made = self._rows("ResourceMap", inside(shapes), NEEDED[self.adapter].get(name, ()))
        if lists := lists_in(shapes):
            inner = {one: inside(shapes, f"{one}[].") for one in lists}
            nested = {one: self._rows("ListMap", inner[one]) for one in lists}
            made["properties"]["lists"] = _members(nested)
        else:
            del made["properties"]["lists"]
        if self.adapter == "rest":
            made["properties"]["list"] = self._listing(own)
            if name not in UNLISTED:
                made["required"] = [*made.get("required", ()), "list"]
        return made

    def _listing(self, fields: list[str]) -> Schema:
        made: Schema = deepcopy(self.definitions["ListCall"])
        long = _long(made)["properties"]
        by: Any = {"$ref": "#/$defs/FilterParameter"}
        long["filters"] = _members(dict.fromkeys([*fields, SEARCH], by))
        long["sift"] = {"type": "array", "items": {"enum": fields}}
        return made

    def _rows(
        self, model: str, fields: Mapping[str, FieldShape], required: Iterable[str] = ()
    ) -> Schema:
        made: Schema = deepcopy(self.definitions[model])
        described = {
            name: {"description": f"{_kind(shape)}.", "$ref": self._source_of(shape)}
            for name, shape in fields.items()
            if name != "id"
        }
        made["properties"]["fields"] = _members(described, required=required)
        return made

    def _source_of(self, shape: FieldShape) -> str:
        """Returns the definition of a field's source: its converters, the values of its codes."""
        name = " ".join(["ValueSource of", shape.format, *shape.values]).replace("/", " ")
        if name not in self.definitions:
            made = deepcopy(self.definitions["ValueSource"])
            long = _long(made)["properties"]
            names = [as_ for as_, kind in CONVERTERS.items() if shape.format in kind.makes]
            long["as"] = {"enum": names}
            if shape.values:
                values = {"enum": [*shape.values, None]}
                long["codes"] = {"type": "object", "additionalProperties": values}
            self.definitions[name] = made
        return f"#/$defs/{name}"


def _members(members: Mapping[str, Schema], *, required: Iterable[str] = ()) -> Schema:
    made: Schema = {"type": "object", "properties": dict(members), "additionalProperties": False}
    names = list(required)
    return made | ({"required": names} if names else {})


def _kind(shape: FieldShape) -> str:
    """Returns what a field is, for the person who writes its expression."""
    if shape.refers is not None:
        return f"The key of one of the {shape.refers}"
    if shape.values:
        return f"One of {', '.join(shape.values)}"
    return f"Several of {shape.format}" if shape.many else f"A value of the format {shape.format}"
