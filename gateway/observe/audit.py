"""The line of the access log, made when a call has ended."""

from datetime import datetime

from msgspec import Struct

ACCESS = "access.jsonl"


class Access(Struct, rename="camel", gc=False):
    """Who called what and how long it took; `operation` is empty where the path is none."""

    time: datetime
    request_id: str
    key_id: str | None
    operation: str
    method: str
    status: int
    ms: float
