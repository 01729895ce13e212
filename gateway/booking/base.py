"""What is asked of the ledger, what comes of it, and one row of it with its states."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from math import ceil
from secrets import token_hex
from typing import Any, Protocol, Self

import orjson

from adapters.base import Adapter, Draft, Record
from gateway.contract.errors import LimitExceeded

BETWEEN = ("intended", "sent", "unknown")
SETTLED = ("done", "refused")
STATES = (*BETWEEN, *SETTLED)
FOUND = "found"  # the outcome of a booking that was found when nobody asked
# What is written of a row that nobody works on any more.
LEFT = {"state": "unknown", "owner": None}
# Why a booking that was made is not told of.
ANOTHERS = "another booking was given the same appointment"
_TEXTS = ("client_id", "patient_id", "vet_id", "appointment_type_id", "reason", "is_urgent")
_TIMES = ("scheduled_at", "now")
# What became of a row: the values to write, or None where it is to go.
Outcome = Mapping[str, Any] | None


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
class BookingRequest:
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


class BookingRefused(Exception):
    """The practice system's no: the name of an adapter's error, and whether it is an old one."""

    def __init__(self, error: str, *, replayed: bool) -> None:
        super().__init__(error)
        self.error = error
        self.replayed = replayed


class LostClaim(Exception):
    """The row is another claim's by now, or gone.

    `outcome` is what its first claim knows to have happened: None where it has sent nothing.
    """

    def __init__(self, outcome: Outcome = None) -> None:
        super().__init__()
        self.outcome = outcome


class LedgerListener(Protocol):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """A row as it was read; `mine` where this call has just claimed it, `fresh` by writing it.

    Its `id` is None where nobody knows whether it was written.
    """

    id: int | None = None
    key_id: str
    idempotency_digest: bytes | None
    fingerprint: bytes
    state: str
    outcome: str | None = None
    record: bytes | None = None
    created_at: datetime
    reference: str
    appointment_id: str | None = None
    ends_at: datetime | None
    starts_at: datetime | None
    vet_id: str | None
    draft: bytes | None
    owner: str | None
    claim: str
    sender: str | None = None
    sent_at: datetime | None = None
    mine: bool = False
    fresh: bool = False

    @classmethod
    def intended(cls, request: BookingRequest, owner: str, claim: str) -> Self:
        """Returns what is to be written before anything is sent."""
        draft = request.draft
        return cls(
            key_id=request.key_id,
            idempotency_digest=digest_of(request.idempotency_key),
            fingerprint=request.fingerprint,
            state="intended",
            created_at=draft.now,
            reference=token_hex(8),
            vet_id=draft.vet_id,
            starts_at=draft.scheduled_at,
            ends_at=draft.scheduled_at + request.lasts,
            draft=_kept_draft(draft),
            owner=owner,
            claim=claim,
        )

    @property
    def is_settled(self) -> bool:
        return self.state in SETTLED

    @property
    def sending(self) -> str:
        """Names the last time it was sent, whoever looked for it since; no time is read from it."""
        return f"{self.reference} {self.sender} {self.sent_at}"

    def read_draft(self) -> Draft | None:
        """Returns what was asked for; None where it cannot be read."""
        try:
            kept: dict[str, Any] = orjson.loads(self.draft or b"")
            times = {name: datetime.fromisoformat(kept[name]) for name in _TIMES}
            return Draft(**kept | times, reference=self.reference)
        except (ValueError, TypeError, KeyError):
            return None

    def is_like(self, request: BookingRequest) -> bool:
        """Whether a look-up without a reference could take one of them for the other."""
        wanted = request.draft
        at_once = (self.starts_at, self.vet_id) == (wanted.scheduled_at, wanted.vet_id)
        own = self.read_draft()
        is_of_patient = own is None or own.patient_id == wanted.patient_id
        return (at_once and is_of_patient) or self.fingerprint == request.fingerprint

    def outcome_again(self) -> Booked:
        """Returns the first outcome once more; raises BookingRefused where it was a refusal."""
        if self.state == "refused":
            raise BookingRefused(self.outcome or "", replayed=True)
        return Booked(orjson.loads(self.record or b""), replayed=True)


def digest_of(idempotency_key: str | None) -> bytes | None:
    """What is kept of an Idempotency-Key: enough to know it again, whatever was put into it."""
    return None if idempotency_key is None else sha256(idempotency_key.encode()).digest()


def done(record: Record) -> dict[str, Any]:
    """What is written of a booking that was made."""
    values = _closed("done") | {"record": _kept_record(record), "appointment_id": record.get("id")}
    return values | {"ends_at": _end_of(record)}


def refused(error: str) -> dict[str, Any]:
    """What is written of a no."""
    return _closed("refused") | {"outcome": error, "ends_at": None}


def _closed(state: str) -> dict[str, Any]:
    return {"state": state, "owner": None, "draft": None, "outcome": None}


def _kept_draft(draft: Draft) -> bytes:
    """The draft as JSON, without its reference, which the row has, and what it may name."""
    kept = {name: getattr(draft, name) for name in _TEXTS}
    return orjson.dumps(kept | {name: getattr(draft, name).isoformat() for name in _TIMES})


def _end_of(record: Record) -> datetime | None:
    """When the appointment is over; where nobody says it, when it begins."""
    with suppress(KeyError, TypeError, ValueError):
        return datetime.fromisoformat(record.get("endTime") or record["scheduledAt"])
    return None


def _kept_record(record: Record) -> bytes:
    """The record as JSON; a value that is none of JSON's is as good as no value."""
    try:
        return orjson.dumps(record)
    except TypeError:
        return orjson.dumps({name: _plain(value) for name, value in record.items()})


def _plain(value: Any) -> Any:
    try:
        return orjson.Fragment(orjson.dumps(value))
    except TypeError:
        return None
