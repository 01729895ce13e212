"""The event log: JSON lines on stderr, or readable ones where a person watches a terminal.

What is logged are names of things and classes of faults. The text of an exception may hold a
value, so it stays out, and so do the source lines of a traceback.
"""

import sys
import traceback
from typing import Any, TextIO

import orjson
import structlog
from structlog.typing import EventDict, FilteringBoundLogger

from adapters.base import AdapterError, Trouble
from gateway.observe.lines import printable


class Events:
    """Says what happened; one method per kind of event."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log

    def info(self, event: str, **details: Any) -> None:
        self._log.info(event, **details)

    def warn(self, event: str, **details: Any) -> None:
        self._log.warning(event, **details)

    def fault(self, event: str, error: BaseException, **details: Any) -> None:
        """An exception, by its class and where it came from.

        What an adapter says is meant for this log.
        """
        if isinstance(error, AdapterError):
            details["said"] = str(error)[:300]
        self._log.error(event, error=type(error).__name__, at=places(error), **details)

    def trouble(self, trouble: Trouble) -> None:
        """A value or row of the practice system that could not be used."""
        self._log.warning(
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


def open_events(stream: TextIO | None = None) -> Events:
    """The event log on a stream, stderr by default."""
    target = stream or sys.stderr
    if target.isatty():
        last: Any = structlog.dev.ConsoleRenderer()
    else:
        last = _json
    logger = structlog.wrap_logger(
        structlog.PrintLogger(target),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            last,
        ],
    )
    return Events(logger)


def _json(_: Any, __: str, event: EventDict) -> str:
    return orjson.dumps(_sane(event), default=printable).decode()


def _sane(value: Any) -> Any:
    if isinstance(value, dict):
        return {printable(name): _sane(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_sane(each) for each in value]
    return printable(value) if isinstance(value, str) else value
