"""The end of what goes on in the background."""

import asyncio
from typing import Any

# Seconds that a task has to end, once it is cancelled, before it is cancelled again.
AGAIN = 2.0


async def ended(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel tasks, those that there are, until they have ended; raises what else one raised.

    Once is not enough: a cancellation that meets the end of a transaction may come out of the
    database's driver as an error like any other, after which a task that outlives errors goes on.
    """
    going = {task for task in tasks if task is not None}
    while running := {task for task in going if not task.done()}:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=AGAIN)
    for task in going:
        if not task.cancelled():
            task.result()
