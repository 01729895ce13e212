"""One request is one message to the gateway: directly, and through the proxies of the examples."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.pipeline import shedder
from tests.conftest import Begin
from tests.web.wire import Heard
from tests.wire.messages import ALL, CLOSE, NUMBER, SECRET, Sent, get
from tests.wire.proxies import FILES, UNTRUSTING, proxied
from tests.world import World

AT_ONCE = 24
PATIENCE, QUIET = 15.0, 2.0
"""Seconds until something is heard, and after it until nothing more is awaited."""
ANSWERED = re.compile(rb"X-Request-Id: \d{4}\.message-(\w+)\r\n", re.IGNORECASE).findall


@dataclass
class Road:
    """A way to a gateway, and what the gateway took for messages."""

    port: int
    secret: str
    tls: bool = False
    exact: bool = True
    piece: int = 1 << 20
    noted: list[str] = field(default_factory=list)

    def of(self, number: int) -> list[str]:
        """The messages for which something of that number was taken."""
        known = f"{number:04d}.message-"
        return [each.removeprefix(known) for each in self.noted if each.startswith(known)]

    async def say(self, data: bytes) -> Heard:
        """What came back until nothing more did."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=UNTRUSTING if self.tls else None
        )
        hearing = asyncio.create_task(_heard(reader))
        try:
            with suppress(ConnectionError):  # the other side may have closed meanwhile
                for start in range(0, len(data), self.piece):
                    if writer.is_closing():  # uvloop's would raise
                        break
                    writer.write(data[start : start + self.piece])
                    # the gateway, in the same loop, reads what is there before more is
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
            return await hearing
        finally:
            writer.transport.abort()


async def _heard(reader: asyncio.StreamReader) -> Heard:
    heard = b""
    with suppress(TimeoutError, ConnectionError):
        while True:
            async with asyncio.timeout(QUIET if heard else PATIENCE):
                got = await reader.read(1 << 16)
            if not got:
                return Heard(heard, closed=True)
            heard += got
    return Heard(heard, closed=False)


def filled(data: bytes, number: int, secret: str) -> bytes:
    return data.replace(SECRET, secret.encode()).replace(NUMBER, b"%04d" % number)


@pytest.fixture(params=["direct", "in pieces", "nginx", "haproxy"])
async def road(
    request: pytest.FixtureRequest,
    partner_of: Begin,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Road]:
    # a body that breaks after its first piece is given up like one that does not come
    trusted = {"trusted_proxies": "127.0.0.1"} if request.param in FILES else {}
    # whose calls wait for room gets one answer, however many were sent at once: here none does
    monkeypatch.setattr(shedder, "LATE", float("inf"))
    partner = await partner_of(World(), body_timeout=0.3, in_flight_per_key=100, **trusted)
    gateway = partner.gateway.gateway
    ids = gateway.public.front.request_id
    road = Road(gateway.port, partner.secret)
    if request.param == "in pieces":
        road.piece, road.exact = 7, False

    def noted(given: str | None) -> str:
        road.noted.append(given or "")
        return ids(given)

    monkeypatch.setattr(gateway.public.front, "request_id", noted)
    async with AsyncExitStack() as stack:
        if request.param in FILES:
            way = proxied(request.param, tmp_path, gateway.port, gateway.system.port)
            road.port = await stack.enter_async_context(way)
            road.tls, road.exact = True, False
        yield road


async def sent_through(road: Road, number: int, sent: Sent) -> list[str]:
    """What is wrong about how it was taken, in words."""
    heard = await road.say(filled(sent.data, number, road.secret))
    noted = road.of(number)
    after = await road.say(filled(get("after", CLOSE), number, road.secret))
    wrong = []
    if "evil" in noted:
        wrong.append(f"a hidden message was taken for one: {noted} {heard.data!r}")
    if noted != sorted(set(noted)):
        wrong.append(f"taken more than once: {noted}")
    if ids_in(heard) != noted:
        wrong.append(f"taken for {noted}, and {ids_in(heard)} were answered")
    if after.statuses != [200] or road.of(number)[len(noted) :] != ["after"]:
        wrong.append(f"what comes after it got {after.statuses}")
    if sent.plain or road.exact:
        if tuple(noted) != sent.noted:
            wrong.append(f"taken for {noted}, not {sent.noted}")
        refused = finals(heard) - len(noted)
        if refused != (sent.unread and not sent.plain):
            wrong.append(f"{refused} more answers: {heard.data[:200]!r}")
    return wrong


def ids_in(heard: Heard) -> list[str]:
    """The messages that the gateway answered, in their order."""
    return [each.decode() for each in ANSWERED(heard.data)]


def finals(heard: Heard) -> int:
    return heard.data.replace(b"HTTP/1.1 100 Continue", b"").count(b"HTTP/1.1 ")


async def test_every_message_is_one_and_nothing_else_is(road: Road) -> None:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int, sent: Sent) -> tuple[str, list[str]]:
        async with room:
            return sent.name, await sent_through(road, number, sent)

    found = await asyncio.gather(*(one(*each) for each in enumerate(ALL)))
    wrong = [f"{name}: {'; '.join(each)}" for name, each in found if each]
    assert not wrong, "\n".join(wrong)


async def test_whom_a_caller_claims_to_speak_for_is_not_heard(road: Road) -> None:
    forged = b"X-Forwarded-For: 192.0.2.1, 192.0.2.2\r\nX-Forwarded-For: nobody"
    heard = await road.say(filled(get("1", forged, CLOSE), 0, road.secret))
    assert (heard.statuses, road.of(0)) == ([200], ["1"])
