"""A whole gateway whose practice system is ill: what partners are told, how soon, how it shows."""

import asyncio
import gzip
import json
import re
import socket
import statistics
import time
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from adapters.rest import reader
from examples.json_cloud.backend import PASSWORD, USER
from gateway.settings import BackendSettings
from tests.adapters.rest.cloud import MAPPING
from tests.adapters.rest.raw import head, http
from tests.conftest import Start
from tests.failures.ill_backend import (
    Ill,
    IllBackend,
    for_ever,
    ill_backend,
    resets,
    says,
    silent,
)
from tests.partner import Partner
from tests.readiness import forget_answers

PATIENCE = 0.4
DOWN, LATE, NONSENSE = (
    (503, "Service temporarily unavailable"),
    (504, "The practice system did not answer in time"),
    (502, "The practice system gave an unusable answer"),
)
CHUNKS = head("Transfer-Encoding: chunked")
# What it does, what partners are told, and what the figures call it.
ILLS: dict[str, tuple[Ill, tuple[int, str], str]] = {
    "silent": (silent, LATE, "BackendTimeout"),
    "a byte now and then": (
        for_ever(head("Content-Length: 999"), b" ", 0.05), LATE, "BackendTimeout"),
    "a head without end": (
        for_ever(b"HTTP/1.1 103 Early Hints\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n", 0.01),
        LATE, "BackendTimeout"),
    "resets": (resets, DOWN, "BackendUnavailable"),
    "HTML": (says(http("<html>secret</html>", kind="text/html")), NONSENSE, "BackendNonsense"),
    "HTML that says it is JSON": (says(http("<html>")), NONSENSE, "BackendNonsense"),
    "a byte order mark": (says(http(b"\xef\xbb\xbf{}")), NONSENSE, "BackendNonsense"),
    "NaN": (says(http('{"a": NaN}')), NONSENSE, "BackendNonsense"),
    "another encoding": (says(http(b'{"a": "\xe9"}')), NONSENSE, "BackendNonsense"),
    "nothing": (says(http(b"")), NONSENSE, "BackendNonsense"),
    "204": (says(head(status="204 No Content")), NONSENSE, "BackendNonsense"),
    "half an answer": (says(head("Content-Length: 99") + b"{"), NONSENSE, "BackendNonsense"),
    "half of the chunks": (says(CHUNKS + b"8\r\n{"), NONSENSE, "BackendNonsense"),
    "no length": (says(head("Connection: close") + b"{}"), NONSENSE, "BackendNonsense"),
    "a body without end": (
        for_ever(CHUNKS, b"10000\r\n" + b" " * 0x10000 + b"\r\n"), NONSENSE, "BackendNonsense"),
    "a bomb": (
        says(http(gzip.compress(bytes(50_000_000)), "Content-Encoding: gzip")),
        NONSENSE, "BackendNonsense"),
    "a large header": (
        says(head(f"X-Long: {'x' * 20_000}", "Content-Length: 2") + b"{}"),
        NONSENSE, "BackendNonsense"),
    "a redirect": (
        says(http("{}", "Location: http://127.0.0.1:1/", status="302 Found")),
        NONSENSE, "BackendNonsense"),
    "no id": (says(http('{"archived": false}')), NONSENSE, "BackendNonsense"),
}  # fmt: skip


@pytest.fixture
async def backend() -> AsyncIterator[IllBackend]:
    async with ill_backend() as opened:
        yield opened


def at(host: str, **more: Any) -> BackendSettings:
    """The settings of a gateway in front of it."""
    given: dict[str, Any] = {
        "adapter": "rest",
        "url": SecretStr(f"http://{host}/v2"),
        "mapping": MAPPING,
        "user": SecretStr(USER),
        "password": SecretStr(PASSWORD),
        "timeout": PATIENCE,
        "breaker_failures": 5,
        "breaker_pause": 0.3,
    }
    return BackendSettings.model_validate(given | more)


class Seen:
    """What a partner and an operator see of it."""

    def __init__(self, partner: Partner, session: aiohttp.ClientSession, path: str = "") -> None:
        self.partner, self._session, self.path = partner, session, path

    async def call(self) -> tuple[int, str, float]:
        """Status, message (none where it was answered) and seconds."""
        began = time.perf_counter()
        answer = await self.partner.get(self.path)
        took = time.perf_counter() - began
        assert "X-Request-Id" in answer.headers
        if answer.status == 503:
            assert int(answer.headers["Retry-After"]) > 0
        return answer.status, answer.data.get("message", ""), took

    async def ready(self) -> tuple[int, Any]:
        """The status of /readyz now, and what it says of the practice system."""
        forget_answers(self.partner.gateway.gateway)
        async with self._session.get(f"{self.partner.gateway.operations}/readyz") as answer:
            return answer.status, (await answer.json())["parts"]["backend"]

    async def figure(self, name: str) -> float:
        """The sum of what the lines say that begin so."""
        async with self._session.get(f"{self.partner.gateway.operations}/metrics") as answer:
            text = await answer.text()
        return sum(map(float, re.findall(rf"^{re.escape(name)}.* (\S+)$", text, re.MULTILINE)))


async def seen_of(start: Start, session: aiohttp.ClientSession, host: str, **more: Any) -> Seen:
    gateway = await start(backend=at(host, **more))
    seen = Seen(await Partner(gateway, session, None).with_key(), session)
    client = (await seen.partner.get("/clients", limit="1")).data[0]["id"]
    seen.path = f"/clients/{client}"
    return seen


def events(said: str, name: str) -> list[dict[str, Any]]:
    return [each for each in map(json.loads, said.splitlines()) if each["event"] == name]


@pytest.mark.long
async def test_whatever_it_answers_partners_are_told_in_time_and_nothing_is_passed_on(
    start_gateway: Start,
    session: aiohttp.ClientSession,
    backend: IllBackend,
    capfd: pytest.CaptureFixture[str],
) -> None:
    seen = await seen_of(start_gateway, session, f"127.0.0.1:{backend.port}", breaker_failures=1000)
    assert (await seen.ready())[0] == 200
    for name, (ill, told, outcome) in ILLS.items():
        counted = await seen.figure(f'gateway_backend_calls_total{{outcome="{outcome}"')
        backend.ill = ill
        tracemalloc.start()
        answers = [await seen.call() for _ in range(2)]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert [each[:2] for each in answers] == [told] * 2, name
        # a read that broke off is asked once more
        assert max(each[2] for each in answers) < PATIENCE + 1.5, name
        assert peak < 8 << 20, name
        after = await seen.figure(f'gateway_backend_calls_total{{outcome="{outcome}"')
        assert after >= counted + 2, name
        status, part = await seen.ready()
        # a record that is no good says nothing of the others
        assert (status, part["ready"]) == ((200, True) if name == "no id" else (503, False)), name
        assert "secret" not in part.get("reason", "")
        backend.ill = None
        assert (await seen.call())[0] == 200, name
    assert (await seen.ready())[0] == 200
    said = events(capfd.readouterr().err, "call failed")
    # once for each kind and place, not once for each call
    assert 3 <= len(said) < len(ILLS)
    assert {each["error"] for each in said} == {
        "BackendTimeout", "BackendUnavailable", "BackendNonsense",
    }  # fmt: skip
    assert "<html>" not in json.dumps(said)


async def test_one_that_is_down_is_left_alone_said_once_and_found_again(
    start_gateway: Start,
    session: aiohttp.ClientSession,
    backend: IllBackend,
    capfd: pytest.CaptureFixture[str],
) -> None:
    seen = await seen_of(start_gateway, session, f"127.0.0.1:{backend.port}", breaker_pause=30.0)
    await seen.partner.get("/appointments/types")
    await backend.close()
    answers = [await seen.call() for _ in range(30)]
    assert {each[:2] for each in answers} == {DOWN}
    assert statistics.median(each[2] for each in answers) < 0.05
    assert await seen.figure("gateway_backend_breaker") == 2
    assert await seen.figure('gateway_backend_calls_total{outcome="not asked"') == 25
    # what is remembered is told all the same, and records of people are not
    assert (await seen.partner.get("/appointments/types")).status == 200
    status, part = await seen.ready()
    assert (status, part["ready"]) == (503, False)
    assert "nothing listens there" in part["reason"]
    said = capfd.readouterr().err
    assert len(events(said, "the practice system failed too often in a row: it is left alone")) == 1
    # the first that was asked; of those that were not that event tells
    assert len(events(said, "call failed")) == 1
    await backend.open()
    # whoever asks whether it is ready finds that it is back
    assert (await seen.ready())[0] == 200
    assert (await seen.call())[0] == 200
    assert await seen.figure("gateway_backend_breaker") == 0
    assert len(events(capfd.readouterr().err, "the practice system answers again")) == 1


async def test_one_that_drowns_is_asked_no_more_than_it_may_be(
    start_gateway: Start, session: aiohttp.ClientSession, backend: IllBackend
) -> None:
    seen = await seen_of(
        start_gateway, session, f"127.0.0.1:{backend.port}",
        in_flight=3, queue=4, timeout=1.5, breaker_failures=1000,
    )  # fmt: skip
    backend.ill, backend.asked = silent, 0
    answers = await asyncio.gather(*(seen.call() for _ in range(12)))
    told = sorted(each[:2] for each in answers)
    # three are asked and late; four wait a second for room; the rest is turned away at once
    assert told == [DOWN] * 9 + [LATE] * 3
    assert backend.asked == 3
    times = sorted(each[2] for each in answers)
    assert times[4] < 0.8
    assert 0.9 < times[5] < 2.5
    assert times[-1] < 4


async def test_a_half_open_line_counts_for_the_breaker(
    start_gateway: Start, session: aiohttp.ClientSession, backend: IllBackend
) -> None:
    seen = await seen_of(
        start_gateway, session, f"127.0.0.1:{backend.port}", breaker_failures=2, timeout=0.2
    )
    backend.ill = silent
    assert [(await seen.call())[:2] for _ in range(3)] == [LATE, LATE, DOWN]
    backend.ill = None
    await asyncio.sleep(0.35)
    assert (await seen.call())[0] == 200


async def test_a_name_that_is_no_longer_known_is_a_backend_that_is_down(
    start_gateway: Start,
    session: aiohttp.ClientSession,
    backend: IllBackend,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    loop = asyncio.get_running_loop()
    known, lookup = True, loop.getaddrinfo

    async def resolve(host: Any, *rest: Any, **more: Any) -> Any:
        if host == "practice.invalid":
            if not known:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            host = "127.0.0.1"
        return await lookup(host, *rest, **more)

    monkeypatch.setattr(loop, "getaddrinfo", resolve)
    # an address that was found counts for ten seconds
    monkeypatch.setattr(reader, "FOUND_FOR", 0.0)
    seen = await seen_of(start_gateway, session, f"practice.invalid:{backend.port}")
    assert (await seen.call())[0] == 200
    known = False
    answers = [await seen.call() for _ in range(20)]
    assert {each[:2] for each in answers} == {DOWN}
    async with asyncio.timeout(20):  # the look at it has its own patience, which a crowd may use up
        while "in time" in (ready := await seen.ready())[1]["reason"]:
            assert not ready[1]["ready"]
    assert ready[0] == 503
    assert "its host name is not found (EAI_NONAME)" in ready[1]["reason"]
    said = capfd.readouterr().err
    assert len(events(said, "the practice system failed too often in a row: it is left alone")) == 1
    assert len(events(said, "call failed")) == 1
    known = True
    await asyncio.sleep(0.35)
    assert (await seen.call())[0] == 200
