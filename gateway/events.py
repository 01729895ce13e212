"""Defines the events and alarms that the operator is told of, and how an event is reported."""

from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct, field, toml


class EventKind(Struct, frozen=True, forbid_unknown_fields=True):
    """One event, with the members that the head of `events.toml` explains."""

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
    """All events and alarms, by name."""

    event: dict[str, EventKind]
    alarm: dict[str, Alarm]


@cache
def event_table() -> EventTable:
    """Returns the table of `events.toml`, beside this module."""
    return toml.decode(Path(__file__).with_suffix(".toml").read_bytes(), type=EventTable)


class Events(Protocol):
    """A listener that is told of events."""

    def report(self, event: str, error: BaseException | None = None, /, **details: Any) -> None:
        """Reports an event of the table, from any thread.

        Of an error its class and origin are told. Its text is told only where it is Sayable or an
        adapter's, since any other may hold a value.
        """


def counted(number: int, noun: str) -> str:
    """Returns the number with its noun: 1 file, 2 files."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class Sayable(Exception):
    """An error whose text holds no value and no secret, so that logs may have it."""
