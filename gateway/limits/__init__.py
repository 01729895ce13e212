"""Limits how often a key may call. The door of the limiters is `open_limiter`."""

from urllib.parse import urlsplit

from gateway.events import Events
from gateway.limits.base import PATIENCE, Degrading, Limiter, MemoryLimiter
from gateway.limits.shared import Counters


def open_limiter(
    url: str,
    events: Events,
    *,
    share: int = 1,
    patience: float = PATIENCE,
    counters: Counters | None = None,
) -> Limiter:
    """Returns the limiter at that address; raises ValueError, in a sentence, where there is none.

    `share` is how many processes count in all; `patience` is the seconds that a call waits for
    another machine. In `counters` the processes of this machine count together, else each by
    itself.
    """
    limiter = open_shared(url, counters, patience)
    return limiter if isinstance(limiter, MemoryLimiter) else Degrading(limiter, share, events)


def open_shared(url: str, counters: Counters | None, patience: float = PATIENCE) -> Limiter:
    """Returns what counts for several processes, where any does; raises as `open_limiter`."""
    if url == "memory:":
        return counters or MemoryLimiter()
    if not url.startswith(("redis://", "rediss://")):
        place = place_of(url)
        raise ValueError(f"limiter: {place} is not possible; use memory: or redis://host:6379")
    try:
        from gateway.limits.redis import RedisLimiter
    except ModuleNotFoundError as error:
        raise ValueError(
            "limiter: Redis needs a driver: pip install '.[redis]' in the clone's folder"
        ) from error
    return RedisLimiter(url, patience=patience)


def place_of(url: str) -> str:
    """Returns the address without the user, the password and the query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" if host else f"{parts.scheme}:{parts.path}"
