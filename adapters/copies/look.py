"""One look at the files: whether the copy is still as they are, and a new copy where it is not.

A copy is named after what it is made of and for, so that a mapping which is tried beside the one
that serves has a copy of its own. Beside it lies a note of how the files were. Only one process of
a machine looks at a time.
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

from adapters.copies.builder import build
from adapters.copies.snapshot import PAUSES, Snapshot, copied, settled, status_of
from adapters.copies.sources import Source
from adapters.copies.tables import CopyError

LOCK, FILES, NEXT = "lock", "files", "next"
# What a copy of this version is made like; another version makes it anew.
VERSION = 2
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
    """How the files of a copy were; `verified` is when the files were last seen to be so still.

    `since` is when each was first seen to be so. `read_at` is when they were last all read, and
    `inode` that of the copy which the note is about.
    """

    inode: int
    status: dict[str, tuple[int, int]]
    since: dict[str, float]
    digests: dict[str, str]
    tables: dict[str, str]
    verified: float
    read_at: float
    omitted: list[str] = field(default_factory=list)
    codeless: list[str] = field(default_factory=list)


class Outcome(Struct, frozen=True):
    """How a look ended; `busy`: another process looks. `verified` is 0 where there is no copy.

    `omitted` is what of the tables is not copied, `codeless` are files whose letters are unknown.
    """

    kind: Literal["same", "made", "busy", "failed"]
    verified: float = 0.0
    why: str = ""
    omitted: list[str] = field(default_factory=list)
    codeless: list[str] = field(default_factory=list)


def copy_of(request: Request) -> Path:
    """Returns where the copy of what is asked lies."""
    made = [VERSION, request.kind, request.path, request.encoding, request.named, request.wishes]
    recipe = hashlib.blake2b(json.encode(made), digest_size=8).hexdigest()
    return Path(request.folder, f"{recipe}.db")


def look(request: Request) -> Outcome:
    """Makes a new copy where one is needed, and returns how it went; raises nothing expected."""
    os.umask(0o077)
    folder = Path(request.folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(folder) as is_alone:
            note = read_note(request)
            if not is_alone:
                return _outcome("busy", note)
            try:
                outcome = _looked(request, folder, note)
                _forget_others(request, folder)
                return outcome
            finally:
                _clean(folder)
    except CopyError as error:
        why = str(error)
    except sqlite3.Error as error:
        why = f"the copy cannot be written ({getattr(error, 'sqlite_errorname', 'SQLITE_ERROR')})"
    except OSError as error:
        name = Path(error.filename).name if isinstance(error.filename, str) else "a file"
        why = f"{name}: {error.strerror or type(error).__name__}"
    return _outcome("failed", read_note(request), why)


def read_note(request: Request) -> Note | None:
    """Returns the note of a copy that is there; else None."""
    copy = copy_of(request)
    with suppress(OSError, ValueError):
        note = json.decode(copy.with_suffix(".json").read_bytes(), type=Note)
        return note if note.inode == copy.stat().st_ino else None
    return None


def _looked(request: Request, folder: Path, note: Note | None) -> Outcome:
    source = Source(request.kind, Path(request.path), request.encoding, request.named)
    now, trusted = time.time(), note
    if note is not None and not 0 <= now - note.read_at < request.whole:
        trusted = None  # everything is read
    is_settled = trusted is not None and settled(trusted.since.values(), trusted.verified)
    if trusted is not None and is_settled and trusted.status == status_of(source.files()):
        return _kept(request, trusted, verified=now)
    _clean(folder)
    files = folder / FILES
    files.mkdir(mode=0o700)
    former = None
    if note is not None:
        former = Snapshot(note.verified, note.status, note.since, note.digests)
    # an Access file is one, and is read whole
    known = trusted if request.kind == "dbf" else None
    check = source.check(files)
    taken = copied(source.files, files, check, request.pauses, former, anew=known is None)
    read_at = taken.at if known is None else known.read_at
    if note is not None and note.digests == taken.digests:
        seen = {"status": dict(taken.status), "since": dict(taken.since), "read_at": read_at}
        return _kept(request, note, verified=taken.at, **seen)
    return _made(request, source, taken, note, read_at=read_at)


def _made(
    request: Request, source: Source, taken: Snapshot, before: Note | None, *, read_at: float
) -> Outcome:
    copy = copy_of(request)
    tables = source.tables(copy.with_name(FILES), taken.digests)
    following = copy.with_name(NEXT)
    former, kept = (None, {}) if before is None else (copy, before.tables)
    build(following, tables, request.wishes, former, kept)
    omitted = [said for table in tables for said in table.omitted]
    note = Note(
        inode=following.stat().st_ino,
        status=dict(taken.status),
        since=dict(taken.since),
        digests=dict(taken.digests),
        tables={table.name: table.digest for table in tables if table.digest},
        verified=taken.at,
        read_at=read_at,
        omitted=omitted[:MOST_OMITTED],
        codeless=[table.name for table in tables if table.is_codeless],
    )
    following.replace(copy)
    _write(copy, note)
    return _outcome("made", note)


def _kept(request: Request, note: Note, **seen: Any) -> Outcome:
    """Writes when the files were last seen as the copy is."""
    note = structs.replace(note, **seen)
    _write(copy_of(request), note)
    return _outcome("same", note)


def _write(copy: Path, note: Note) -> None:
    beside = copy.with_suffix(".next")
    beside.write_bytes(json.encode(note))
    beside.replace(copy.with_suffix(".json"))


def _forget_others(request: Request, folder: Path) -> None:
    """Removes copies of other sources or wishes at which nobody looks any more."""
    own, before = copy_of(request).stem, time.time() - request.whole
    for note in folder.glob("*.json"):
        if note.stem != own and note.stat().st_mtime < before:
            note.unlink()
    for copy in folder.glob("*.db"):
        if copy.stem != own and not copy.with_suffix(".json").exists():
            copy.unlink()


def _outcome(
    kind: Literal["same", "made", "busy", "failed"], note: Note | None, why: str = ""
) -> Outcome:
    if note is None:
        return Outcome(kind, why=why)
    return Outcome(kind, note.verified, why, note.omitted, note.codeless)


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
