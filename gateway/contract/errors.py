"""Declares the errors of the interface as classes, each with its status and message."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar

# The most problems of one request that are named; the rest are counted.
MOST_NAMED = 20
# How a caller authenticates.
SCHEME = 'ApiKey header="X-API-Key"'


@dataclass(frozen=True, slots=True)
class InvalidField:
    """A problem; `field` names a member, parameter or header, or is `request`, `query`, `body`."""

    field: str
    problem: str


class GatewayError(Exception):
    """A failure that the partner is told about, in the one shape that all errors have."""

    status: ClassVar[int]
    message: str
    # what the answer carries beyond the headers of every answer
    headers: Mapping[str, str] = {}

    def __init_subclass__(cls, **members: Any) -> None:
        for name, value in members.items():
            setattr(cls, name, value)

    def members(self) -> dict[str, Any]:
        """Returns the JSON object of the answer."""
        return {"message": self.message}


class _Unauthenticated(GatewayError, status=401, headers={"WWW-Authenticate": SCHEME}):
    """The caller is not known."""


class KeyMissing(_Unauthenticated, message="Authentication required"):
    """No X-API-Key header."""


class KeyInvalid(_Unauthenticated, message="Invalid or expired API key"):
    """Unknown, malformed, given twice, revoked, expired or used elsewhere: it does not say which.

    `used_elsewhere` is the id of a good key that was used from outside its networks.
    """

    def __init__(self, used_elsewhere: str = "") -> None:
        super().__init__()
        self.used_elsewhere = used_elsewhere


class Forbidden(GatewayError, status=403, message="Insufficient permissions"):
    """The key lacks the operation's permission."""


class NotFound(GatewayError, status=404, message="Resource not found"):
    """No such path, or no such record."""


class MethodNotAllowed(GatewayError, status=405, message="Method not allowed"):
    """The path is known under other methods."""

    def __init__(self, allow: str) -> None:
        super().__init__(allow)
        self.headers = {"Allow": allow}


class BodyTooSlow(GatewayError, status=408, message="Request body arrived too slowly"):
    """The body did not arrive in time."""


class BodyTooLarge(GatewayError, status=413, message="Request body too large: at most 64 KiB"):
    """The body is longer than any request needs."""


class NotJson(GatewayError, status=415, message="Content-Type must be application/json"):
    """The body's media type is another one."""


class NotUtf8(
    NotJson, message="Content-Type must be application/json with charset=utf-8 or no charset"
):
    """The body is said to be in another charset."""


class Encoded(
    NotJson,
    message="Content-Encoding must be left out: the body must not be compressed",
    headers={"Accept-Encoding": "identity"},
):
    """The body is compressed."""


class ExpectationFailed(GatewayError, status=417, message="Expectation failed"):
    """An Expect header other than 100-continue."""


class HeadersTooLarge(GatewayError, status=431, message="Request header fields too large"):
    """The request line or the headers are longer than any request needs."""


class InvalidRequest(GatewayError, status=400):
    """The request is malformed; `problems` has the first MOST_NAMED and a count of others."""

    def __init__(self, *problems: InvalidField) -> None:
        more = len(problems) - MOST_NAMED
        if more > 0:
            rest = InvalidField("request", f"has further problems: {more}")
            problems = (*problems[:MOST_NAMED], rest)
        super().__init__(problems)
        self.problems = problems
        first = problems[0]
        self.message = f"Invalid request: {first.field} {first.problem}"

    def members(self) -> dict[str, Any]:
        errors = [{"field": wrong.field, "problem": wrong.problem} for wrong in self.problems]
        return {"message": self.message, "errors": errors}


class NotARequest(InvalidRequest):
    """The bytes are no HTTP request that we can read."""

    def __init__(self, field: str = "request", problem: str = "cannot be read as HTTP/1.1") -> None:
        super().__init__(InvalidField(field, problem))


class KeyReused(InvalidRequest):
    """An Idempotency-Key that came with another request before."""

    def __init__(self) -> None:
        super().__init__(InvalidField("Idempotency-Key", "was used with another request"))
        self.message = "Idempotency-Key was used with another request"


class PatientIsDeceased(InvalidRequest):
    """The booking is for an animal that has died."""

    def __init__(self) -> None:
        super().__init__(InvalidField("patientId", "must not name a deceased animal"))


class TimeSlotConflict(GatewayError, status=409, message="Time slot conflict"):
    """The wanted time is not, or no longer, one of the free slots."""


class LimitExceeded(
    GatewayError, status=429, message="Rate limit exceeded. Please try again later."
):
    """The key's hour is used up, or its bookings of the day are."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(retry_after)
        self.retry_after = retry_after
        self.headers = {"Retry-After": str(retry_after)}

    def members(self) -> dict[str, Any]:
        return {"message": self.message, "retryAfter": self.retry_after}


class InternalError(GatewayError, status=500, message="Internal server error"):
    """A fault of our own."""


class BackendUnusable(
    GatewayError, status=502, message="The practice system gave an unusable answer"
):
    """The practice system answered something that is no answer."""


class Unavailable(GatewayError, status=503, message="Service temporarily unavailable"):
    """Something that the answer needs is down, or load is shed.

    `retry_after` is how many seconds the caller is to wait, 0 where that is not known. The header
    has whole seconds, rounded up, and at least one.
    """

    def __init__(self, retry_after: float) -> None:
        super().__init__(retry_after)
        self.retry_after = max(1, ceil(retry_after))
        self.headers = {"Retry-After": str(self.retry_after)}


class Crowded(Unavailable):
    """Too much is under way already."""


class BackendTooSlow(
    GatewayError, status=504, message="The practice system did not answer in time"
):
    """The practice system did not answer within its time."""


class BookingUnknown(
    BackendTooSlow, message="Booking outcome unknown. Ask again with the same Idempotency-Key."
):
    """Whether the booking was written is not known; asking again with the same key tells."""


class BookingUnknownWithoutKey(
    BookingUnknown, message="Booking outcome unknown. Check before booking again."
):
    """The same, for a caller who sent no Idempotency-Key."""


# What every operation may answer beyond its success and its own `errors`.
COMMON_STATUSES = (400, 401, 403, 429, 500, 502, 503, 504)

STATUS_SUMMARIES: Mapping[int, str] = {
    400: "The request is invalid: missing fields, wrong format.",
    401: "The key is missing, invalid or expired.",
    403: "The key lacks the permission of the operation.",
    404: "The resource was not found.",
    405: "The path is known under other methods.",
    408: "The body arrived too slowly.",
    409: "The time is not, or no longer, one of the free slots.",
    413: "The body is larger than 64 KiB.",
    415: "The body is not application/json in UTF-8, or it is compressed.",
    417: "The Expect header asks for something other than 100-continue.",
    429: "The hourly request limit is exceeded, or the bookings of the day are used up.",
    431: "The request line or the headers are too long.",
    500: "A fault of the gateway.",
    502: "The practice system gave an unusable answer.",
    503: "A part that the answer needs is down, or load is shed.",
    504: "The practice system did not answer in time, or a booking's outcome is unknown.",
}
