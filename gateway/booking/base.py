"""What is asked of the ledger, and what comes of it beside the errors of the adapter."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from adapters.base import Adapter, Draft, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One call's wish to book.

    `fingerprint` tells two requests apart as data. `check_future` raises what the call is to be
    refused with when the wanted time has come; it is asked before anything new is sent.
    """

    key_id: str
    idempotency_key: str | None
    fingerprint: bytes
    draft: Draft
    adapter: Adapter
    check_future: Callable[[], None]
    now: Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Booked:
    """An appointment that was made; `replayed` where an earlier call made it."""

    record: Record
    replayed: bool


class Refused(Exception):
    """The practice system's no: the name of an adapter's error, and whether it is an old one."""

    def __init__(self, error: str, *, replayed: bool) -> None:
        super().__init__(error)
        self.error = error
        self.replayed = replayed
