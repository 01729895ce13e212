"""What was done to keys after a backup was made, as far as the audit that is left tells it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.administrators.log import DONE
from gateway.audit.chains import DayFile, day_files
from gateway.contract.fields import write_instant

_DEED = b'"kind":"deed"'


def deeds_since(folder: Path, moment: datetime, names: Mapping[str, str]) -> list[str]:
    """Each a sentence, the oldest first; `names` are those of known keys by id. OSError."""
    found = sorted(
        (datetime.fromisoformat(each["time"]), _told(each, names))
        for each in _deeds(folder, moment)
        if each["deed"].startswith("key ")
    )
    return [sentence for _, sentence in found]


def _told(deed: Mapping[str, Any], names: Mapping[str, str]) -> str:
    key, at = deed["subject"], write_instant(datetime.fromisoformat(deed["time"]))
    name = names.get(key) or deed["details"].get("name")
    whom = f"{name} ({key})" if name else key
    return f"{deed['deed']} after the backup: {whom}, by {deed['who']}, {at}"


def _deeds(folder: Path, moment: datetime) -> Iterator[Mapping[str, Any]]:
    for file in day_files(folder):
        if file.day >= moment.astimezone(UTC).date():
            for each in deeds_in(file):
                if each["result"] == DONE and datetime.fromisoformat(each["time"]) > moment:
                    yield each


def deeds_in(file: DayFile) -> Iterator[Mapping[str, Any]]:
    """The lines of what was done, unverified; one that is cut off is left out. OSError."""
    with file.path.open("rb") as lines:
        for line in lines:
            if _DEED in line[:64]:
                with suppress(ValueError):
                    yield json.loads(line)
