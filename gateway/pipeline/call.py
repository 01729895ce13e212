"""Describes a call, what is noted of it on its way through the pipeline, and the reply."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct, field

from adapters.base import Only
from adapters.call_notes import CallNotes
from gateway.audit.entries import Entry
from gateway.contract.access import AccessLevel
from gateway.contract.errors import GatewayError
from gateway.contract.operations import Operation
from gateway.keys.key import Key
from gateway.limits.base import Quota
from gateway.policy.redactor import Redactor

# Gives the conditions for records of another resource; None where all records exist for the key.
Others = Callable[[str], Only] | None


class Upload(Protocol):
    """What only a creation sends; nothing of it is read before the limit has been passed."""

    def size(self) -> int:
        """Returns how many bytes the body may have, before any has been read."""

    def idempotency_keys(self) -> Sequence[str]:
        """Returns all values of the header."""

    async def read(self) -> bytes:
        """Returns the body. Raises BodyTooSlow, BodyTooLarge, NotJson, or NotARequest if cut."""


class Target(Struct, frozen=True):
    """The operation of a method and path, and the path's raw last segment where that is an id."""

    operation: Operation
    id: str = ""


class Call(Struct, kw_only=True, eq=False):
    """One call: what came, and from `key` on what is noted on its way.

    `at` is when it came. `target` is an error where the path or the method is unknown; it counts
    only once the key has been accepted. `digest` is that of the one secret; where several came, of
    one that nobody has. `query` is raw.
    `address` is the caller's, as far as it is known. The adapters note in `asking`. `entry` is what
    the audit holds already of a call that runs. `mark_untold` is for a booking that its caller
    cannot be told of and would not find again. `waits_since`, by time.monotonic, is set while the
    call waits for room or for its body. `gone` is true once its connection has ended.
    """

    at: datetime
    request_id: str
    method: str
    target: Target | GatewayError
    digest: bytes | None
    query: str
    upload: Upload
    address: str = ""
    key: Key | None = None
    quota: Quota | None = None
    level: AccessLevel | None = None
    policy: str | None = None
    records: Sequence[str] = ()
    replayed: bool = False
    asking: CallNotes = field(default_factory=CallNotes)
    entry: Entry | None = None
    mark_untold: Callable[[], Awaitable[None]] | None = None
    waits_since: float | None = None
    gone: bool = False

    def audit_entry(
        self, now: datetime, operation: str, outcome: str, reason: str | None = None
    ) -> Entry:
        """Returns what the audit is to hold of the call, as far as it has come."""
        return Entry(
            now,
            self.request_id,
            None if self.key is None else self.key.id,
            operation,
            self.records,
            self.level,
            self.policy,
            outcome,
            reason,
        )


class Admitted(Struct, frozen=True, eq=False):
    """A call that may be answered, and how: by the policy that it takes here and keeps to its end.

    `others` gives the conditions for records of other resources.
    """

    call: Call
    key: Key
    target: Target
    redactor: Redactor
    others: Others


class Reply(Struct):
    """An answer: JSON bytes and header values; `location` and `next` are paths of the interface.

    `lines` are the lines of its head that depend on nothing else, once they have been made.
    """

    status: int
    body: bytes
    skipped: int = 0
    location: str = ""
    next: str = ""
    lines: str = ""
