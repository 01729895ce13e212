"""Browsers that have signed in before: each holds a token that the server made and can tell again.

A device lets nobody in. Wrong passwords from it are counted apart from those of strangers, so that
strangers who guess at a name do not keep its owner out (OWASP, "Slow Down Online Guessing Attacks
with Device Cookies"). While the device's own count waits, its attempts count as a stranger's.

What is kept of the password signs the token: a token of somebody else, or of before the password
was changed, is none, and nothing of it need be stored.
"""

import hmac
import secrets
from datetime import UTC, datetime, timedelta

from gateway.administrators.store import Kept

# A token that was not renewed by signing in for so long is none.
LASTS = timedelta(days=180)


def device_token(administrator_id: str, password: str, now: datetime) -> str:
    """A new one for whoever has just signed in; `password` is what is kept of theirs."""
    device, made_at = secrets.token_urlsafe(16), str(int(now.timestamp()))
    return f"{device}.{made_at}.{_seal(administrator_id, password, device, made_at)}"


def device_of(token: str, kept: Kept | None, now: datetime) -> str | None:
    """What names the device; None where the token is not one of this administrator."""
    device, _, rest = token.partition(".")
    made_at, _, seal = rest.partition(".")
    if kept is None or not kept.password or not token.isascii() or not made_at.isdigit():
        return None
    known = _seal(kept.administrator.id, kept.password, device, made_at)
    if not hmac.compare_digest(seal, known):
        return None
    return device if now - datetime.fromtimestamp(int(made_at), UTC) < LASTS else None


def _seal(administrator_id: str, password: str, device: str, made_at: str) -> str:
    if not password:
        raise ValueError("nothing seals a device of somebody whom no password lets in")
    text = f"device {administrator_id} {device} {made_at}"
    return hmac.new(password.encode(), text.encode(), "sha256").hexdigest()
