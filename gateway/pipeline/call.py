"""A call on its way: what the partner sent, and what is noted of it on the road; and the reply."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gateway.contract.access import AccessLevel
from gateway.contract.errors import GatewayError
from gateway.contract.operations import Operation
from gateway.keys.key import Key
from gateway.limits.base import Quota

# The body's bytes; BodyTooSlow, BodyTooLarge, NotJson or NotARequest.
ReadBody = Callable[[], Awaitable[bytes]]


class Match(NamedTuple):
    """The operation that method and path name, and the raw last segment where that is an id."""

    operation: Operation
    id: str = ""


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """One call.

    `route` is a refusal where the path or the method is unknown: it counts only once the key has
    been accepted. `secrets` and `idempotency_keys` hold a header's every occurrence. `query` is
    raw. What follows `read_body` is noted on the road.
    """

    request_id: str
    method: str
    route: Match | GatewayError
    secrets: Sequence[str]
    query: str
    idempotency_keys: Sequence[str]
    read_body: ReadBody
    key: Key | None = None
    quota: Quota | None = None
    level: AccessLevel | None = None
    policy: str | None = None
    records: Sequence[str] = ()
    replayed: bool = False


class Reply(NamedTuple):
    """What is answered: JSON bytes, and what goes into headers.

    `location` and `next` are addresses below the interface's own, such as `/clients?limit=2`.
    """

    status: int
    body: bytes
    skipped: int = 0
    location: str = ""
    next: str = ""
