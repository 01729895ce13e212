"""Is there anything left of the key's hour: every call that gets here counts once."""

from gateway.contract.errors import LimitExceeded
from gateway.limits.base import Quota


def throttle(quota: Quota) -> None:
    """LimitExceeded, with the seconds to wait, where the limiter did not admit the call."""
    if not quota.admitted:
        raise LimitExceeded(quota.reset)
