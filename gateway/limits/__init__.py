"""How often: the door of the limiters, chosen by address."""

from gateway.limits.base import Limiter
from gateway.limits.memory import MemoryLimiter


def open_limiter(url: str) -> Limiter:
    """The limiter at that address; ValueError, in a sentence, for one that is not there."""
    if url == "memory:":
        return MemoryLimiter()
    raise ValueError(f"limiter: {url} is not possible so far; use memory:")
