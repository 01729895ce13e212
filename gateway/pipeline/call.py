"""A call on its way: what the partner sent, and what is noted of it on the road; and the reply."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct, field

from adapters.asking import Asking
from gateway.audit.entries import Entry
from gateway.contract.access import AccessLevel
from gateway.contract.errors import GatewayError
from gateway.contract.operations import Operation
from gateway.keys.key import Key
from gateway.limits.base import Quota


class Upload(Protocol):
    """What only a creation sends; nothing of it is read before the limit has been passed."""

    def size(self) -> int:
        """How many bytes it may have, before any has been read."""

    def idempotency_keys(self) -> Sequence[str]:
        """The header's every occurrence."""

    async def read(self) -> bytes:
        """The body; BodyTooSlow, BodyTooLarge, NotJson, or NotARequest where it breaks off."""


class Target(Struct, frozen=True):
    """The operation that method and path name, and the raw last segment where that is an id."""

    operation: Operation
    id: str = ""


class Call(Struct, kw_only=True, eq=False):
    """One call.

    `at` is when it came. `target` is a refusal where the path or the method is unknown: it counts
    only once the key has been accepted. `secrets` holds the header's every occurrence. `query` is
    raw. What follows `upload` is noted on the road, `asking` by the adapters; `address` is the
    caller's, as far as it can be known; `entry` is what the audit holds already of a call that
    runs; `mark_untold` is for a booking that its caller cannot be told of, and would not find
    again; `waits_since`, by time.monotonic, is set while nobody works for the call: it waits for
    room or for its body. `gone` is its caller once the connection has ended.
    """

    at: datetime
    request_id: str
    method: str
    target: Target | GatewayError
    secrets: Sequence[str]
    query: str
    upload: Upload
    address: str = ""
    key: Key | None = None
    quota: Quota | None = None
    level: AccessLevel | None = None
    policy: str | None = None
    records: Sequence[str] = ()
    replayed: bool = False
    asking: Asking = field(default_factory=Asking)
    entry: Entry | None = None
    mark_untold: Callable[[], Awaitable[None]] | None = None
    waits_since: float | None = None
    gone: bool = False

    def told(self, now: datetime, operation: str, outcome: str, reason: str | None = None) -> Entry:
        """What the audit holds of it, as far as it has come."""
        return Entry(
            time=now,
            request_id=self.request_id,
            key_id=None if self.key is None else self.key.id,
            operation=operation,
            record_ids=self.records,
            level=self.level,
            policy=self.policy,
            outcome=outcome,
            reason=reason,
        )


class Reply(Struct, frozen=True):
    """What is answered: JSON bytes, and what goes into headers.

    `location` and `next` are addresses below the interface's own, such as `/clients?limit=2`.
    """

    status: int
    body: bytes
    skipped: int = 0
    location: str = ""
    next: str = ""
