"""Encrypts an adapter's place in a list as a cursor, bound to one key, operation and filters."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Mapping
from functools import cached_property
from hashlib import blake2b
from typing import Any

import orjson

_VERSION = b"2"
# A place is padded to a multiple of so many bytes, so that its cursor does not tell its length.
_STEP = 32


class CursorCipher:
    """Writes and reads cursors; `secret` is the gateway's own (32 bytes)."""

    def __init__(self, secret: bytes) -> None:
        self._key = blake2b(b"cursors", key=secret, digest_size=64).digest()

    @cached_property
    def _cipher(self) -> Any:
        # imported late: most calls are no pages
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV  # noqa: PLC0415

        return AESSIV(self._key)

    def write(self, after: str, bound: bytes) -> str:
        """Returns the cursor for the adapter's `after`."""
        # a byte ends what is written, and zeros follow up to the next step
        data = _VERSION + after.encode() + b"\x80"
        sealed = self._cipher.encrypt(data + bytes(-len(data) % _STEP), [bound])
        return _text(sealed)

    def read(self, text: str, bound: bytes) -> str:
        """Returns the adapter's `after`. Raises ValueError for a cursor made for something else."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as above

        try:
            sealed = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
            opened: bytes = self._cipher.decrypt(sealed, [bound])
        except (Error, InvalidTag, ValueError) as error:
            raise ValueError("not a cursor of this list") from error
        # the decoder of base64 skips characters
        if _text(sealed) != text or not opened.startswith(_VERSION):
            raise ValueError("another spelling of a cursor, or another version's")
        data = opened.rstrip(b"\0").removesuffix(b"\x80")
        return data.removeprefix(_VERSION).decode()


def _text(sealed: bytes) -> str:
    return urlsafe_b64encode(sealed).rstrip(b"=").decode()


def bound_to(key_id: str, operation: str, filters: Mapping[str, str]) -> bytes:
    """Returns what a cursor holds for: key, operation, and filters as the partner wrote them."""
    return orjson.dumps([key_id, operation, sorted(filters.items())])
