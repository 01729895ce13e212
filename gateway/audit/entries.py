"""The lines of the audit: an entry for each call, and marks that tell of the chain itself."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from gateway.observe.lines import encoded

_ENCODER = msgspec.json.Encoder()

# How a call ended: refused is a 4xx, failed a 5xx, unknown a booking that may be made. What is
# begun is a booking that has not been sent to the practice system yet.
ANSWERED, REFUSED, FAILED, UNKNOWN = "answered", "refused", "failed", "unknown"
BEGUN = "begun"

# A file or a key begins, the clock was set, lines could not be kept, calls have no line of their
# own, the process ends in order.
BEGIN, CLOCK, LOST, SPARED, END = "begin", "clock", "lost", "spared", "end"
# Somebody did something, in the panel or by a command.
DEED = "deed"


class Entry(Struct, rename="camel", gc=False):
    """Who was shown what: names and ids, never a value, a query or a secret.

    `policy` is the beginning of the hash of the policy that decided the fields. `reason` names the
    error, where there was one.
    """

    time: datetime
    request_id: str
    key_id: str | None
    operation: str
    record_ids: Sequence[str]
    level: str | None
    policy: str | None
    outcome: str
    reason: str | None


class Mark(Struct, rename="camel", omit_defaults=True):
    """What a chain says of itself.

    `begin` names the chain, the day of its file and the HMAC key by its id; `clock` by how many
    seconds the wall clock was set, backwards where they are negative; `lost` how many entries;
    `spared` how many calls of a key, or of callers without any, that counted against no limit.
    """

    kind: str
    time: datetime
    chain: str = ""
    day: str = ""
    key: str = ""
    seconds: float = 0.0
    lines: int = 0
    key_id: str = ""


class DeedLine(Struct, rename="camel", tag_field="kind", tag=DEED):
    """Who did what, in the panel or by a command, to what; `result` is begun, done or failed.

    It is no entry, as no partner was shown anything by it.
    """

    time: datetime
    who: str
    deed: str
    subject: str
    result: str
    details: Mapping[str, Any]


class Line(Struct, rename="camel", gc=False):
    """Any line as it is read again; a mark has a `kind`, an entry has none."""

    seq: int
    time: str
    request_id: str = ""
    key_id: str | None = None
    operation: str = ""
    record_ids: list[str] = []
    level: str | None = None
    policy: str | None = None
    outcome: str = ""
    reason: str | None = None
    kind: str = ""
    chain: str = ""
    day: str = ""
    key: str = ""


# What a chain holds.
Written: TypeAlias = Entry | Mark | DeedLine


def texts(lines: Sequence[Written]) -> list[bytes]:
    """Each as a JSON object."""
    return encoded(_ENCODER, lines).split(b"\n")[:-1]
