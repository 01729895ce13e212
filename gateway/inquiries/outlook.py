"""What would come of a policy whose cases fail: what of it takes effect at once, and what waits."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.policy.rules import Rules, narrowed, no_wider
from gateway.policy.telling.wording import PolicyChange, changes


@dataclass(frozen=True, slots=True)
class Outlook:
    """The changes of a policy that take effect at once, and those that wait."""

    at_once: Sequence[PolicyChange]
    waits: Sequence[PolicyChange]


def outlook(running: Rules, new: Rules) -> Outlook:
    """What would come of the new rules where the others run."""
    first = new if no_wider(new, running) else narrowed(running, new) or running
    return Outlook(changes(running, first), changes(first, new))
