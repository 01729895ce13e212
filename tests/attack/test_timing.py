"""The harness tells 20 microseconds apart, and refusals take the same way whatever the key was."""

import gc
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from attack.statistics import compared, welch
from attack.timing import BOUND, ELSEWHERE, in_process, over_the_wire, requests, ring_of, states
from gateway.contract.errors import KeyInvalid
from gateway.keys.ring import KeyRing
from gateway.keys.secret import mint
from gateway.pipeline.steps import authenticate, digest_of

PAIRS = 1500
NOW = datetime.now(UTC)


@contextmanager
def leaking(word: str) -> Iterator[int]:
    words = [sys.executable, str(Path(__file__).with_name("leaking.py")), word]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline())  # type: ignore[union-attr]
        finally:
            process.kill()


def test_a_server_that_takes_20_microseconds_longer_for_revoked_keys_is_found_out() -> None:
    sent = states(mint(), mint(), mint(), mint())
    asked = {state: requests(sent)[state] for state in ("unknown", "revoked")}
    with leaking(sent["revoked"][0]) as port:
        [found] = compared(over_the_wire(port, asked, PAIRS))
    assert found.t < -BOUND
    assert -60 < found.microseconds < -10


def test_welch_t_is_what_the_books_say() -> None:
    assert welch([1, 2, 3], [2, 4, 6]) == pytest.approx(-2 / (5 / 3) ** 0.5)
    assert welch([1, 1], [1, 1]) == 0


def way(given: tuple[str, ...], ring: KeyRing) -> list[tuple[str, int]]:
    """The lines that are run until the refusal, without those of whatever the collector frees."""
    lines: list[tuple[str, int]] = []

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            lines.append((frame.f_code.co_name, frame.f_lineno))
        return trace

    before = sys.gettrace()
    gc.disable()
    sys.settrace(trace)
    try:
        authenticate(digest_of(given), ELSEWHERE, ring, NOW, settled=True)
    except KeyInvalid:
        return lines
    finally:
        sys.settrace(before)
        gc.enable()
    raise AssertionError(given)


def test_every_refusal_takes_the_same_way() -> None:
    sent = states(mint(), mint(), mint(), mint())
    ring = ring_of(sent, NOW)
    for given in sent.values():  # what an address is, is worked out once
        way(given, ring)
    ways = {state: way(given, ring) for state, given in sent.items()}
    assert len(ways["unknown"]) > 8
    assert {state for state, lines in ways.items() if lines != ways["unknown"]} == set()


def test_a_good_key_is_not_measured_as_a_refusal() -> None:
    sent = states(mint(), mint(), mint(), mint())
    ring = ring_of(sent, NOW)
    with pytest.raises(ValueError, match="not good"):
        in_process(ring, {"good": sent["good twice"][:1]}, NOW, 1)
