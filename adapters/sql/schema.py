"""The JSON Schema of the mapping of a database."""

from adapters.base import Shapes
from adapters.mapping.conversion import CONVERTERS, DRAFT_FIELDS, DRAFT_KEYS
from adapters.mapping.schema import DIALECT, TIME, Schema, SchemaMaker
from adapters.sql.load import NEEDED
from adapters.sql.mapping import Mapping


def mapping_schema(shapes: Shapes) -> Schema:
    """The schema of a mapping for the `sql` adapter, with resources and fields of these shapes."""
    schema = Mapping.model_json_schema(by_alias=True)
    made = SchemaMaker(schema["$defs"], "Expression", NEEDED)
    schema["properties"]["resources"] = made.resources(shapes)
    _value(made.definitions)
    _spans(made)
    return {"$schema": DIALECT, **schema, "title": "Mapping of a practice database"}


def _value(definitions: Schema) -> None:
    """What a booking writes: the draft's names, and every converter."""
    long = definitions["Value"]["anyOf"][-1]["properties"]
    long["draft"] = {"enum": [*DRAFT_FIELDS, *DRAFT_KEYS]}
    long["as"] = {"enum": list(CONVERTERS)}


def _spans(made: SchemaMaker) -> None:
    """The starts and ends of the diary are times."""
    time = {"$ref": made.source_of(TIME)}
    for model in ("Busy", "SlotRows"):
        made.definitions[model]["properties"]["start"] = time
        made.definitions[model]["properties"]["end"] = time
