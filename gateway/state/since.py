"""What was done to keys after a backup was made, as far as the audit that is left tells it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.administrators.log import DONE
from gateway.audit.files import day_files

_DEED = b'"kind":"deed"'


def deeds_since(folder: Path, moment: datetime) -> list[str]:
    """Each a sentence, the oldest first. OSError."""
    found = sorted(
        (at, f"since the backup: {each['deed']} {each['subject']}, by {each['who']} ({at})")
        for each in _deeds(folder, moment)
        if each["deed"].startswith("key ") and (at := each["time"])
    )
    return [sentence for _, sentence in found]


def _deeds(folder: Path, moment: datetime) -> Iterator[dict[str, Any]]:
    for file in day_files(folder):
        if file.day < moment.astimezone(UTC).date():
            continue
        with file.path.open("rb") as lines:
            for line in lines:
                each = _deed(line) if _DEED in line[:64] else None
                if each and datetime.fromisoformat(each["time"]) > moment:
                    yield each


def _deed(line: bytes) -> dict[str, Any] | None:
    """A line of something that was done; None of any other, and of one that is cut off."""
    try:
        read: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    return read if read.get("result") == DONE else None
