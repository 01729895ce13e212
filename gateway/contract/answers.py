"""Describes the interface, and what its operations may answer; shared answers stand once."""

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.contract import errors
from gateway.contract.access import LEVEL_SUMMARIES, LEVELS
from gateway.contract.errors import COMMON_STATUSES, MOST_NAMED, STATUS_SUMMARIES
from gateway.contract.operations import Operation

INTRODUCTION = "Reads a veterinary clinic's records and books appointments."

AUTHENTICATION = """\
Every call carries an API key in the header `X-API-Key`. The key decides which operations are
reachable (its permissions, see `x-permission`), how many calls an hour are allowed, and how much
of each record is visible: its access level, which may differ from resource to resource."""

_LEVELS = "\n".join(f"- `{level}`: {text}" for level, text in LEVEL_SUMMARIES.items())

VISIBLE = """\
A field that the level does not open is absent. A field that is open and has no value is `null`.
`X-Access-Level` says which level was applied. Asked for with a key, this document shows the
interface as that key sees it."""

VALUES = """\
Times go out in UTC with whole seconds (`2026-03-01T09:00:00Z`); times that come in may have any
offset, but need one. Days are the clinic's local days. Money is a decimal string with two places.
Identifiers are UUIDs in lower case."""

BOOKING = """\
To book: list the appointment types, list the available slots of a veterinarian on a day, create
the appointment at one of them. A 409 says that the time is not, or no longer, one of the free
slots: load them again and pick another."""

ABOUT = "\n\n".join((INTRODUCTION, AUTHENTICATION, _LEVELS, VISIBLE, VALUES, BOOKING)) + "\n"

# What a partner can do about an answer that is no success.
REMEDIES: Mapping[int, str] = {
    400: "Mend what `errors` names; the same request is refused again.",
    401: "Send the key that the clinic gave you, or ask for a new one.",
    403: "Ask the clinic for the permission.",
    404: "Look whether the identifier is still right.",
    405: "Use one of the methods that `Allow` names.",
    408: "Send the whole body at once.",
    409: "Load the free slots again and pick another time.",
    413: "Send less.",
    415: "Send JSON, not compressed, and say so in `Content-Type`.",
    417: "Leave the `Expect` header out.",
    429: "Wait the seconds of `Retry-After`.",
    431: "Send fewer or shorter headers.",
    500: "Try again later; tell the clinic the `X-Request-Id`.",
    502: "Try again later; tell the clinic the `X-Request-Id`.",
    503: "Wait the seconds of `Retry-After`, then ask again.",
    504: "Ask again; a booking with the same `Idempotency-Key`.",
}


_RATE = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
_COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 0}
_SECONDS: Mapping[str, Any] = {"type": "integer", "minimum": 1, "maximum": 3600}
# A key's bookings of a day are counted anew within 25 hours: so long can a local day be.
_WAIT: Mapping[str, Any] = {"type": "integer", "minimum": 1, "maximum": 90_000}


def _header(description: str, *, required: bool = True, **schema: Any) -> Mapping[str, Any]:
    always = {"required": True} if required else {}
    return {"description": description, "schema": schema, **always}


HEADERS: Mapping[str, Mapping[str, Any]] = {
    "X-Request-Id": _header(
        "Names this call in the logs: the caller's own `X-Request-Id` where it is 8 to 64"
        " characters of `A-Z a-z 0-9 . _ -`, else a new one.",
        type="string",
        pattern="^[A-Za-z0-9._-]{8,64}$",
    ),
    "X-RateLimit-Limit": _header("Calls per hour of this key.", **_COUNT),
    "X-RateLimit-Remaining": _header("Calls left in this hour.", **_COUNT),
    "X-RateLimit-Reset": _header("Seconds until the hour ends.", **_SECONDS),
    "Retry-After": _header("Seconds to wait before asking again.", **_WAIT),
    "X-Access-Level": _header(
        "The level that was applied to this answer.",
        type="string",
        enum=[level.value for level in LEVELS],
    ),
    "Link": _header(
        'The next page, while there is one: `<address>; rel="next"` (RFC 8288).',
        required=False,
        type="string",
    ),
    "Location": _header("The address of the new appointment.", type="string", format="uri"),
    "X-Skipped-Records": _header(
        "How many records were left out because they have no usable identifier.",
        required=False,
        type="integer",
        minimum=1,
    ),
    "Idempotent-Replayed": _header(
        "The outcome of an earlier call with the same `Idempotency-Key`.",
        required=False,
        type="string",
        enum=["true"],
    ),
    "WWW-Authenticate": _header("How to authenticate.", type="string", const=errors.SCHEME),
}

_ERROR_BODIES: Mapping[int, str] = {400: "InvalidRequest", 429: "LimitExceeded"}
_STICKING = (404, 409)  # what the practice system says of a booking, and a replay repeats

EXAMPLES: Mapping[int, tuple[errors.GatewayError, ...]] = {
    400: (
        errors.InvalidRequest(errors.InvalidField("limit", "must be from 1 to 200")),
        errors.KeyReused(),
    ),
    401: (errors.KeyMissing(), errors.KeyInvalid()),
    403: (errors.Forbidden(),),
    404: (errors.NotFound(),),
    405: (errors.MethodNotAllowed("GET, HEAD"),),
    408: (errors.BodyTooSlow(),),
    409: (errors.TimeSlotConflict(),),
    413: (errors.BodyTooLarge(),),
    415: (errors.NotJson(), errors.NotUtf8(), errors.Encoded()),
    417: (errors.ExpectationFailed(),),
    429: (errors.LimitExceeded(1200),),
    431: (errors.HeadersTooLarge(),),
    500: (errors.InternalError(),),
    502: (errors.BackendUnusable(),),
    503: (errors.Unavailable(10),),
    504: (errors.BackendTooSlow(), errors.BookingUnknown(), errors.BookingUnknownWithoutKey()),
}
_OF_BOOKINGS = (errors.KeyReused, errors.BookingUnknown)


def _object(**members: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


_MESSAGE = {"type": "string", "description": "What went wrong, in one sentence."}
_FIELD = {
    "type": "string",
    "description": (
        "A member, a parameter or a header; `request`, `query` or `body` where it is the whole of"
        " that."
    ),
}
_PROBLEM = {"type": "string", "description": "The end of a sentence that it begins."}
_PROBLEMS = {
    "type": "array",
    "items": {"title": "Problem", **_object(field=_FIELD, problem=_PROBLEM)},
    "minItems": 1,
    "maxItems": MOST_NAMED + 1,
    "description": f"All that is wrong; after {MOST_NAMED} problems a last entry counts more.",
}


def components(schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schemas of records and of errors, the headers, and the answers of all reads."""
    wait = {**_WAIT, "description": "Seconds until the next hour, or the next day of bookings."}
    of_errors = {
        "Error": _object(message=_MESSAGE),
        "InvalidRequest": _object(message=_MESSAGE, errors=_PROBLEMS),
        "LimitExceeded": _object(message=_MESSAGE, retryAfter=wait),
    }
    return {
        "schemas": {**schemas, **of_errors},
        "headers": {name: {**HEADERS[name]} for name in HEADERS},
        "responses": {
            f"Error{status}": _error(status, booking=False) for status in (*COMMON_STATUSES, 404)
        },
    }


def responses(operation: Operation) -> dict[str, Any]:
    """Returns every status that the operation may answer, in ascending order."""
    record: dict[str, Any] = {"$ref": f"#/components/schemas/{operation.returns.title}"}
    schema = {"type": "array", "items": record} if operation.many else record
    prefix = "A list. Each: " if operation.many else ""
    headers = ["X-Request-Id", "X-Access-Level", *_RATE]
    headers += ["Link"] if operation.paged else []
    headers += ["X-Skipped-Records"] if operation.many else []
    headers += ["Location", "Idempotent-Replayed"] if operation.creates else []
    success = {
        "description": "Created." if operation.creates else f"{prefix}{operation.returns.summary}",
        "headers": _headers(headers),
        "content": {"application/json": {"schema": schema}},
    }
    answers: dict[str, Any] = {str(operation.status): success}
    for status in sorted({*COMMON_STATUSES, *operation.errors}):
        answers[str(status)] = (
            _error(status, booking=True)
            if operation.creates
            else {"$ref": f"#/components/responses/Error{status}"}
        )
    return answers


def _error(status: int, *, booking: bool) -> dict[str, Any]:
    shown = [error for error in EXAMPLES[status] if booking or not isinstance(error, _OF_BOOKINGS)]
    own = (name for error in shown for name in error.headers if name in HEADERS)
    headers = _headers(("X-Request-Id", *own))
    if status == 429:
        headers |= _headers(_RATE)
    elif status not in {401, 403}:  # the key's hour may not have been looked at yet
        headers |= {name: {**HEADERS[name], "required": False} for name in _RATE}
    if booking and status in _STICKING:
        headers |= _headers(["Idempotent-Replayed"])
    body = {
        "schema": {"$ref": f"#/components/schemas/{_ERROR_BODIES.get(status, 'Error')}"},
        "examples": {type(error).__name__: {"value": error.members()} for error in shown},
    }
    return {
        "description": STATUS_SUMMARIES[status],
        "headers": headers,
        "content": {"application/json": body},
    }


def _headers(names: Iterable[str]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
