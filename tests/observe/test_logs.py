import asyncio
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from socket import socketpair
from typing import Any, TextIO

import pytest

from adapters.base import BackendNonsense
from gateway.events import event_table
from gateway.observe.event_log import AGAIN, EventLog
from gateway.observe.metrics import Metrics, exposition

PHONE = {"kind": "unreadable", "resource": "clients", "field": "phone"}
LOST = event_table().event["event_lines_lost"].text


def caught(secret: str) -> ValueError:
    try:
        raise ValueError(secret)  # noqa: TRY301
    except ValueError as error:
        return error


def test_a_fault_is_logged_by_class_and_place_without_its_text() -> None:
    stream = io.StringIO()
    EventLog(stream).report(
        "call_failed", caught("Anne Renaud, 05 36 49 72 80"), operation="x\udcff"
    )
    line = json.loads(stream.getvalue())
    assert line["error"] == "ValueError"
    assert line["at"][-1].endswith(" caught")
    assert line["operation"] == "x\\udcff"
    assert "Renaud" not in stream.getvalue()


def test_what_an_adapter_says_is_for_this_log() -> None:
    stream = io.StringIO()
    EventLog(stream).report("call_failed", BackendNonsense("no such column: NOM"))
    line = json.loads(stream.getvalue())
    assert line["said"] == "no such column: NOM"
    assert "at" not in line, "places in our code mend nothing there"


def test_a_person_at_a_terminal_reads_plain_lines() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    EventLog(stream).report("serving", port=8080)
    assert stream.getvalue().endswith("serving  port=8080\n")


def test_a_log_that_nobody_can_write_fails_nothing() -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(text)

    EventLog(Broken()).report("serving")


def test_a_log_that_somebody_closed_fails_nothing() -> None:
    stream = io.StringIO()
    events = EventLog(stream)
    stream.close()
    events.report("serving")


def test_the_same_trouble_is_counted_each_time_and_logged_once() -> None:
    stream, metrics = io.StringIO(), Metrics([])
    events = EventLog(stream, metrics)
    for _ in range(3):
        events.report("value_unusable", **PHONE, record="id-1")
    events.report("value_unusable", **PHONE, record="id-2")
    assert [json.loads(line)["record"] for line in stream.getvalue().splitlines()] == [
        "id-1",
        "id-2",
    ]
    assert b'resource="clients"} 4.0' in exposition(metrics.snapshot())


@contextmanager
def unread(kind: str) -> Iterator[tuple[TextIO, int]]:
    """A stream that somebody could read, by that number, and does not."""
    if kind == "socket":
        ours, theirs = socketpair()
        with ours, theirs, os.fdopen(os.dup(theirs.fileno()), "w") as stream:
            yield stream, ours.fileno()
    else:
        read, write = os.pipe()
        with os.fdopen(write, "w") as stream:
            yield stream, read
        os.close(read)


def lines_of(reads: int, least: int = 1) -> list[dict[str, Any]]:
    """What has come, at least so many lines."""
    data = b""
    while data.count(b"\n") < least or not data.endswith(b"\n"):
        data += os.read(reads, 1_000_000)
    return [json.loads(line) for line in data.splitlines()]


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_a_log_that_nobody_reads_holds_up_nobody_and_says_what_is_lost(kind: str) -> None:
    with unread(kind) as (stream, reads):
        was_blocking = os.get_blocking(stream.fileno())
        events = EventLog(stream)
        for number in range(5_000):
            events.report("serving", number=number, long="x" * 1_000)
        assert os.get_blocking(stream.fileno()) == was_blocking, "others may write there too"
        told = lines_of(reads)
        while told[-1]["event"] != "the gateway has ended":
            events.report("has_ended")
            told += lines_of(reads)
    numbers = [each["number"] for each in told if "number" in each]
    assert numbers == list(range(len(numbers)))
    [lost] = [
        each["lines"]
        for each in told
        if each["event"] == event_table().event["event_lines_lost"].text
    ]
    assert lost + len(numbers) == 5_000


async def test_what_found_no_room_comes_without_another_event() -> None:
    with unread("pipe") as (stream, reads):
        events = EventLog(stream)
        for number in range(80):
            events.report("serving", number=number, long="x" * 1_000)
        first = lines_of(reads)
        assert len(first) < 80
        await asyncio.sleep(2 * AGAIN)
        assert [each["number"] for each in first + lines_of(reads)] == list(range(80))


def test_a_pipe_that_cannot_be_opened_anew_holds_up_nobody_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: object) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "open", refused)
    with unread("pipe") as (stream, _):
        events = EventLog(stream)
        for _ in range(200):
            events.report("serving", long="x" * 1_000)
