"""The HMAC keys of the audit, in a file of their own: the newest seals, the others still verify.

One secret to a line, 64 hexadecimal digits, the newest first; beside them the state's identity.
"""

import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from gateway.identity import (
    content_of,
    identity_of,
    replace_text,
    state_line,
    write_new,
)
from gateway.settings import Settings, StartRefused, read_sealing_secret

FILE = "audit.key"


@dataclass(frozen=True, slots=True)
class Secret:
    """One HMAC key; `id` tells it from others and tells nothing of it."""

    value: bytes

    @property
    def id(self) -> str:
        return blake2b(b"audit key", key=self.value, digest_size=8).hexdigest()


def key_file(settings: Settings) -> Path:
    """Where the secrets are."""
    return settings.audit.key_file or settings.state / FILE


def read_secrets(path: Path) -> tuple[Secret, ...]:
    """All, the newest first; StartRefused where there are none, or others may read them."""
    try:
        mode = path.stat().st_mode
        lines = content_of(path.read_text("ascii")).split()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no ASCII text"
        raise StartRefused(f"the audit's key {path} cannot be read: {reason.lower()}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise StartRefused(f"the audit's key {path} is open to others: chmod 600 {path}")
    try:
        found = tuple(Secret(read_sealing_secret(line)) for line in lines)
    except ValueError as error:
        raise StartRefused(f"the audit's key {path}: each line {error}") from error
    if not found:
        raise StartRefused(f"the audit's key {path} is empty: put it back from a backup")
    return found


def secrets_at_start(path: Path, *, may_make: bool, state: str | None = None) -> tuple[Secret, ...]:
    """What is there; at the first start of the state with that identity a new one is made."""
    if not path.exists():
        if not may_make:
            raise StartRefused(
                f"the audit's key {path} is gone: put it back from a backup;"
                " `clinic-gateway audit rotate-key` makes another one, with which what was"
                " written before cannot be verified any more"
            )
        # two processes may start at once: who comes second reads what the first has made
        with suppress(FileExistsError), _told(path):
            write_new(path, _text([Secret(secrets.token_bytes(32))], state))
    return read_secrets(path)


def rotate(path: Path, state: str | None = None) -> Secret:
    """Put a new secret before the others; running processes take it within a second.

    A file that is gone is made anew for the state with that identity.
    """
    like = path.stat() if path.exists() else None
    known = () if like is None else read_secrets(path)
    new = Secret(secrets.token_bytes(32))
    text = _text([new, *known], state if like is None else identity_of(path))
    with _told(path):
        replace_text(path, text, like=like)
    return new


def _text(values: Sequence[Secret], state: str | None) -> str:
    return state_line(state) + "".join(f"{each.value.hex()}\n" for each in values)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What keeps the file from being written is a StartRefused, but for one that is there."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartRefused(f"the audit's key {path} cannot be written: {reason}") from error


class Newest:
    """The secret that seals now: the file is looked at again when it has changed."""

    def __init__(self, path: Path, known: tuple[Secret, ...]) -> None:
        self._path = path
        self._seen = self._look()
        self._secret = known[0]

    def __call__(self) -> Secret:
        """The one that was known before where the file cannot be read."""
        seen = self._look()
        if seen is not None and seen != self._seen:
            with suppress(StartRefused):
                self._secret = read_secrets(self._path)[0]
                self._seen = seen
        return self._secret

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size
