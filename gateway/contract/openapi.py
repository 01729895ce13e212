"""Builds the OpenAPI 3.1 document of the whole interface, or of what one key sees.

A document for a key names only the operations that its permissions reach, and in the answers only
the fields that are open to it. So it can be handed out as it is.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from gateway.contract import fields as formats
from gateway.contract.access import AccessLevel
from gateway.contract.answers import ABOUT, components, responses
from gateway.contract.fields import Field, Resource, opened
from gateway.contract.operations import (
    BASE_PATH,
    CURSOR,
    LIMIT,
    OPERATIONS,
    PAGE_DEFAULT,
    Match,
    Operation,
    Param,
)
from gateway.contract.window import BookingWindow, bounded

VERSION = "1.0.0"
API_KEY = "apiKey"
BODY = "CreateAppointmentRequest"


@dataclass(frozen=True, slots=True)
class View:
    """What is seen of a resource: the paths of whole fields, and the schemas of masked ones.

    A masked field's schema is what it says beyond that of the whole value. `level` is the access
    level that it is the view of, if it is that of one.
    """

    whole: Set[str]
    masked: formats.Views = field(default_factory=dict)
    level: AccessLevel | None = None


def document(
    *,
    public_url: str,
    offered: Iterable[Operation] = OPERATIONS,
    servable: Callable[[Operation, Param], bool] = lambda operation, param: True,
    visible: Callable[[Resource], View | None] = lambda resource: None,
    window: BookingWindow | None = None,
    bookings_per_day: int | None = None,
    networks: Iterable[str] = (),
) -> dict[str, Any]:
    """Returns the document as data that is ready for JSON.

    `offered` are the operations that the practice system answers and the key may call, and
    `servable` tells whether it can serve a filter. `visible` returns what is seen of a governed
    resource, None for all. `window` is when partners may book, None where that is not told. The key
    may make `bookings_per_day`, and be used from `networks` alone, where these are bounded.
    """
    operations = [bounded(known, window, bookings_per_day) for known in offered]
    about = ABOUT
    if networks:
        about += f"\nThis key is accepted from these networks only: {', '.join(networks)}.\n"
    resources = {operation.returns.name: operation.returns for operation in operations}
    views = {
        name: (visible(resource) if resource.governed else None) or View(frozenset(resource.paths))
        for name, resource in resources.items()
    }
    schemas = {known.title: _record(known, views[name]) for name, known in resources.items()}
    for operation in operations:
        if operation.body:
            schemas[BODY] = {
                "type": "object",
                "properties": {member.name: _member(member) for member in operation.body},
                "required": [member.name for member in operation.body if member.required],
                "additionalProperties": False,
            }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Clinic API", "version": VERSION, "description": about},
        "servers": [{"url": public_url.rstrip("/") + BASE_PATH}],
        "security": [{API_KEY: []}],
        "tags": [{"name": tag} for tag in dict.fromkeys(map(_tag, operations))],
        "paths": _paths(operations, views, servable),
        "components": components(schemas) | {"securitySchemes": _SECURITY},
    }


_SECURITY = {
    API_KEY: {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "The key that the clinic gave you: `vk_` and 48 characters.",
    }
}


def _record(resource: Resource, view: View) -> dict[str, Any]:
    fields = opened(resource.fields, view.whole | view.masked.keys(), view.masked)
    members = {member.name: member.answer_schema() for member in fields}
    return {
        **({"title": resource.class_name} if resource.class_name else {}),
        "type": "object",
        "description": resource.summary,
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def _member(field: Field) -> dict[str, Any]:
    schema = field.schema()
    if field.format is formats.TEXT and not field.values:
        schema["pattern"] = formats.PLAIN_TEXT
    if field.default is not None:
        schema["default"] = field.default
    return schema | ({"description": field.summary} if field.summary else {})


def _paths(
    operations: Iterable[Operation],
    views: Mapping[str, View],
    servable: Callable[[Operation, Param], bool],
) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for operation in operations:
        view = views[operation.returns.name]
        # no filter by a field that is not seen: to filter by it is to read it
        params = [
            param
            for param in (*operation.params, *((LIMIT, CURSOR) if operation.paged else ()))
            if param.where == "path"
            or param.match is None
            or (set(param.fields) <= view.whole and servable(operation, param))
        ]
        methods = paths.setdefault(operation.path, {})
        methods[operation.method.lower()] = _operation(operation, params, view.level)
    return paths


def _operation(
    operation: Operation, params: list[Param], level: AccessLevel | None
) -> dict[str, Any]:
    seen = "" if level is None else f" Seen at the level `{level}`."
    about = f"Needs the permission `{operation.permission}`.{seen}"
    described: dict[str, Any] = {
        "operationId": operation.id,
        "summary": operation.summary,
        "description": f"{about}\n\n{operation.notes}" if operation.notes else about,
        "tags": [_tag(operation)],
        "x-permission": operation.permission.value,
    }
    if level is not None:
        described["x-access-level"] = level.value
    parameters = [_parameter(param) for param in params]
    if operation.creates:
        parameters.append(_IDEMPOTENCY_KEY)
    if parameters:
        described["parameters"] = parameters
    if operation.body:
        content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{BODY}"}}}
        described["requestBody"] = {"required": True, "content": content}
    return described | {"responses": responses(operation)}


def _tag(operation: Operation) -> str:
    return operation.path.split("/")[1]


def _parameter(param: Param) -> dict[str, Any]:
    schema = dict(param.format.schema)
    bounds = {
        "minLength": param.shortest,
        "maxLength": param.longest,
        "minimum": param.least,
        "maximum": param.most,
        "enum": list(param.values) or None,
        "default": PAGE_DEFAULT if param is LIMIT else None,
    }
    if param is CURSOR:
        schema["pattern"] = "^[A-Za-z0-9_-]+$"
    elif param.match is Match.SEARCH:
        schema["pattern"] = formats.SEARCH
    elif param.format is formats.TEXT and not param.values:
        schema["pattern"] = formats.PLAIN_LINE
    return {
        "name": param.name,
        "in": param.where,
        "description": param.summary,
        "required": param.required,
        "schema": schema | {name: bound for name, bound in bounds.items() if bound is not None},
    }


_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": (
        "Makes the booking safe to repeat: for 24 hours the same key with the same body gives the"
        " first outcome again. With another body it is refused. 1 to 255 visible ASCII characters."
    ),
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}
