import io
import json

from adapters.base import BackendNonsense, Trouble
from gateway.observe.logs import Events
from gateway.observe.metrics import Metrics
from gateway.observe.troubles import Troubles


def caught(secret: str) -> ValueError:
    try:
        raise ValueError(secret)  # noqa: TRY301
    except ValueError as error:
        return error


def test_a_fault_is_logged_by_class_and_place_without_its_text() -> None:
    stream = io.StringIO()
    Events(stream).fault("call failed", caught("Anne Renaud, 05 36 49 72 80"), operation="x\udcff")
    line = json.loads(stream.getvalue())
    assert line["error"] == "ValueError"
    assert line["at"][-1].endswith(" caught")
    assert line["operation"] == "x\\udcff"
    assert "Renaud" not in stream.getvalue()


def test_what_an_adapter_says_is_for_this_log() -> None:
    stream = io.StringIO()
    Events(stream).fault("call failed", BackendNonsense("no such column: NOM"))
    assert json.loads(stream.getvalue())["said"] == "no such column: NOM"


def test_a_person_at_a_terminal_reads_plain_lines() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    Events(stream).info("serving", port=8080)
    assert stream.getvalue().endswith("serving  port=8080\n")


def test_a_log_that_nobody_can_write_fails_nothing() -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(text)

    Events(Broken()).info("serving")


def test_the_same_trouble_is_counted_each_time_and_logged_once() -> None:
    stream, metrics = io.StringIO(), Metrics([])
    report = Troubles(metrics, Events(stream)).report
    for _ in range(3):
        report(Trouble("unreadable", "clients", "phone", "id-1"))
    report(Trouble("unreadable", "clients", "phone", "id-2"))
    assert [json.loads(line)["record"] for line in stream.getvalue().splitlines()] == [
        "id-1",
        "id-2",
    ]
    assert b'resource="clients"} 4.0' in metrics.text()
