"""The identity of a state: a random id that each of its parts has, and how files tell it.

A file tells it in a line of its own, `# state ID`, which is no part of what else the file says.
"""

import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# What the store calls it.
META = "state identity"
# What is not whole yet has such a name.
UNDER_WAY = ".under-way"

Account = tuple[int, int]
_state_line = re.compile(r"# state ([0-9a-f-]{36})").fullmatch


def reason_of(error: OSError | UnicodeDecodeError) -> str:
    """Why a file cannot be read or written, in the system's words."""
    if isinstance(error, UnicodeDecodeError):
        return "it is no ascii text"
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
    account = None if like is None or os.geteuid() != 0 else (like.st_uid, like.st_gid)
    with _beside(path, [text.encode()], account) as beside:
        beside.replace(path)


def write_new(path: Path, text: str) -> None:
    """The same of a file that is not there yet; FileExistsError where it is."""
    write_pieces(path, [text.encode()])


def write_pieces(path: Path, pieces: Iterable[bytes], account: Account | None = None) -> None:
    """The same of what it is made of, owned by that account where it is given."""
    with _beside(path, pieces, account) as beside:
        os.link(beside, path)


@contextmanager
def _beside(path: Path, pieces: Iterable[bytes], account: Account | None) -> Iterator[Path]:
    """The content on disk under another name in the same folder; that name goes at the end."""
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
        # what is written has another name so far, or the system names none
        if error.filename in (None, str(beside), beside):
            error.filename = str(path)
        raise
    finally:
        with suppress(OSError):
            beside.unlink()
