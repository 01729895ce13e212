"""What the levels see of a field, as a file says it: where it opens, and where a mask stands."""

from gateway.contract.access import LEVELS, AccessLevel
from gateway.policy.masks import Mask
from gateway.policy.policy import HIDDEN, WHOLE, Sight, Sights


def opening(
    first: AccessLevel | None, masked_from: AccessLevel | None = None, mask: Mask | None = None
) -> Sights:
    """The sights of a field that is whole from `first` on, and under a mask from a lower level."""

    def sight(level: AccessLevel) -> Sight:
        rank = LEVELS.index(level)
        if first is not None and rank >= LEVELS.index(first):
            return WHOLE
        if mask is not None and masked_from is not None and rank >= LEVELS.index(masked_from):
            return mask
        return HIDDEN

    basic, standard, full = map(sight, LEVELS)
    return basic, standard, full
