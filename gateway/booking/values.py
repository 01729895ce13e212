"""What is written into the ledger's rows: what is intended, and each of the two ends."""

from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from secrets import token_hex
from typing import Any

import orjson

from adapters.base import Record
from gateway.booking.base import Attempt
from gateway.booking.drafts import written

FOUND = "found"  # the outcome of a booking that was found when nobody asked


def intention(attempt: Attempt, owner: str, claim: str) -> dict[str, Any]:
    """What is written before anything is sent."""
    draft = attempt.draft
    return {
        "key_id": attempt.key_id,
        "idempotency_digest": digest_of(attempt.idempotency_key),
        "fingerprint": attempt.fingerprint,
        "state": "intended",
        "created_at": draft.now,
        "reference": token_hex(8),
        "vet_id": draft.vet_id,
        "starts_at": draft.scheduled_at,
        "ends_at": draft.scheduled_at + attempt.lasts,
        "draft": written(draft),
        "owner": owner,
        "claim": claim,
    }


# Why a booking that was made is not told of.
ANOTHERS = "another booking was given the same appointment"


def done(record: Record) -> dict[str, Any]:
    """What is written of a booking that was made."""
    values = _closed("done") | {"record": _kept(record), "appointment_id": record.get("id")}
    return values | {"ends_at": _end_of(record)}


def refused(error: str) -> dict[str, Any]:
    """What is written of a no."""
    return _closed("refused") | {"outcome": error, "ends_at": None}


def _closed(state: str) -> dict[str, Any]:
    return {"state": state, "owner": None, "draft": None, "outcome": None}


def _end_of(record: Record) -> datetime | None:
    """When the appointment is over; where nobody says it, when it begins."""
    with suppress(KeyError, TypeError, ValueError):
        return datetime.fromisoformat(record.get("endTime") or record["scheduledAt"])
    return None


def _kept(record: Record) -> bytes:
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


def digest_of(idempotency_key: str | None) -> bytes | None:
    """What is kept of an Idempotency-Key: enough to know it again, whatever was put into it."""
    return None if idempotency_key is None else sha256(idempotency_key.encode()).digest()
