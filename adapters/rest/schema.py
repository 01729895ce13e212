"""The JSON Schema of the mapping of a backend that speaks JSON over HTTP."""

from copy import deepcopy
from typing import Any

from adapters.base import Shapes
from adapters.mapping.conversion import CONVERTERS, DRAFT_FIELDS
from adapters.mapping.schema import DIALECT, TIME, Schema, SchemaMaker, members
from adapters.rest.availability import GIVEN
from adapters.rest.checking import NEEDED, UNLISTED
from adapters.rest.filters import SEARCH
from adapters.rest.mapping import Mapping


def mapping_schema(shapes: Shapes) -> Schema:
    """The schema of a mapping for the `rest` adapter, with resources and fields of these shapes."""
    schema = Mapping.model_json_schema(by_alias=True)
    made = SchemaMaker(schema["$defs"], "Found", NEEDED)
    schema["properties"]["resources"] = made.resources(shapes)
    for name, resource in schema["properties"]["resources"]["properties"].items():
        fields = list(resource["properties"]["fields"]["properties"])
        resource["properties"]["list"] = _list(made.definitions, fields)
        if name not in UNLISTED:
            resource["required"] = [*resource.get("required", ()), "list"]
    _values(made.definitions, sorted({each for own in shapes.values() for each in own}))
    _spans(made)
    return {"$schema": DIALECT, **schema, "title": "Mapping of a practice system's JSON"}


def _list(definitions: Schema, fields: list[str]) -> Schema:
    """How a resource is listed, filtered by its own fields."""
    made: Schema = deepcopy(definitions["ListCall"])
    long = made["anyOf"][-1]["properties"]
    by: Any = {"$ref": "#/$defs/FilterBy"}
    long["filters"] = members(dict.fromkeys([*fields, SEARCH], by))
    long["sift"] = {"type": "array", "items": {"enum": fields}}
    return made


def _values(definitions: Schema, fields: list[str]) -> None:
    """What is sent: the draft's names, those that the diary and lists are given, converters."""
    value = definitions["Value"]["properties"]
    value["draft"] = {"enum": list(DRAFT_FIELDS)}
    value["given"] = {"enum": [*GIVEN, *(each for each in fields if each not in GIVEN)]}
    for model in (value, definitions["FilterBy"]["anyOf"][-1]["properties"]):
        model["as"] = {"enum": list(CONVERTERS)}


def _spans(made: SchemaMaker) -> None:
    """The starts and ends of the diary are times."""
    time = {"$ref": made.source_of(TIME)}
    times = made.definitions["Times"]["properties"]
    times["start"] = times["end"] = time
