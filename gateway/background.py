"""The end of what goes on in the background."""

import asyncio
import contextlib
from typing import Any


async def ended(task: asyncio.Task[Any] | None) -> None:
    """Cancel a task, if there is one, and wait until it has ended; raises what else it raised."""
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
