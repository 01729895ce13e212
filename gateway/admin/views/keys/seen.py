"""What a key sees, for the part of a page that shows it."""

from typing import Any

from gateway.admin.policy_words import PolicyWords
from gateway.admin.visit import Visit
from gateway.contract.access import Permission
from gateway.inquiries.sight import closed_to, sights
from gateway.keys.key import Key


def seen_by(visit: Visit, key: Key) -> dict[str, Any]:
    """What keys/sees.html is made of, but for its title."""
    return {
        "sights": sights(visit.parts.policy(), key, PolicyWords(visit.words).phrases),
        "closed": closed_to(key),
        "can_book": Permission.APPOINTMENT_CREATE in key.permissions,
        "key": key,
    }
