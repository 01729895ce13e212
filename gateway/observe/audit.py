"""The access log and the audit: one line each per call, made when the call has ended."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import DecodeError, Struct, json

from gateway.observe.access import Access
from gateway.observe.lines import Lines, Watcher

ACCESS, AUDIT = "access.jsonl", "audit.jsonl"


# How a call ended: refused is a 4xx, failed a 5xx, unknown a booking that may be made.
ANSWERED, REFUSED, FAILED, UNKNOWN = "answered", "refused", "failed", "unknown"


class Audit(Struct, rename="camel", gc=False):
    """Who was shown what: names and ids, never a value, a query or a secret.

    `policy` is the first 12 digits of the hash of the policy that was applied. `reason` names the
    error, where there was one.
    """

    time: datetime
    request_id: str
    key_id: str | None
    operation: str
    record_ids: Sequence[str]
    level: str | None
    policy: str | None
    outcome: str
    reason: str | None


class Journal:
    """The two files, `access.jsonl` and `audit.jsonl`; OSError where they cannot be opened."""

    def __init__(self, folder: Path, watcher: Watcher) -> None:
        self._access = Lines(folder / ACCESS, watcher)
        self._audit = Lines(folder / AUDIT, watcher)

    def note(self, access: Access, audit: Audit) -> None:
        """Both lines of one call."""
        self._access.add(access)
        self._audit.add(audit)

    @property
    def files(self) -> Mapping[str, Lines]:
        """Both, by what they are called in the figures."""
        return {"access": self._access, "audit": self._audit}

    def flush(self) -> None:
        """Write at once what waits in both."""
        self._access.flush()
        self._audit.flush()

    def close(self) -> None:
        """Write the rest and let go of both."""
        self._access.close()
        self._audit.close()


def find_entry(path: Path, request_id: str) -> dict[str, Any] | None:
    """The last entry of a request, as JSON members; None where the audit knows none."""
    found = None
    try:
        with path.open("rb") as lines:
            for line in lines:
                if request_id.encode() in line:
                    entry = _entry(line)
                    found = entry if entry and entry.get("requestId") == request_id else found
    except FileNotFoundError:
        return None
    return found


def _entry(line: bytes) -> dict[str, Any] | None:
    """A line as it was written; None for one that was cut off."""
    try:
        read = json.decode(line)
    except DecodeError:
        return None
    return read if isinstance(read, dict) else None
