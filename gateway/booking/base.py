"""What is asked of the ledger, and what comes of it beside the errors of the adapter."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Protocol

from adapters.base import Adapter, Draft, Record
from gateway.contract.errors import LimitExceeded


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """How many bookings a key may make from `since` until `until`, by when they were asked for."""

    most: int
    since: datetime
    until: datetime

    def check(self, made: int, now: datetime) -> None:
        """LimitExceeded, with the seconds until it is renewed, where as many were made."""
        if made >= self.most:
            raise LimitExceeded(max(1, ceil((self.until - now).total_seconds())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One call's wish to book; `lasts` is how long its vet is taken by it.

    `fingerprint` tells two requests apart as data. `check_time` raises what the call is to be
    refused with when the wanted time has come; it is asked before anything new is sent. `check_key`
    does when the caller may book no longer; it is asked last of all before that. `allowance` is
    None where the caller's bookings are not counted.
    """

    key_id: str
    idempotency_key: str | None
    fingerprint: bytes
    draft: Draft
    lasts: timedelta
    adapter: Adapter
    check_time: Callable[[], object]
    check_key: Callable[[], object]
    now: Callable[[], datetime]
    allowance: Allowance | None = None


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


class Told(Protocol):
    """Hears what the ledger cannot tell a caller; each is said once, each time that it happens."""

    def outcome_waits(self, error: Exception) -> None:
        """An outcome could not be written; it is kept and written later."""

    def found(self, appointment: str) -> None:
        """A booking whose outcome was not known was made."""

    def released(self, reference: str) -> None:
        """One was certainly not made: its time is free again."""

    def illegible(self, reference: str) -> None:
        """What the ledger has of one whose outcome is not known cannot be read."""

    def made_twice(self, appointment: str) -> None:
        """An appointment was made by a process that had been taken for dead, beside another."""
