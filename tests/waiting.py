"""Waits for what goes on in the background, on a machine that may be busy with other work."""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable

# Seconds; only what never comes takes so long.
GENEROUS = 30.0


async def until(holds: Callable[[], bool | Awaitable[bool]], within: float = GENEROUS) -> None:
    """Return once it holds; TimeoutError where it does not in time."""
    async with asyncio.timeout(within):
        while True:
            found = holds()
            if await found if isawaitable(found) else found:
                return
            await asyncio.sleep(0.01)
