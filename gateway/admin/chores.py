"""What takes longer than a page may: it goes on in the background, one run of a kind at a time."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from aiohttp import web

from adapters.examination import Finding
from gateway.background import ended
from gateway.inquiries.verification import Progress
from gateway.observe.logs import Events

ProgressT = TypeVar("ProgressT")
# What a deed's last line in the audit says more than its first.
Noted = dict[str, Any]


@dataclass(frozen=True, slots=True)
class UnderWay(Generic[ProgressT]):
    """A run: whose, since when, and how far it is."""

    who: str
    since: datetime
    progress: ProgressT


class Chore(Generic[ProgressT]):
    """One kind of work; `under_way` is None where nobody has it done."""

    def __init__(self, events: Events) -> None:
        self.under_way: UnderWay[ProgressT] | None = None
        self._events = events
        self._task: asyncio.Task[None] | None = None

    async def begin(
        self,
        run: UnderWay[ProgressT],
        deed: AbstractAsyncContextManager[Noted],
        work: Callable[[Noted], Awaitable[None]],
    ) -> bool:
        """Whether it begins now; False where it goes on already.

        Back once the audit knows of it: raises what kept the deed from being begun,
        asyncio.CancelledError where it was cut off before.
        """
        if self.under_way is not None:
            return False
        self.under_way = run
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._do(deed, work, begun), name="a chore of the panel")

        def over(_: object) -> None:
            # also where it was cut off before its first step, which no `finally` would see
            self.under_way = None
            begun.cancel()

        self._task.add_done_callback(over)
        await begun
        return True

    async def aclose(self) -> None:
        """What goes on is cut off."""
        with contextlib.suppress(Exception):
            await ended(self._task)

    async def _do(
        self,
        deed: AbstractAsyncContextManager[Noted],
        work: Callable[[Noted], Awaitable[None]],
        begun: asyncio.Future[None],
    ) -> None:
        try:
            async with deed as noted:
                if not begun.done():
                    begun.set_result(None)
                await work(noted)
        except Exception as error:  # noqa: BLE001 - it is said, and can be tried again
            if begun.done():
                self._events.fault("a chore of the panel failed", error)
            else:
                begun.set_exception(error)


# The audit, and the practice system, are looked through for one administrator at a time.
VERIFYING = web.AppKey("verifying", Chore[Progress])
EXAMINING = web.AppKey("examining", Chore[list[Finding]])


def add_chores(app: web.Application, events: Events) -> None:
    """Both, which end with the application."""
    verifying, examining = Chore[Progress](events), Chore[list[Finding]](events)
    app[VERIFYING], app[EXAMINING] = verifying, examining

    async def close(_: web.Application) -> None:
        await verifying.aclose()
        await examining.aclose()

    app.on_cleanup.append(close)
