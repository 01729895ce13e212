"""The identity of a state: a random id that each of its parts has, and how files carry it.

A file carries it in a line of its own, `# state ID`, which is not part of its other content.
"""

import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from errno import ENOSPC
from pathlib import Path

# Its name in the store.
META = "state identity"
# The end of the name of a file that is not whole yet.
UNDER_WAY = ".under-way"

Account = tuple[int, int]
_state_line = re.compile(r"# state ([0-9a-f-]{36})").fullmatch


def reason_of(error: OSError | UnicodeDecodeError) -> str:
    """Returns why a file cannot be read or written, in the system's words."""
    if isinstance(error, UnicodeDecodeError):
        return "it is no ascii text"
    if error.errno == ENOSPC:
        return "the disk is full"
    return (error.strerror or str(error)).lower()


def stamp(path: Path) -> tuple[int, int, int] | None:
    """Returns what changes with a file: its inode, time and size; None where it is gone."""
    with suppress(OSError):
        status = path.stat()
        return status.st_ino, status.st_mtime_ns, status.st_size
    return None


def state_line(identity: str | None) -> str:
    """Returns the line by which a file carries the identity; "" where there is none."""
    return f"# state {identity}\n" if identity else ""


def content_of(text: str) -> str:
    """Returns the other content of a file, without the lines that begin with `# `."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("# "))


def identity_of(path: Path) -> str | None:
    """Returns the identity that a file carries; None where it has none, or cannot be read."""
    try:
        lines = path.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((match[1] for line in lines if (match := _state_line(line))), None)


def write_identity(path: Path, identity: str) -> None:
    """Writes the identity into an existing file, whose owner stays. Raises OSError."""
    text = state_line(identity) + content_of(path.read_text("ascii"))
    replace_text(path, text, like=path.stat())


def replace_text(path: Path, text: str, *, like: os.stat_result | None = None) -> None:
    """Writes a file whole or not at all, in mode 0600, owned like `like`. Raises OSError."""
    account = None if like is None or os.geteuid() != 0 else (like.st_uid, like.st_gid)
    with _beside(path, [text.encode()], account) as beside:
        beside.replace(path)


def write_new(path: Path, text: str) -> None:
    """Writes a new file likewise; raises FileExistsError where there is one."""
    write_pieces(path, [text.encode()])


def write_pieces(path: Path, pieces: Iterable[bytes], account: Account | None = None) -> None:
    """Writes a new file of pieces likewise, owned by that account where it is given."""
    with _beside(path, pieces, account) as beside:
        os.link(beside, path)


@contextmanager
def _beside(path: Path, pieces: Iterable[bytes], account: Account | None) -> Iterator[Path]:
    """Yields the content on disk under another name in the same folder, and removes that name."""
    beside = path.with_name(f"{path.name}.{secrets.token_hex(4)}{UNDER_WAY}")
    try:
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "wb") as stream:
            stream.writelines(pieces)
            stream.flush()
            if account is not None:
                os.fchown(stream.fileno(), *account)
            os.fsync(stream.fileno())
        yield beside
    except OSError as error:
        # so far the file has another name, or the system names none
        if error.filename in (None, str(beside), beside):
            error.filename = str(path)
        raise
    finally:
        with suppress(OSError):
            beside.unlink()
