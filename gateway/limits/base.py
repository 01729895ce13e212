"""What a limiter promises: one counter per key, exact whoever counts at the same time."""

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


class LimiterDown(Exception):
    """What counts for all did not count this call, or did not say so in time; why, in words."""


class LimiterFull(LimiterDown):
    """It has no room for one more key; those that it knows are counted as ever."""


class Limiter(Protocol):
    """Counts calls in fixed windows of an hour that start at a key's first counted call."""

    @property
    def degraded(self) -> bool:
        """Whether it counts by itself, as what counts for all is down."""

    async def start(self) -> None:
        """Reach what counts, before the first call waits for it."""

    async def hit(self, key_id: str, limit: int) -> Quota:
        """Count one call, in one step; a call that is not admitted does not count. LimiterDown."""

    async def aclose(self) -> None:
        """Let go of whatever counts."""
