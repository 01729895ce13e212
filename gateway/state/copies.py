"""Copies of files: whole or not there, on disk, for one account alone; nothing is overwritten."""

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from gateway.audit.chains import sync_folder
from gateway.settings import StartRefused

# Bytes that hold the last line of an audit's file, whatever it is.
LONGEST = 128 << 10
# What is not whole yet has such a name.
UNDER_WAY = ".under-way"

Account = tuple[int, int]


def new_folder(folder: Path) -> None:
    """A folder of its owner's alone; StartRefused where there is something in it already."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise StartRefused(f"{folder} is not empty: name a new folder, nothing is overwritten")
        folder.chmod(0o700)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartRefused(f"the folder {folder} cannot be made: {reason}") from error


def copy_file(source: Path, target: Path, account: Account | None = None) -> None:
    """A copy, owned by that account where it is given. OSError, which names what failed."""
    _copy(source, target, account, lines=False)


def copy_lines(source: Path, target: Path) -> None:
    """The same of whole lines alone: somebody may be writing the last one."""
    _copy(source, target, None, lines=True)


def _copy(source: Path, target: Path, account: Account | None, *, lines: bool) -> None:
    beside = target.with_name(f"{secrets.token_hex(4)}{UNDER_WAY}")
    try:
        file = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "r+b") as stream:
            for piece in _pieces(source):
                stream.write(piece)
            if lines:
                _cut_off(stream)
            stream.flush()
            if account is not None:
                os.fchown(stream.fileno(), *account)
            os.fsync(stream.fileno())
        os.link(beside, target)
        sync_folder(target.parent)
    except OSError as error:
        # what is written has another name so far, or the system names none
        if error.filename in (None, str(beside), beside):
            error.filename = str(target)
        raise
    finally:
        with suppress(OSError):
            beside.unlink()


def _pieces(source: Path) -> Iterator[bytes]:
    """What it holds. OSError, which names it."""
    try:
        with source.open("rb") as given:
            while piece := given.read(1 << 20):
                yield piece
    except OSError as error:
        error.filename = str(source)
        raise


def _cut_off(stream: BinaryIO) -> None:
    """What follows the last whole line goes."""
    size = stream.seek(0, os.SEEK_END)
    start = stream.seek(max(0, size - LONGEST))
    stream.truncate(start + stream.read().rfind(b"\n") + 1)


def tidy(folder: Path) -> None:
    """What a copy left that was cut off goes. OSError."""
    for path in folder.glob(f"*{UNDER_WAY}"):
        path.unlink(missing_ok=True)
