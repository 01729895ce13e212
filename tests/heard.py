"""Who hears events in tests, and remembers them in words."""

import asyncio
from collections import Counter
from typing import Any

from gateway.events import event_table


class Heard:
    """What was said, as `event: details`; and how much of each was only counted.

    `said` has an error's text where an event has no details; `more` is set with each event.
    """

    def __init__(self) -> None:
        self.said: list[str] = []
        self.details: list[dict[str, Any]] = []
        self.counted: Counter[str] = Counter()
        self.more = asyncio.Event()

    @property
    def events(self) -> list[str]:
        """The names alone."""
        return [line.partition(":")[0] for line in self.said]

    def report(self, event: str, error: BaseException | None = None, /, **details: Any) -> None:
        kind = event_table().event[event]
        if not kind.text:
            self.counted[event] += details.get(kind.amount, 1)
            return
        more = ", ".join(map(str, details.values())) or str(error or "")
        self.said.append(f"{event}: {more}" if more else event)
        self.details.append(details)
        self.more.set()
