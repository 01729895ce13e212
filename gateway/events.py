"""What the operator is told: the table of events and alarms, and how any room tells of an event."""

from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct, field, toml


class EventKind(Struct, frozen=True, forbid_unknown_fields=True):
    """One event, as the head of `events.toml` says what it has."""

    level: Literal["info", "warning", "error"]
    text: str = ""
    remedy: str = ""
    counter: str = ""
    amount: str = ""
    labels: dict[str, str] = {}
    once: bool = False
    sum: str = ""
    most: str = ""
    unsaid: str = ""
    later: bool = False
    alarm: str = ""


class Alarm(Struct, frozen=True, forbid_unknown_fields=True):
    """One rule for Prometheus, and what it means to the operator."""

    expr: str
    severity: Literal["critical", "warning", "info"]
    summary: str
    means: str
    do: str
    lasts: str = field(default="", name="for")


class EventTable(Struct, frozen=True, forbid_unknown_fields=True):
    """All of both, by name."""

    event: dict[str, EventKind]
    alarm: dict[str, Alarm]


@cache
def event_table() -> EventTable:
    """The table, as it lies beside this module."""
    return toml.decode(Path(__file__).with_suffix(".toml").read_bytes(), type=EventTable)


class Events(Protocol):
    """Hears what happens."""

    def report(self, event: str, error: BaseException | None = None, /, **details: Any) -> None:
        """Tells of an event of the table, from any thread.

        Of an error its class is told and where it came from; its text only where that is Sayable or
        an adapter's, since any other may hold a value.
        """


class Sayable(Exception):
    """An error whose text is our own, and holds no value and no secret: logs may have it."""
