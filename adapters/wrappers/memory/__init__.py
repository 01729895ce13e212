"""Where a practice system's answers are remembered: the door of the memories."""

from adapters.wrappers.memory.base import Memory
from adapters.wrappers.memory.local import LocalMemory

__all__ = ["LocalMemory", "Memory", "open_shared"]


def open_shared(url: str, *, secret: bytes, scope: bytes, most: float) -> Memory:
    """The memory in the Redis at that address; ValueError, in a sentence, without its driver."""
    try:
        from adapters.wrappers.memory.redis import RedisMemory
    except ModuleNotFoundError as error:
        raise ValueError(
            "cache.url: Redis needs a driver: pip install 'clinic-gateway[redis]'"
        ) from error
    return RedisMemory(url, secret=secret, scope=scope, most=most)
