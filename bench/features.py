"""What a gateway does beside answering, each thing so that a server under measurement can lack it.

No gateway has a switch for any of this: here it is taken out of the code as it is imported.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp.web_protocol import RequestHandler

from adapters.call_notes import CallNotes
from adapters.wrappers import guard
from gateway.audit import buffer, journal, upkeep
from gateway.observe import metrics, process, traces
from gateway.pipeline import shedder
from gateway.usage import Usage
from gateway.web import connection, front, observers


def _nothing(*_: Any, **__: Any) -> None:
    """In the place of what is measured."""


class _Nobody(set[Any]):
    """A place into which nobody is let, and where there is always room."""

    add = _nothing


def _without_audit() -> None:
    observers.entry_of = _nothing  # type: ignore[assignment]

    def note(self: journal.Journal, access: Any, entry: Any, *, counted: bool = True) -> None:
        self._access.add(access)

    journal.Journal.note = note  # type: ignore[method-assign]
    buffer.Buffer.check = _nothing  # type: ignore[method-assign]


def _without_access() -> None:
    observers.Access = _nothing  # type: ignore[assignment,attr-defined]

    def note(self: journal.Journal, access: Any, entry: Any, *, counted: bool = True) -> None:
        if entry is not None:
            self.audit.note(entry)

    journal.Journal.note = note  # type: ignore[method-assign]


def _without_metrics() -> None:
    metrics.Timings.note = _nothing  # type: ignore[method-assign]
    metrics.Metrics.shown = _nothing  # type: ignore[method-assign]
    process.Lag.start = _nothing  # type: ignore[method-assign]


def _without_usage() -> None:
    Usage.count = _nothing  # type: ignore[method-assign]


def _without_gate() -> None:
    made = shedder.LoadShedder.__init__

    def make(self: shedder.LoadShedder, *given: Any, **named: Any) -> None:
        made(self, *given, **named)
        self.inside = _Nobody()

    shedder.LoadShedder.__init__ = make  # type: ignore[method-assign]
    shedder.LoadShedder.leave = _nothing  # type: ignore[method-assign]


def _without_edge() -> None:
    """How large heads are, what waits behind a request, and what readers leave unread."""

    def receive(self: connection.Connection, data: bytes) -> None:
        if not self._answer_plain(data):
            RequestHandler.data_received(self, data)

    connection.Connection.data_received = receive  # type: ignore[method-assign]
    connection.Connection.unsent_bytes = lambda self: 0  # type: ignore[method-assign]


class _Nowhere:
    """Where nobody notes whose call it is."""

    set = _nothing

    def __init__(self, asking: CallNotes) -> None:
        self.get = lambda: asking


def _without_traces() -> None:
    """How long the practice system takes is noted of no call either."""
    asking = CallNotes()
    traces.Traces.begin = lambda self, operation, given: asking  # type: ignore[method-assign]
    front.CALL_NOTES = guard.CALL_NOTES = _Nowhere(asking)  # type: ignore[assignment,attr-defined]


def _without_noting() -> None:
    observers.Observers.note = _nothing  # type: ignore[method-assign]


# By what the table calls them; the last is what calls the first four of these for each call.
FEATURES: Mapping[str, Callable[[], None]] = {
    "the audit's entry, sealed and written": _without_audit,
    "the access line": _without_access,
    "the metrics": _without_metrics,
    "the usage of keys": _without_usage,
    "the gate": _without_gate,
    "connections": _without_edge,
    "the hooks of traces": _without_traces,
    "noting all of a call": _without_noting,
}


class Ends:
    """Does at once what a gateway does each second, each minute, so that it is measured too."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._buffers: list[buffer.Buffer] = []
        self._journals: list[journal.Journal] = []
        self._upkeeps: list[upkeep.Upkeep] = []
        self._usages: list[Usage] = []
        upkeep.INDEX_EVERY = journal.RECORD_EVERY = 1e9
        for kind, begins, found in (
            (buffer.Buffer, "start", self._buffers),
            (journal.Journal, "__init__", self._journals),
            (upkeep.Upkeep, "start", self._upkeeps),
            (Usage, "start", self._usages),
        ):
            self._learn(kind, begins, found)

    def _learn(self, kind: Any, begins: str, found: list[Any]) -> None:
        start = getattr(kind, begins)

        def begin(part: Any, *given: Any) -> None:
            self._loop = asyncio.get_running_loop()
            found.append(part)
            start(part, *given)

        setattr(kind, begins, begin)

    def do(self, wish: str) -> None:
        """What is wished for, from another thread, and wait for it."""
        if self._loop is not None:
            work = self._settle() if wish == "settle" else self._flush()
            asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _flush(self) -> None:
        for each in self._buffers:
            await each.commit()

    async def _settle(self) -> None:
        await self._flush()
        recorders = [each.recorder for each in self._journals]
        for task in (*recorders, *self._upkeeps, *self._usages):
            await task.turn()
