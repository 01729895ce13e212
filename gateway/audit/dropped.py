"""What the audit's key says of days that were dropped since they were old."""

import hmac
from collections.abc import Iterable
from datetime import date

from gateway.audit.chain import Head
from gateway.audit.chains import Known
from gateway.audit.secrets import Secret


def base_seal(secret: Secret, chain: str, day: date, base: Head) -> str:
    """What the key says of a chain's days up to that one, of which `base` is the last line."""
    text = b"dropped %b %b %d " % (chain.encode(), str(day).encode(), base.seq) + base.mac
    return f"{secret.id}:{hmac.digest(secret.value, text, 'sha256').hex()}"


def is_sealed(known: Known, secrets: Iterable[Secret]) -> bool:
    """Whether the days were dropped by who has the audit's key."""
    if known.dropped is None:
        return known.base == Head()
    return any(
        hmac.compare_digest(base_seal(each, known.id, known.dropped, known.base), known.base_seal)
        for each in secrets
    )
