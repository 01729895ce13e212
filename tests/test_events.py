"""The table of events: the code tells of just these, and what is told holds no value."""

import ast
import io
import json
import re
from collections.abc import Iterator
from errno import ENOSPC
from functools import cache
from pathlib import Path

import pytest

from adapters.base import BackendNonsense
from gateway.events import event_table
from gateway.observe.event_log import EventLog
from gateway.observe.metrics import FIGURES, Metrics, exposition
from gateway.store.base import StoreError
from tests.tables import ROOT

EVENTS, ALARMS = event_table().event, event_table().alarm
SECRET = "Anne Renaud, 05 36 49 72 80"


@cache
def trees() -> tuple[ast.AST, ...]:
    files = sorted(ROOT.glob("gateway/**/*.py"))
    return tuple(node for file in files for node in ast.walk(ast.parse(file.read_bytes())))


def is_report(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "report"


def reported() -> Iterator[str]:
    """The name of each event that the code tells of, however it is handed over."""
    for call in (node for node in trees() if isinstance(node, ast.Call)):
        named = [each.value for each in call.keywords if each.arg in {"failed", "back"}]
        if is_report(call.func):
            named += call.args[:1]
        elif isinstance(call.func, ast.Name) and call.func.id == "Attempts":
            named += call.args[1:]
        elif call.args and is_report(call.args[0]):  # partial(events.report, "name")
            named += call.args[1:2]
        for part in named:
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value:
                yield part.value


def test_the_code_tells_of_no_event_that_is_not_in_the_table() -> None:
    found = set(reported())
    assert found <= set(EVENTS)
    assert len(found) > 60


def test_every_event_of_the_table_is_told_of() -> None:
    constants = {
        node.value
        for node in trees()
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert set(EVENTS) <= constants


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_names_figures_and_alarms_that_there_are(name: str) -> None:
    kind = EVENTS[name]
    assert re.fullmatch(r"[a-z_]+", name)
    assert kind.text or kind.counter, "it is said, or counted"
    assert not kind.alarm or kind.alarm in ALARMS
    if kind.counter:
        assert FIGURES[kind.counter].kind == "counter"
        assert tuple(kind.labels) == FIGURES[kind.counter].labels
    else:
        assert (kind.labels, kind.amount) == ({}, "")


def test_no_text_stands_for_two_events_that_differ_otherwise_than_in_what_to_do() -> None:
    texts: dict[str, list[str]] = {}
    for name, kind in EVENTS.items():
        if kind.text:
            texts.setdefault(kind.text, []).append(name)
    assert [names for names in texts.values() if len(names) > 1] == [
        ["policy_waits_for_cases", "policy_waits_for_approval"]
    ]


def test_the_table_is_part_of_the_package() -> None:
    assert (ROOT / "gateway" / "events.toml").is_file()
    assert 'packages = ["gateway", "adapters"]' in (ROOT / "pyproject.toml").read_text()


def told(event: str, error: BaseException | None = None, **details: object) -> dict[str, object]:
    stream = io.StringIO()
    EventLog(stream).report(event, error, **details)
    line: dict[str, object] = json.loads(stream.getvalue())
    return line


@pytest.mark.parametrize(
    "error",
    [
        ValueError(SECRET),
        KeyError(SECRET),
        OSError(SECRET),
        OSError(ENOSPC, SECRET),
        PermissionError(13, "Permission denied", SECRET),
    ],
)
@pytest.mark.parametrize("event", [name for name, kind in EVENTS.items() if kind.level == "error"])
def test_the_text_of_a_foreign_error_is_in_no_line(event: str, error: Exception) -> None:
    line = told(event, error)
    assert SECRET not in json.dumps(line)
    assert (line["event"], line["error"]) == (EVENTS[event].text, type(error).__name__)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (StoreError("the store is locked"), "the store is locked"),
        (BackendNonsense("no such column"), "no such column"),
        (OSError(ENOSPC, "No space left on device", Path("x")), "no space left on device"),
    ],
)
def test_what_is_our_own_or_the_systems_is_said(error: Exception, said: str) -> None:
    assert told("call_failed", error)["said"] == said


def test_a_remedy_is_filled_in_from_what_happened() -> None:
    assert told("state_folder_open", folder="/srv/a")["remedy"] == "chmod 700 /srv/a"


def test_an_event_moves_its_figure_by_its_amount() -> None:
    stream, metrics = io.StringIO(), Metrics([])
    events = EventLog(stream, metrics)
    events.report("log_lines_dropped", lines=3)
    events.report("policy_refused", problem="x")
    events.report("connections_turned_away", reason="address")
    text = exposition(metrics.snapshot())
    assert b"gateway_log_lines_lost_total 3.0" in text
    assert b'gateway_policy_reloads_total{outcome="refused"} 1.0' in text
    assert b'gateway_connections_turned_away_total{reason="address"} 1.0' in text
    assert len(stream.getvalue().splitlines()) == 2, "what has no text is only counted"


def test_what_comes_often_is_said_once_a_minute_with_who_came_most() -> None:
    stream, now = io.StringIO(), [0.0]
    events = EventLog(stream, clock=lambda: now[0])
    for address in ("a", "b", "b"):
        events.report("calls_without_key", address=address)
        events.report("key_used_elsewhere", address=address, key="k")
    events.report("key_used_elsewhere", address="c", key="another")
    assert [json.loads(line)["key"] for line in stream.getvalue().splitlines()] == ["k", "another"]
    now[0] = 60.0
    events.report("calls_without_key", address="c")
    events.report("key_used_elsewhere", address="b", key="k")
    *_, calls, of_key = map(json.loads, stream.getvalue().splitlines())
    assert calls.items() >= {"times": 4, "addresses": 3, "most_from": "b", "of_these": 2}.items()
    assert of_key.items() >= {"key": "k", "times": 3, "addresses": 1, "most_from": "b"}.items()
