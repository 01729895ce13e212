"""Several questions at once, and no more than so many."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")
U = TypeVar("U")
# So many calls of one read are under way at the most.
AT_ONCE = 8


async def together(*asked: Coroutine[Any, Any, T]) -> list[T]:
    """All answers in order; the first error is raised, and nothing is left behind."""
    tasks = [asyncio.ensure_future(each) for each in asked]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def for_each(ask: Callable[[U], Awaitable[T]], values: Iterable[U]) -> list[T]:
    """The same for each of the values, a few at a time."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def asked(value: U) -> T:
        async with gate:
            return await ask(value)

    return await together(*(asked(each) for each in values))
