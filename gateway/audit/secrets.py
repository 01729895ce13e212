"""The HMAC keys of the audit, in a file of their own: the newest seals, the others still verify.

One secret to a line, 64 hexadecimal digits, the newest first.
"""

import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

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
        lines = path.read_text("ascii").split()
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


def secrets_at_start(path: Path, *, may_make: bool) -> tuple[Secret, ...]:
    """What is there; at the first start a new one is made."""
    if not path.exists():
        if not may_make:
            raise StartRefused(
                f"the audit's key {path} is gone: put it back from a backup;"
                " `clinic-gateway audit rotate-key` makes another one, with which what was"
                " written before cannot be verified any more"
            )
        # two processes may start at once: who comes second reads what the first has made
        with suppress(FileExistsError):
            _write(path, [Secret(secrets.token_bytes(32))], exclusive=True)
    return read_secrets(path)


def rotate(path: Path) -> Secret:
    """Put a new secret before the others; running processes take it within a second."""
    known = read_secrets(path) if path.exists() else ()
    new = Secret(secrets.token_bytes(32))
    _write(path, [new, *known])
    return new


def _write(path: Path, values: list[Secret], *, exclusive: bool = False) -> None:
    """Whole or not at all; `exclusive`: FileExistsError where there is one."""
    beside = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w") as stream:
            stream.writelines(f"{each.value.hex()}\n" for each in values)
            stream.flush()
            os.fsync(stream.fileno())
        if exclusive:
            os.link(beside, path)
        else:
            beside.replace(path)
    except FileExistsError:
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartRefused(f"the audit's key {path} cannot be written: {reason}") from error
    finally:
        with suppress(OSError):
            beside.unlink()


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
