"""What parts are opened with: settings, clock, who hears of troubles, who closes them."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Protocol, TypeVar

from gateway.contract.operations import OPERATIONS
from gateway.observe.logs import Events
from gateway.observe.metrics import Metrics
from gateway.observe.troubles import BackendTroubles, BookingTroubles, Troubles
from gateway.settings import Settings
from gateway.web.documents import NAMES


class _Closable(Protocol):
    async def aclose(self) -> None: ...


Part = TypeVar("Part", bound=_Closable)


class Kit:
    """One process's; `process` is what it is called beside others of the same gateway."""

    def __init__(
        self,
        settings: Settings,
        closers: AsyncExitStack,
        now: Callable[[], datetime],
        process: str = "gateway",
    ) -> None:
        self.settings = settings
        self.closers = closers
        self.now = now
        self.events = Events()
        operations = [*(each.id for each in OPERATIONS), *NAMES.values()]
        self.metrics = Metrics(operations, process)
        self.backend = BackendTroubles(self.metrics, self.events)
        self.bookings = BookingTroubles(self.events)
        self.report = Troubles(self.metrics, self.events).report

    def closing(self, part: Part) -> Part:
        """The same, closed at the end: what was opened last goes first."""
        self.closers.push_async_callback(part.aclose)
        return part
