"""Makes the JSON Schema of a policy file, for editors that complete and check it.

It accepts every usable file and refuses most others. It cannot require that each field stands in
exactly one list.
"""

from typing import Any

from gateway.contract import fields as formats
from gateway.contract.access import LEVELS
from gateway.contract.fields import Field, Resource
from gateway.contract.resources import GOVERNED
from gateway.policy.masks import MaskKind, fitting
from gateway.policy.reading.document import VERSION
from gateway.policy.reading.resource import BOUNDS, NEVER, NOT, ONLY
from gateway.policy.rows import is_ordered

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# An amount in quotes: a number, with no letters but that of an exponent.
_AMOUNT = "^[^A-DF-Za-df-z]*$"

Schema = dict[str, Any]


def policy_schema() -> Schema:
    """Returns the schema, derived from the contract's tables."""
    version = {"const": VERSION, "description": "By which rules the file is read."}
    resources = {resource.name: _ref(resource.name) for resource in GOVERNED}
    definitions: dict[str, Schema] = {}
    for resource in GOVERNED:
        name = resource.name
        definitions[name] = _resource(resource)
        definitions[f"{name}-names"] = {"enum": list(resource.paths)}
        definitions[f"{name}-list"] = _list(resource)
        definitions[f"{name}-conditions"] = _conditions(resource)
        for field in map(resource.at, resource.paths):
            if fitting(field):
                masks = {"anyOf": [*map(_mask, fitting(field))]}
                definitions[f"mask-of-{field.format.name}"] = masks
            if not (field.many or field.values):
                definitions[f"condition-on-{field.format.name}"] = _condition(field)
    return {
        "$schema": DIALECT,
        "title": "Policy of a clinic gateway",
        **_object({"version": version, **resources}),
        "required": ["version", *resources],
        "$defs": definitions,
    }


def _object(members: Schema) -> Schema:
    return {"type": "object", "properties": members, "additionalProperties": False}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name.replace(' ', '-')}"}


def _resource(resource: Resource) -> Schema:
    listed = _ref(f"{resource.name}-list")
    lists: Schema = {
        level.value: {"description": f"What {level} sees more.", **listed} for level in LEVELS
    }
    lists[LEVELS[0].value]["description"] = "What every key sees."
    name = {"anyOf": [_ref(f"{resource.name}-names"), {"type": "object", "maxProperties": 0}]}
    never = {"description": "Fields that no key sees.", "type": "array", "items": name}
    conditions = _ref(f"{resource.name}-conditions")
    by_level = _object({level.value: conditions for level in LEVELS}) | {"minProperties": 1}
    only = {
        "description": "Which records exist, for all keys or by level.",
        "anyOf": [conditions, by_level],
    }
    made = _object(lists | {NEVER: never, ONLY: only})
    return {"description": resource.summary, **made, "required": list(lists)}


def _list(resource: Resource) -> Schema:
    fields = ((path, resource.at(path)) for path in resource.paths)
    masked = {
        path: _described(field, _ref(f"mask-of-{field.format.name}"))
        for path, field in fields
        if fitting(field)
    }
    return {"type": "array", "items": {"anyOf": [_ref(f"{resource.name}-names"), _object(masked)]}}


def _mask(kind: MaskKind) -> Schema:
    about = {"description": kind.says.replace("{n}", "n")}
    if kind.largest is None:
        return {"const": kind.name} | about
    digit = f"[1-{kind.largest}]" if kind.largest < 10 else "[1-9][0-9]{0,6}"
    pattern = rf"^{kind.name}\( *0{{0,6}}{digit} *\)$"
    return {"type": "string", "pattern": pattern, "examples": [kind.example]} | about


def _described(field: Field, schema: Schema) -> Schema:
    return ({"description": field.summary} if field.summary else {}) | schema


def _conditions(resource: Resource) -> Schema:
    fields = {
        field.name: _described(
            field, _condition(field) if field.values else _ref(f"condition-on-{field.format.name}")
        )
        for field in resource.fields
        if not (field.fields or field.many)
    }
    return _object(fields) | {"minProperties": 1}


def _condition(field: Field) -> Schema:
    value: Schema = {"enum": list(field.values)}
    if not field.values:
        value = _VALUES.get(field.format.name) or dict(field.format.schema)
    values = {"anyOf": [value, {"type": "array", "items": value, "minItems": 1}]}
    words: Schema = {NOT: values}
    if is_ordered(field):
        words |= dict.fromkeys(BOUNDS, value)
    return {"anyOf": [*values["anyOf"], _object(words) | {"minProperties": 1}]}


_AMOUNTS: Schema = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": _AMOUNT}]}
# Format -> schema of its values, where they are written otherwise than in answers.
_VALUES: dict[str, Schema] = {
    formats.MONEY.name: _AMOUNTS,
    formats.PERCENT.name: _AMOUNTS,
    formats.INSTANT.name: {
        "type": "string",
        "pattern": f"^{formats.INSTANT_PATTERN}$",
        "examples": ["2025-01-01T00:00:00Z"],
    },
    formats.DAY.name: {"type": "string", "pattern": f"^{formats.DATE_PATTERN}$"},
}
