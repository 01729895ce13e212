"""The audit's folder: a file for each day and chain, a name of its own, and its state's."""

import fcntl
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from uuid import uuid4

from gateway.identity import content_of, state_line
from gateway.settings import Settings

PLACE = "folder.id"
# What the folder in the state folder is called.
FOLDER = "audit"
_name = re.compile(r"(\d{4}-\d{2}-\d{2})\.([0-9a-f-]{36})\.jsonl").fullmatch


@dataclass(frozen=True, slots=True, order=True)
class DayFile:
    """What one process wrote on one day (UTC)."""

    day: date
    chain: str
    path: Path


def audit_folder(settings: Settings) -> Path:
    """Where the files are."""
    return settings.audit.folder or settings.state / FOLDER


def made(folder: Path) -> Path:
    """The folder, its owner's alone, made where it is not there. OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def path_of(folder: Path, day: date, chain: str) -> Path:
    """The file of a day and a chain."""
    return folder / f"{day.isoformat()}.{chain}.jsonl"


def day_files(folder: Path) -> list[DayFile]:
    """All, the oldest first. OSError where the folder cannot be read."""
    return sorted(found for path in _paths(folder) if (found := _day_file(path)))


def strangers(folder: Path) -> list[Path]:
    """Files that look like the audit's and have no name of the right form."""
    return sorted(path for path in _paths(folder) if ".jsonl" in path.name and not _day_file(path))


def _paths(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


def _day_file(path: Path) -> DayFile | None:
    found = _name(path.name)
    try:
        return DayFile(date.fromisoformat(found[1]), found[2], path) if found else None
    except ValueError:
        return None


def place_of(folder: Path) -> str | None:
    """The folder's own name, which stays when it is moved; None where it has none yet."""
    try:
        return content_of((folder / PLACE).read_text("ascii")).strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def named_place(folder: Path, state: str | None = None) -> str:
    """The same, given one where it has none, and the identity of its state. OSError."""
    if place_of(folder) is None:
        beside = folder / f"{PLACE}.{uuid4()}"
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{uuid4()}\n{state_line(state)}")
            file.flush()
            os.fsync(file.fileno())
        # two may begin at once: the first one's stays
        with suppress(FileExistsError):
            os.link(beside, folder / PLACE)
        beside.unlink()
    return place_of(folder) or ""


def is_open(path: Path) -> bool:
    """Whether a process still writes to the file."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        # shared: two who ask at once do not take each other for one that writes
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False
