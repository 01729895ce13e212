"""Makes and recognises raw secrets, which are shown once and never kept."""

import base64
import binascii
import re
import secrets
import zlib
from hashlib import sha256

PREFIX = "vk_"
# A text of this form is taken for a secret of ours, also within another text.
FORM = rf"{PREFIX}[A-Za-z0-9_-]{{48}}"
_form = re.compile(FORM).fullmatch


def mint() -> str:
    """Returns a new secret: `vk_` and the URL-safe Base64 of 32 random bytes and their CRC-32."""
    body = secrets.token_bytes(32)
    checked = body + zlib.crc32(body).to_bytes(4)
    return PREFIX + base64.urlsafe_b64encode(checked).decode()


def well_formed(secret: str) -> bool:
    """Returns whether it could be one of ours: by form and checksum, without asking anyone."""
    if _form(secret) is None:
        return False
    try:
        checked = base64.b64decode(secret.removeprefix(PREFIX), altchars=b"-_", validate=True)
    except binascii.Error:
        return False
    return zlib.crc32(checked[:32]).to_bytes(4) == checked[32:]


def digest(secret: str) -> bytes:
    """Returns what is kept of a secret; any text has one, so that all look-ups cost the same."""
    return sha256(secret.encode("utf-8", "surrogateescape")).digest()


def hint(secret: str) -> str:
    """Returns what people may see of a secret to tell keys apart: `vk_` and five characters."""
    return secret[:8]
