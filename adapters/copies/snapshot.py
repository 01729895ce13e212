"""Copies files as they were at one moment, as well as that can be told, while others write them.

A set counts as whole where neither a size nor a time of change moved while it was read. File
servers and old file systems tell times by the second or two, and by clocks of their own: where a
file has not been seen as it is for that long, or one is gone, the set must also be the same when it
is read once more.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from adapters.copies.tables import TornError

# Seconds before each further try.
PAUSES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
# Seconds within which a second change may leave the time of change as it is.
COARSE = 2.0
PIECE = 1 << 20

# name -> size and time of change, in nanoseconds
Status = Mapping[str, tuple[int, int]]


class Snapshot(NamedTuple):
    """Files as they were: when they were still so, their status then, and their digests.

    `since` is when each file was first seen to have that status.
    """

    at: float
    status: Status
    since: Mapping[str, float]
    digests: Mapping[str, str]


def status_of(files: Sequence[Path]) -> Status:
    """Returns the size and the time of change of each file; raises OSError."""
    stats = {file.name: file.stat() for file in files}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}


def settled(since: Iterable[float], at: float) -> bool:
    """Returns whether any change after that moment changes the status that files have since."""
    return all(first <= at - COARSE for first in since)


def copied(
    list_files: Callable[[], Sequence[Path]],
    folder: Path,
    check: Callable[[], None],
    pauses: Sequence[float] = PAUSES,
    former: Snapshot | None = None,
    *,
    anew: bool = False,
) -> Snapshot:
    """Copies the files into the folder. Raises OSError, and TornError if they never were whole.

    `check` raises TornError for copies that cannot be whole by what stands in them. Files that are
    still as they were in the `former` snapshot are not copied, if all that have the same stem are
    so, and unless all are copied `anew`.
    """
    before: Mapping[str, str] | None = None
    known, former_names = (None if anew else former), set(() if former is None else former.status)
    torn = TornError("the files were written each time that they were read")
    for pause in pauses:
        time.sleep(pause)
        now, files = time.time(), list_files()
        status = status_of(files)
        since = _since(status, now, former)
        former = Snapshot(now, status, since, {})
        before_that = {} if known is None else known.status
        names = before_that.keys() | status.keys()
        new = {
            _stem(name)
            for name in names
            if before_that.get(name) != status.get(name)
            or not (known and settled([known.since[name]], known.at))
        }
        digests = {
            file.name: _copy(file, folder / file.name)
            if known is None or _stem(file.name) in new
            else known.digests[file.name]
            for file in files
        }
        is_quiet = settled(since.values(), now) and status.keys() >= former_names
        try:
            check()
        except TornError as error:
            torn = error
            continue
        if status_of(list_files()) == status and (is_quiet or digests == before):
            return Snapshot(now, status, since, digests)
        before = digests
    raise torn


def _since(status: Status, now: float, former: Snapshot | None) -> Mapping[str, float]:
    """Returns when each file was first seen to have its status."""
    same = former.since if former is not None else {}
    return {
        name: min(same[name], now) if former and former.status.get(name) == stat else now
        for name, stat in status.items()
    }


def _stem(name: str) -> str:
    return Path(name).stem.lower()


def _copy(source: Path, target: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with source.open("rb") as read, target.open("wb") as written:
        while piece := read.read(PIECE):
            digest.update(piece)
            written.write(piece)
    return digest.hexdigest()
