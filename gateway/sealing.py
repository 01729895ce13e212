"""The sealing secret: made once, kept in a file that only its owner reads, never exchanged.

Every public id is made with it, and cursors are. Its fingerprint rests in the store, so that a
start with another one is refused before a partner sees ids that nobody knows.
"""

import os
import secrets
import stat
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from gateway.settings import Settings, StartRefused, read_sealing_secret

FILE = "sealing.secret"
META = "sealing secret fingerprint"


class Remembers(Protocol):
    """The store's shelf for what is written once."""

    async def meta(self, name: str) -> str | None: ...

    async def set_meta_once(self, name: str, value: str) -> str: ...


async def sealing_secret(settings: Settings, store: Remembers) -> bytes:
    """The 32 bytes; StartRefused where they are gone, unsafe, or others than before."""
    known = await store.meta(META)
    secret = _given(settings, may_make=known is None)
    fingerprint = blake2b(b"fingerprint", key=secret, digest_size=16).hexdigest()
    if known is None:
        known = await store.set_meta_once(META, fingerprint)
    if known != fingerprint:
        raise StartRefused(
            "the sealing secret is not the one that this state folder was begun with: every public"
            " id would change; give the former one in backend.secret or backend.secret_file"
        )
    return secret


def _given(settings: Settings, *, may_make: bool) -> bytes:
    backend = settings.backend
    if backend.secret is not None:
        return read_sealing_secret(backend.secret.get_secret_value())
    path = backend.secret_file or settings.state / FILE
    if path.exists() or backend.secret_file is not None:
        return _read(path)
    if not may_make:
        raise StartRefused(
            f"the sealing secret {path} is gone: with a new one every public id would change;"
            " put the file back from a backup"
        )
    return _make(path)


def _read(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode
        text = path.read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no ASCII text"
        raise StartRefused(f"the sealing secret {path} cannot be read: {reason.lower()}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise StartRefused(f"the sealing secret {path} is open to others: chmod 600 {path}")
    try:
        return read_sealing_secret(text)
    except ValueError as error:
        raise StartRefused(f"the sealing secret {path} {error}") from error


def _make(path: Path) -> bytes:
    secret = secrets.token_bytes(32)
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w") as stream:
            stream.write(secret.hex() + "\n")
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartRefused(f"the sealing secret {path} cannot be written: {reason}") from error
    return secret
