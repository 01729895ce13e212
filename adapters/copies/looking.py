"""One look at the files: whether the copy is still as they are, and a new copy where it is not.

Beside the copy lies a note of what it was made of. Only one process of a machine looks at a time.
"""

import fcntl
import hashlib
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field, json, structs

from adapters.copies.building import build
from adapters.copies.snapshot import PAUSES, Snapshot, copied, status_of
from adapters.copies.sources import Source
from adapters.copies.tables import CopyError

COPY, NOTE, LOCK, FILES, NEXT = "practice.db", "practice.json", "lock", "files", "practice.next"
# What a copy of this version is made like; another version makes it anew.
VERSION = 1
MOST_OMITTED = 20


class Request(Struct, frozen=True):
    """What a look is told: the source, the copy's folder, and which indices are wished.

    Files whose sizes and times of change are the same as before are read all the same once they
    have not been read for `whole` seconds, as a file server may tell the times late.
    """

    kind: str
    path: str
    folder: str
    encoding: str = ""
    named: str | None = None
    wishes: list[list[str]] = []
    whole: float = 600.0
    pauses: tuple[float, ...] = PAUSES


class Note(Struct, frozen=True):
    """What a copy was made of; `verified` is when the files were last seen to be so still.

    `read_at` is when they were last read, and `inode` that of the copy which the note is about.
    """

    source: str
    recipe: str
    inode: int
    status: dict[str, tuple[int, int]]
    digests: dict[str, str]
    tables: dict[str, str]
    verified: float
    read_at: float
    omitted: list[str] = field(default_factory=list)


class Outcome(Struct, frozen=True):
    """How a look ended; `busy`: another process looks. `verified` is 0 where there is no copy."""

    kind: Literal["same", "made", "busy", "failed"]
    verified: float = 0.0
    why: str = ""
    omitted: list[str] = field(default_factory=list)


def look(request: Request) -> Outcome:
    """Makes a new copy where one is needed, and returns how it went; raises nothing expected."""
    os.umask(0o077)
    folder = Path(request.folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(folder) as is_alone:
            note = read_note(folder, request)
            if not is_alone:
                return _outcome("busy", note)
            try:
                return _looked(request, folder, note)
            finally:
                _clean(folder)
    except CopyError as error:
        why = str(error)
    except sqlite3.Error as error:
        why = f"the copy cannot be written ({getattr(error, 'sqlite_errorname', 'SQLITE_ERROR')})"
    except OSError as error:
        name = Path(error.filename).name if isinstance(error.filename, str) else "a file"
        why = f"{name}: {error.strerror or type(error).__name__}"
    return _outcome("failed", read_note(folder, request), why)


def read_note(folder: Path, request: Request) -> Note | None:
    """Returns the note of a copy that is there and of this source; else None."""
    with suppress(OSError, ValueError):
        note = json.decode((folder / NOTE).read_bytes(), type=Note)
        is_its = note.inode == (folder / COPY).stat().st_ino
        return note if is_its and note.source == _source(request) else None
    return None


def _looked(request: Request, folder: Path, note: Note | None) -> Outcome:
    source = Source(request.kind, Path(request.path), request.encoding, request.named)
    recipe, now = _recipe(request), time.time()
    valid = note if note is not None and note.recipe == recipe else None
    is_due = valid is None or not 0 <= now - valid.read_at < request.whole
    if valid is not None and not is_due and valid.status == status_of(source.files()):
        return _kept(folder, valid, verified=now)
    _clean(folder)
    files = folder / FILES
    files.mkdir(mode=0o700)
    taken = copied(source.files, files, source.check(files), request.pauses)
    if valid is not None and valid.digests == taken.digests:
        seen = {"status": dict(taken.status), "read_at": taken.at}
        return _kept(folder, valid, verified=taken.at, **seen)
    return _made(request, folder, source, taken, valid)


def _made(
    request: Request, folder: Path, source: Source, taken: Snapshot, valid: Note | None
) -> Outcome:
    tables = source.tables(folder / FILES, taken.digests)
    following, copy = folder / NEXT, folder / COPY
    former, kept = (None, {}) if valid is None else (copy, valid.tables)
    build(following, tables, request.wishes, former, kept)
    omitted = [said for table in tables for said in table.omitted]
    note = Note(
        source=_source(request),
        recipe=_recipe(request),
        inode=following.stat().st_ino,
        status=dict(taken.status),
        digests=dict(taken.digests),
        tables={table.name: table.digest for table in tables if table.digest},
        verified=taken.at,
        read_at=taken.at,
        omitted=omitted[:MOST_OMITTED],
    )
    following.replace(copy)
    _write(folder, note)
    return _outcome("made", note)


def _kept(folder: Path, note: Note, **seen: Any) -> Outcome:
    """Writes when the files were last seen as the copy is."""
    note = structs.replace(note, **seen)
    _write(folder, note)
    return _outcome("same", note)


def _write(folder: Path, note: Note) -> None:
    beside = folder / f"{NOTE}.next"
    beside.write_bytes(json.encode(note))
    beside.replace(folder / NOTE)


def _outcome(
    kind: Literal["same", "made", "busy", "failed"], note: Note | None, why: str = ""
) -> Outcome:
    if note is None:
        return Outcome(kind, why=why)
    return Outcome(kind, note.verified, why, note.omitted)


def _source(request: Request) -> str:
    return f"{request.kind}:{request.path}"


def _recipe(request: Request) -> str:
    """Returns what tells whether a copy was made of the same wishes."""
    made = [VERSION, request.encoding, request.named, request.wishes]
    return hashlib.blake2b(json.encode(made), digest_size=16).hexdigest()


def _clean(folder: Path) -> None:
    """Removes what a look leaves behind, or one that was killed has left."""
    shutil.rmtree(folder / FILES, ignore_errors=True)
    (folder / NEXT).unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Yields whether no other process looks meanwhile."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(lock)
