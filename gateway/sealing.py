"""The sealing secret: made once, kept in a file that only its owner reads, never exchanged.

Every public id is made with it, and cursors are. Its fingerprint rests in the store, so that a
start with another one is refused before a partner sees ids that nobody knows.
"""

import secrets
import stat
from contextlib import suppress
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from typing import Protocol

from gateway import identity
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
    if known is None:
        make_file(settings, await store.meta(identity.META))
    secret = read_secret(settings)
    if known is None:
        known = await store.set_meta_once(META, fingerprint_of(secret))
    if not has_fingerprint(secret, known):
        raise StartRefused(
            "the sealing secret is not the one that this state folder was begun with: every public"
            " id would change; give the former one in backend.secret or backend.secret_file"
        )
    return secret


async def is_own_secret(settings: Settings, store: Remembers) -> bool:
    """Whether it is there, and the store knows of no other one. StartRefused as it is read."""
    path, known = secret_file(settings), await store.meta(META)
    if path is None or not path.exists():
        return False
    return known is None or has_fingerprint(read_secret(settings), known)


def secret_file(settings: Settings) -> Path | None:
    """The file that holds it; None where the settings themselves do."""
    backend = settings.backend
    return None if backend.secret is not None else backend.secret_file or settings.state / FILE


def fingerprint_of(secret: bytes) -> str:
    """What tells it from others, and tells nothing of it."""
    return blake2b(b"fingerprint", key=secret, digest_size=16).hexdigest()


def has_fingerprint(secret: bytes, known: str) -> bool:
    """Whether that is the secret's fingerprint; a text that is no fingerprint is nobody's."""
    return compare_digest(fingerprint_of(secret).encode(), known.encode(errors="replace"))


def read_secret(settings: Settings) -> bytes:
    """The 32 bytes; StartRefused where they cannot be read, or others may read them."""
    backend, path = settings.backend, secret_file(settings)
    if path is None:
        given = backend.secret.get_secret_value() if backend.secret else ""
        return read_sealing_secret(given)
    if backend.secret_file is None and not path.exists():
        raise StartRefused(
            f"the sealing secret {path} is gone: with a new one every public id would change;"
            " put the file back from a backup"
        )
    return _read(path)


def make_file(settings: Settings, state: str | None) -> None:
    """A new secret of the state with that identity, where nobody has given one yet."""
    path = settings.state / FILE
    if secret_file(settings) == path and not path.exists():
        _make(path, state)


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
        return read_sealing_secret(identity.content_of(text))
    except ValueError as error:
        raise StartRefused(f"the sealing secret {path} {error}") from error


def _make(path: Path, state: str | None) -> None:
    text = f"{identity.state_line(state)}{secrets.token_hex(32)}\n"
    try:
        # of two processes that begin at once, the first one's stays
        with suppress(FileExistsError):
            identity.write_new(path, text)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartRefused(f"the sealing secret {path} cannot be written: {reason}") from error
