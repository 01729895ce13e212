"""The requests to the ledger, their results, and a row of the ledger with its states."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from math import ceil
from secrets import token_hex
from typing import Any, Self

import msgspec
import orjson

from adapters.base import Adapter, Draft, Record
from gateway.contract.errors import LimitExceeded

BETWEEN = ("intended", "sent", "unknown")
SETTLED = ("done", "refused")
STATES = (*BETWEEN, *SETTLED)
FOUND = "found"  # the outcome of a booking that was found when nobody asked
# What is written to a row that nobody works on any more, and to one that is settled.
LEFT = {"state": "unknown", "owner": None}
_CLOSED = {"owner": None, "draft": None, "outcome": None}
# Why the caller is not told of a booking that was made.
ANOTHERS = "another booking was given the same appointment"
_drafts = msgspec.json.Decoder(Draft)
# What became of a row: the values to write, or None where it is to go.
Outcome = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """How many bookings a key may make from `since` until `until`, by the times of its requests."""

    most: int
    since: datetime
    until: datetime

    def check(self, made: int, now: datetime) -> None:
        """Raises LimitExceeded, with the seconds until it is renewed, where as many were made."""
        if made >= self.most:
            raise LimitExceeded(max(1, ceil((self.until - now).total_seconds())))


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingRequest:
    """One call's request to book; `lasts` is how long the appointment takes its vet.

    `fingerprint` tells two requests apart as data. `check_time` raises the call's refusal once the
    requested time has come, and is called before anything new is sent. `check_key` raises it where
    the caller may book no longer, and is called last before that. `allowance` is None where the
    caller's bookings are not counted.
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
    """The practice system's refusal: the name of an adapter's error, and whether it is old."""

    def __init__(self, error: str, *, replayed: bool) -> None:
        super().__init__(error)
        self.error = error
        self.replayed = replayed


class LostClaim(Exception):
    """Raised where the row has another claim by now, or is gone."""

    outcome: Outcome = None  # what its first claim knows to have happened; None: nothing was sent


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """A row as it was read; its `id` is None where nobody knows whether it was written."""

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

    @classmethod
    def intended(cls, request: BookingRequest, owner: str, claim: str) -> Self:
        """Returns the row that is to be written before anything is sent."""
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
            draft=msgspec.json.encode(replace(draft, only={})),  # the conditions are not stored
            owner=owner,
            claim=claim,
        )

    @property
    def is_settled(self) -> bool:
        return self.state in SETTLED

    @property
    def sending(self) -> str:
        """The name of the last time that it was sent; no time can be read from it."""
        return f"{self.reference} {self.sender} {self.sent_at}"

    def read_draft(self) -> Draft | None:
        """Returns the draft of the request; None where it cannot be read."""
        with suppress(msgspec.MsgspecError, ValueError):
            return replace(_drafts.decode(self.draft or b""), reference=self.reference)
        return None

    @property
    def is_legible(self) -> bool:
        """Whether it can be looked up without people."""
        return self.read_draft() is not None

    def is_like(self, request: BookingRequest) -> bool:
        """Returns whether a look-up without a reference could take one for the other."""
        draft, own = request.draft, self.read_draft()
        at_once = (self.starts_at, self.vet_id) == (draft.scheduled_at, draft.vet_id)
        is_of_patient = own is None or own.patient_id == draft.patient_id
        return (at_once and is_of_patient) or self.fingerprint == request.fingerprint

    def outcome_again(self) -> Booked:
        """Returns the first outcome once more; raises BookingRefused where it was a refusal."""
        if self.state == "refused":
            raise BookingRefused(self.outcome or "", replayed=True)
        return Booked(orjson.loads(self.record or b""), replayed=True)


def digest_of(idempotency_key: str | None) -> bytes | None:
    """Returns what is kept of an Idempotency-Key to recognise it; None without one."""
    return None if idempotency_key is None else sha256(idempotency_key.encode()).digest()


def done(record: Record, *, told: bool = True) -> dict[str, Any]:
    """Returns what is written of a booking that was made; `told` is whether a caller hears of it.

    It is over when the record says, or else when it begins. A value that JSON lacks is left empty.
    """
    values = _CLOSED | {"state": "done", "appointment_id": record.get("id"), "ends_at": None}
    values["outcome"] = None if told else FOUND
    with suppress(KeyError, TypeError, ValueError):
        values["ends_at"] = datetime.fromisoformat(record.get("endTime") or record["scheduledAt"])
    try:
        return values | {"record": orjson.dumps(record)}
    except TypeError:
        kept: dict[str, Any] = dict.fromkeys(record)
        for name, value in record.items():
            with suppress(TypeError):
                kept[name] = orjson.Fragment(orjson.dumps(value))
        return values | {"record": orjson.dumps(kept)}


def refused(error: str) -> dict[str, Any]:
    return _CLOSED | {"state": "refused", "outcome": error, "ends_at": None}
