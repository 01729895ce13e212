"""The identity of a state: a random id that each of its parts has, and how files tell it.

A file tells it in a line of its own, `# state ID`, which is no part of what else the file says.
"""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

# What the store calls it.
META = "state identity"
_state_line = re.compile(r"# state ([0-9a-f-]{36})").fullmatch


def new_identity() -> str:
    """The identity of a state that begins."""
    return str(uuid4())


def reason_of(error: OSError) -> str:
    """Why a file cannot be read or written, in the system's words."""
    return (error.strerror or str(error)).lower()


def state_line(identity: str | None) -> str:
    """The line by which a file tells it; nothing where there is none."""
    return f"# state {identity}\n" if identity else ""


def content_of(text: str) -> str:
    """What else the file says."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("# "))


def identity_of(path: Path) -> str | None:
    """The identity that a file tells; None where it tells none, or cannot be read."""
    try:
        lines = path.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((found[1] for line in lines if (found := _state_line(line))), None)


def write_identity(path: Path, identity: str) -> None:
    """Have an existing file tell it; its owner and its mode stay. OSError."""
    text = state_line(identity) + content_of(path.read_text("ascii"))
    replace_text(path, text, like=path.stat())


def replace_text(path: Path, text: str, *, like: os.stat_result | None = None) -> None:
    """Write a file whole or not at all, for its owner alone; owned as `like` says. OSError."""
    with _beside(path, text, like) as beside:
        beside.replace(path)


def write_new(path: Path, text: str) -> None:
    """The same of a file that is not there yet; FileExistsError where it is."""
    with _beside(path, text, None) as beside:
        os.link(beside, path)


@contextmanager
def _beside(path: Path, text: str, like: os.stat_result | None) -> Iterator[Path]:
    """The text on disk under another name in the same folder; that name goes at the end."""
    beside = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
            if like is not None and os.geteuid() == 0:
                os.fchown(stream.fileno(), like.st_uid, like.st_gid)
        yield beside
    finally:
        with suppress(OSError):
            beside.unlink()
