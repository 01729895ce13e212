"""What a row of the ledger keeps of a draft, so that it can be looked up without its caller."""

from datetime import datetime
from typing import Any

import orjson

from adapters.base import Draft

_TEXTS = ("client_id", "patient_id", "vet_id", "appointment_type_id", "reason", "is_urgent")


def written(draft: Draft) -> bytes:
    """The draft as JSON, without its reference, which the row has, and what it may name."""
    kept: dict[str, Any] = {name: getattr(draft, name) for name in _TEXTS}
    times = {"scheduled_at": draft.scheduled_at, "now": draft.now}
    return orjson.dumps(kept | {name: each.isoformat() for name, each in times.items()})


def is_of_patient(data: bytes | None, patient_id: str) -> bool:
    """Whether it may be this patient's: of what was not kept, or cannot be read, nobody knows."""
    try:
        return data is None or bool(orjson.loads(data)["patient_id"] == patient_id)
    except (ValueError, KeyError, TypeError):
        return True


def read_draft(data: bytes | None, reference: str) -> Draft | None:
    """The draft again; None where it was not kept or cannot be read."""
    try:
        kept: dict[str, Any] = orjson.loads(data or b"")
        kept |= {name: datetime.fromisoformat(kept[name]) for name in ("scheduled_at", "now")}
        return Draft(**kept, reference=reference)
    except (ValueError, TypeError, KeyError):
        return None
