"""Why calls failed, in the event log: once for each kind, and how often it came since."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.observe import event_log
from gateway.observe.event_log import MOST_KINDS, SILENCE, EventLog


class Said:
    """What is said, by a clock that stands."""

    def __init__(self) -> None:
        self.now = 100.0
        self.stream = io.StringIO()
        self.events = EventLog(self.stream, clock=lambda: self.now)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    def note(self, raised: BaseException, *, answered: int = 503, request: str = "r") -> None:
        details = {"answered": answered, "operation": "get_client", "request": request}
        self.events.report("call_failed", raised, **details)


def thrown(error: Exception) -> None:
    raise error


def thrown_too(error: Exception) -> None:
    raise error


def here(kind: type[Exception], place: Callable[[Exception], None] = thrown) -> Exception:
    """One that was raised in that place."""
    with pytest.raises(kind) as caught:
        place(kind())
    return caught.value


def test_the_first_of_a_kind_is_said_at_once_and_the_rest_are_counted() -> None:
    said = Said()
    for number in range(1000):
        said.note(here(OSError), request=str(number))
    assert [(each["request"], "unsaid" in each) for each in said.lines] == [("0", False)]
    said.now += SILENCE
    said.note(here(OSError), request="later")
    assert (said.lines[-1]["request"], said.lines[-1]["unsaid"]) == ("later", 999)
    said.now += SILENCE
    said.note(here(OSError))
    assert "unsaid" not in said.lines[-1]


def test_another_class_place_or_answer_is_another_kind() -> None:
    said = Said()
    for _ in range(3):
        said.note(here(OSError))
        said.note(here(ValueError))
        said.note(here(OSError, thrown_too))
        said.note(here(OSError), answered=502)
        said.note(OSError())  # was never raised
    assert len(said.lines) == 5


def test_kinds_without_end_take_no_memory_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "MOST_KINDS", 10)
    assert MOST_KINDS == 1000
    said = Said()
    for number in range(500, 600):
        said.note(here(OSError), answered=number)
    assert len(said.lines) == 100
    assert len(said.events._sums["call_failed"]) <= 10
