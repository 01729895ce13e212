"""Requests in a row, cut anywhere: what is answered does not depend on how they arrive."""

import asyncio
import os
import random

import pytest

from gateway.web.connection import LARGEST_HEAD
from tests.conftest import Begin
from tests.partner import Partner
from tests.web.wire import Heard, head
from tests.world import World

CASES = int(os.environ.get("FUZZ_CASES", "300")) // 5
SEED = int(os.environ.get("FUZZ_SEED", "1"))
TYPES, BOOK = "/api/v1/appointments/types", "/api/v1/appointments"
JSON = "Content-Type: application/json"
# What looks like the end of a head, or like a request, inside a body.
TRICKS = (
    b"",
    b"\r\n\r\n",
    b"{}\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\r",
    b" " * 20_000,
)


@pytest.fixture
async def booker(partner_of: Begin) -> Partner:
    return await partner_of(World(), in_flight_per_key=100)


def sequence(partner: Partner, chance: random.Random) -> tuple[bytes, list[int]]:
    """Requests one behind the other, and the statuses of their answers."""
    sent, statuses = b"", []
    for _ in range(chance.randrange(1, 6)):
        request, status = chance.choice((_read, _booking, _blank_lines))(partner, chance)
        sent += request
        statuses += status
    last, status = chance.choice((_closing, _large, _two_blanks))(partner, chance)
    return sent + last, statuses + status


def _read(partner: Partner, chance: random.Random) -> tuple[bytes, list[int]]:
    padding = "X: " + "  a" * chance.choice((0, 1, 1000))
    return head(partner, "GET", TYPES, padding), [200]


def _booking(partner: Partner, chance: random.Random) -> tuple[bytes, list[int]]:
    body = chance.choice(TRICKS)
    return head(partner, "POST", BOOK, JSON, f"Content-Length: {len(body)}") + body, [400]


def _blank_lines(partner: Partner, chance: random.Random) -> tuple[bytes, list[int]]:
    return b"\r\n" * chance.randrange(3) + head(partner, "GET", TYPES), [200]


def _closing(partner: Partner, chance: random.Random) -> tuple[bytes, list[int]]:
    return _padded(head(partner, "GET", TYPES, "Connection: close"), LARGEST_HEAD), [200]


def _large(partner: Partner, chance: random.Random) -> tuple[bytes, list[int]]:
    size = LARGEST_HEAD + chance.choice((1, 2, 500, 60_000))
    return _padded(head(partner, "GET", TYPES, "Connection: close"), size), [431]


def _two_blanks(partner: Partner, chance: random.Random) -> tuple[bytes, list[int]]:
    return head(partner, "GET", TYPES).replace(b"GET ", b"GET  ", 1), [400]


def _padded(made: bytes, size: int) -> bytes:
    """The same head with that many bytes, in lines that are short enough each."""
    lines = [made[:-2]]
    while (left := size - 2 - sum(map(len, lines))) > 0:
        length = left if left <= 4000 else min(3900, left - 100)
        lines.append(b"X: " + b"a" * (length - 5) + b"\r\n")
    return b"".join(lines) + b"\r\n"


async def heard_of(port: int, sent: bytes, cuts: list[int]) -> Heard:
    """What comes back until the end, where it is sent in pieces."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    hearing = asyncio.create_task(reader.read())
    try:
        for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
            writer.write(sent[start:end])
            # the gateway, in the same loop, reads what is there before more is
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        async with asyncio.timeout(30):
            return Heard(await hearing, closed=True)
    finally:
        writer.transport.abort()


@pytest.mark.long
@pytest.mark.fuzz
async def test_answers_do_not_depend_on_the_pieces(booker: Partner) -> None:
    chance = random.Random(SEED)
    for number in range(CASES):
        sent, statuses = sequence(booker, chance)
        for pieces in (0, 1, 5, 50):
            cuts = sorted(chance.sample(range(1, len(sent)), min(pieces, len(sent) - 1)))
            heard = await heard_of(booker.gateway.port, sent, cuts)
            assert heard.statuses == statuses, (SEED, number, cuts, sent)
