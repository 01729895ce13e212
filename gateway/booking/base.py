"""What is asked of the ledger, what comes of it, and one row of it with its states."""

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
# What is written of a row that nobody works on any more, and of one that is settled.
LEFT = {"state": "unknown", "owner": None}
_CLOSED = {"owner": None, "draft": None, "outcome": None}
# Why a booking that was made is not told of.
ANOTHERS = "another booking was given the same appointment"
_drafts = msgspec.json.Decoder(Draft)
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

    outcome: Outcome = None


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
            draft=msgspec.json.encode(replace(draft, only={})),  # not what it may name
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
            return replace(_drafts.decode(self.draft or b""), reference=self.reference)
        except (msgspec.MsgspecError, ValueError):
            return None

    @property
    def is_legible(self) -> bool:
        """Whether it can be looked up; else only people can."""
        return self.read_draft() is not None

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


def done(record: Record, *, told: bool = True) -> dict[str, Any]:
    """What is written of a booking that was made, and that a caller is told of or not.

    It is over when the record says, or else begins; a value that is none of JSON's is as good as
    no value.
    """
    values = _CLOSED | {"state": "done", "appointment_id": record.get("id"), "ends_at": None}
    values["outcome"] = None if told else FOUND
    with suppress(KeyError, TypeError, ValueError):
        ends_at = record.get("endTime") or record["scheduledAt"]
        values["ends_at"] = datetime.fromisoformat(ends_at)
    kept: dict[str, Any] = dict.fromkeys(record)
    for name, value in record.items():
        with suppress(TypeError):
            kept[name] = orjson.Fragment(orjson.dumps(value))
    return values | {"record": orjson.dumps(kept)}


def refused(error: str) -> dict[str, Any]:
    """What is written of a no."""
    return _CLOSED | {"state": "refused", "outcome": error, "ends_at": None}
