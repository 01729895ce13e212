"""What a limiter promises: one counter per key, exact whoever counts at the same time."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Protocol

from msgspec import Struct

WINDOW = 3600
# Seconds for which a call waits for what counts for all; then it is counted otherwise.
PATIENCE = 0.05

# Counted where it is tried whether anything counts; no key has such an id.
TRIAL = "trial"


class Quota(Struct, frozen=True, gc=False):
    """A key's hour after a call: `reset` is whole seconds to its end, rounded up, 1 to 3600."""

    limit: int
    remaining: int
    reset: int
    admitted: bool


class Used(Struct, frozen=True, gc=False):
    """What a key has used of its hour: calls, and whole seconds to the hour's end, rounded up."""

    calls: int
    reset: int


def whole_seconds(left: float) -> int:
    """What is left of a window, in seconds rounded up: 1 to 3600."""
    return min(max(ceil(left), 1), WINDOW)


class LimiterDown(Exception):
    """What counts for all did not count this call, or did not say so in time; why, in words."""


class LimiterFull(LimiterDown):
    """It has no room for one more key; those that it knows are counted as ever."""


class Peeker(Protocol):
    """Sees what is counted."""

    async def peek(self, key_ids: Sequence[str]) -> Mapping[str, Used]:
        """What the hours that run have of these keys; nothing is counted by it. LimiterDown.

        A key without an hour that runs is not in it.
        """

    async def aclose(self) -> None:
        """Let go of whatever counts."""


class Limiter(Peeker, Protocol):
    """Counts calls in fixed windows of an hour that start at a key's first counted call."""

    @property
    def degraded(self) -> bool:
        """Whether it counts by itself, as what counts for all is down."""

    async def start(self) -> None:
        """Reach what counts, before the first call waits for it."""

    async def hit(self, key_id: str, limit: int) -> Quota:
        """Count one call, in one step; a call that is not admitted does not count. LimiterDown."""
