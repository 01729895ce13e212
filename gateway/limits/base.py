"""What a limiter promises: one counter per key, exact whoever counts at the same time."""

from typing import Protocol

from msgspec import Struct

WINDOW = 3600


class Quota(Struct, frozen=True, gc=False):
    """A key's hour after a call: `reset` is whole seconds to its end, rounded up, 1 to 3600."""

    limit: int
    remaining: int
    reset: int
    admitted: bool


class Limiter(Protocol):
    """Counts calls in fixed windows of an hour that start at a key's first counted call."""

    async def hit(self, key_id: str, limit: int) -> Quota:
        """Count one call, in one step; a call that is not admitted does not count."""

    async def aclose(self) -> None:
        """Let go of whatever counts."""
