"""One row of the ledger as it was read, and the states that it goes through."""

from collections.abc import Mapping
from copy import copy
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import orjson

from gateway.booking.base import Attempt, Booked, Refused
from gateway.booking.values import FOUND, intention
from gateway.store.tables import bookings

BETWEEN = ("intended", "sent", "unknown")
SETTLED = ("done", "refused")
STATES = (*BETWEEN, *SETTLED)
# What is written of a row that nobody works on any more.
LEFT = {"state": "unknown", "owner": None}
# What became of a row: the values to write, or None where it is to go.
Outcome = Mapping[str, Any] | None


class Row:
    """A row as it was read; `mine` where this call has just claimed it, `fresh` by writing it."""

    def __init__(self, row: Any, *, mine: bool = False, fresh: bool = False) -> None:
        self.id: int | None = row.id
        self.key_id: str = row.key_id
        self.digest: bytes | None = row.idempotency_digest
        self.fingerprint: bytes = row.fingerprint
        self.created_at: datetime = row.created_at
        self.state: str = row.state
        self.settled = row.state in SETTLED
        self.reference: str = row.reference or ""
        self.vet_id: str | None = row.vet_id
        self.starts_at: datetime | None = row.starts_at
        self.ends_at: datetime | None = row.ends_at
        self.draft: bytes | None = row.draft
        self.owner: str | None = row.owner
        self.claim: str | None = row.claim
        self.sender: str | None = row.sender
        self.sent_at: datetime | None = row.sent_at
        # Names the last time it was sent, whoever looked for it since; no time is read from it.
        self.sending = f"{self.reference or row.id} {row.sender} {row.sent_at}"
        self.untold: bool = row.state == "done" and row.outcome == FOUND
        self.appointment_id: str | None = row.appointment_id
        self.error: str = row.outcome or ""
        self.mine = mine
        self.fresh = fresh
        self._row = row

    @classmethod
    def perhaps(cls, attempt: Attempt, owner: str, claim: str) -> "Row":
        """One of which it is not known whether it was written."""
        columns = dict.fromkeys(bookings.c.keys())
        return cls(SimpleNamespace(**columns | intention(attempt, owner, claim)))

    def taken(self, claim: str) -> "Row":
        """The same as it is if it was taken, which is not known."""
        row = copy(self)
        row.claim = claim
        return row

    def outcome_again(self) -> Booked:
        """The first outcome once more: the record, or the refusal."""
        if self._row.state == "refused":
            raise Refused(self._row.outcome, replayed=True)
        return Booked(orjson.loads(self._row.record), replayed=True)
