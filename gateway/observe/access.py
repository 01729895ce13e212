"""The access line of a call: names, a status and durations; never an address, a query or a value.

Whose address a call came from is personal data and serves no purpose here: keys say who calls.
"""

from datetime import datetime

from msgspec import Struct

ACCESS = "access.jsonl"


class Access(Struct, rename="camel", gc=False, omit_defaults=True):
    """Who called what and how long it took; `operation` is empty where the path is none.

    `ms` is the whole call, `backend_ms` the part in which the practice system was asked,
    `waited_ms` the part in which it waited for room to ask. `trace_id` is there where the call is
    part of a trace.
    """

    time: datetime
    request_id: str
    key_id: str | None
    operation: str
    method: str
    status: int
    ms: float
    backend_ms: float
    waited_ms: float
    trace_id: str | None = None
