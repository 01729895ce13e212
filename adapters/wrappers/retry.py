"""The second try of a read that found nobody there."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import stamina
from stamina.instrumentation import set_on_retry_hooks

from adapters.base import BackendUnavailable

T = TypeVar("T")

# Seconds before the retry, and at most as many again.
PAUSE = 0.01

# it would write a line with the error's text for each retry, and count it where nobody looks
set_on_retry_hooks(())


async def again(ask: Callable[[], Awaitable[T]], first: BackendUnavailable) -> T:
    """The second try, after a moment; `first` is what became of the first."""
    tries = stamina.retry_context(
        on=BackendUnavailable,
        attempts=2,
        timeout=None,
        wait_initial=PAUSE,
        wait_max=2 * PAUSE,
        wait_jitter=PAUSE,
    )
    async for each in tries:
        with each:
            if each.num == 1:
                raise first
            return await ask()
    raise first
