"""The event log: JSON lines on stderr, or readable ones where a person watches a terminal.

What is logged are names of things and classes of faults. The text of an exception may hold a
value, so it stays out, and so do the source lines of a traceback.
"""

import sys
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson

from adapters.base import AdapterError, Trouble
from gateway.observe.lines import printable
from gateway.observe.outlet import Outlet

UNREAD = "lines of the event log are lost: nobody read it"


class Events:
    """Says what happened; one method per kind of event."""

    def __init__(self, stream: TextIO | None = None) -> None:
        stream = stream or sys.stderr
        render = _readable if stream.isatty() else _json

        def rendered(level: str, event: str, details: dict[str, Any]) -> str:
            line = {"time": datetime.now(UTC), "level": level, "event": event, **details}
            return render(line)

        self._rendered = rendered
        self._outlet = Outlet(stream, lambda lines: rendered("warning", UNREAD, {"lines": lines}))

    def _say(self, level: str, event: str, details: dict[str, Any]) -> None:
        self._outlet.say(self._rendered(level, event, details))

    def info(self, event: str, **details: Any) -> None:
        self._say("info", event, details)

    def warn(self, event: str, **details: Any) -> None:
        self._say("warning", event, details)

    def fault(self, event: str, error: BaseException, **details: Any) -> None:
        """An exception, by its class and where it came from.

        What an adapter says is meant for this log, and is enough, as the fault is not ours; `said`
        gives what others say that is.
        """
        if isinstance(error, AdapterError):
            self.outage(event, error, said=str(error)[:300], **details)
            return
        details |= {"error": type(error).__name__, "at": places(error)}
        self._say("error", event, details)

    def outage(self, event: str, error: BaseException, *, said: str, **details: Any) -> None:
        """What others than the gateway must mend: what they say, without places in its code."""
        details |= {"said": said, "error": type(error).__name__}
        self._say("error", event, details)

    def trouble(self, trouble: Trouble) -> None:
        """A value or row of the practice system that could not be used."""
        self.warn(
            "unusable value",
            kind=trouble.kind,
            resource=trouble.resource,
            field=trouble.field,
            record=trouble.record,
        )


def places(error: BaseException) -> list[str]:
    """The frames of a traceback, innermost last, as `file:line function`."""
    frames = traceback.extract_tb(error.__traceback__)[-12:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]


def _json(line: dict[str, Any]) -> str:
    sane = {
        name: printable(value) if isinstance(value, str) else value for name, value in line.items()
    }
    return orjson.dumps(sane, default=printable, option=orjson.OPT_UTC_Z).decode()


def _readable(line: dict[str, Any]) -> str:
    time, level, event, *_ = line.values()
    details = "  ".join(f"{name}={printable(value)}" for name, value in list(line.items())[3:])
    return f"{time:%H:%M:%S} {level:8}{event}  {details}".rstrip()
