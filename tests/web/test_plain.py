"""Plain requests are answered without aiohttp's parser, byte for byte as that road answers them."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp.http_parser import HttpRequestParser
from aiohttp.web_protocol import RequestHandler
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from adapters.base import NotFound, Page, Query, Record
from gateway.contract.resources import RESOURCES
from gateway.keys.secret import digest
from gateway.settings import CacheSettings
from gateway.web import connection
from gateway.web.connection import LIMITS, Connection
from gateway.web.plain import head_of, target_in
from tests.conftest import Begin
from tests.partner import Partner
from tests.waiting import until
from tests.web.test_connections import slow_reader
from tests.web.wire import Heard, head, say
from tests.world import OTHER_ID, SOME_ID, World, record_of

CLIENT = f"/api/v1/clients/{SOME_ID}"
CLOSE = "Connection: close"
SECRET = "vk_" + "a" * 48


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each head was answered as a plain one."""
    answers: list[bool] = []
    answer_plain = Connection._answer_plain

    def noted(line: Connection, data: bytes) -> bool:
        answers.append(answer_plain(line, data))
        return answers[-1]

    monkeypatch.setattr(Connection, "_answer_plain", noted)
    return answers


def of_clients(query: Query) -> Page:
    clients = next(each for each in RESOURCES if each.name == "clients")
    records = [{**record_of(clients), "id": f"{SOME_ID[:-2]}{number:02x}"} for number in range(3)]
    return Page(records=records, after="3", skipped=1)


def one(query: Query) -> Record:
    if query.id == OTHER_ID:
        raise NotFound(query.id)
    return record_of(next(each for each in RESOURCES if each.name == query.resource))


ASKED = {
    "a record": (CLIENT, 200),
    "an unknown record": (f"/api/v1/clients/{OTHER_ID}", 404),
    "no id": ("/api/v1/clients/nonsense", 400),
    "a list": ("/api/v1/clients?limit=3", 200),
    "a query that is wrong": ("/api/v1/clients?limit=0&x=1", 400),
    "a query with escapes": ("/api/v1/clients?search=Ren%C3%A9", 200),
    "what the key may not": ("/api/v1/invoices/" + SOME_ID, 403),
    "no path": ("/api/v1/nowhere", 404),
}
VARIES = re.compile(rb"(X-Request-Id: |Date: |X-RateLimit-\w+: |cursor=)[^\r>]+")


async def answered(port: int, *sent: bytes) -> bytes:
    return VARIES.sub(rb"\1", (await say(port, *sent, until=b"}")).data)


@pytest.mark.parametrize("cached", [0, 60])
async def test_both_roads_answer_the_same_bytes(
    partner_of: Begin, taken: list[bool], monkeypatch: pytest.MonkeyPatch, cached: int
) -> None:
    cache = CacheSettings(get_client=cached, list_clients=cached)
    partner = await partner_of(World(one=one, many=of_clients), cache=cache)
    partner = await partner.with_key(permissions=["CLIENT_READ"])
    port = partner.gateway.port
    for name, (path, status) in ASKED.items():
        asked = head(partner, "GET", path)
        taken.clear()
        plain = [await answered(port, asked) for _ in range(3)]
        # a call that is refused at the door takes the other road
        assert taken == [status in {200, 400} or path.endswith(OTHER_ID)] * 3, name
        with monkeypatch.context() as only_parsed:
            only_parsed.setattr(Connection, "_answer_plain", lambda line, data: False)
            parsed = [await answered(port, asked) for _ in range(3)]
        assert plain == parsed, name
        assert plain[0].startswith(b"HTTP/1.1 %d " % status), name


async def test_both_roads_note_and_count_the_same(
    partner_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    partner = await partner_of(World(one=one, many=of_clients))
    front = partner.gateway.gateway.public.front
    noted: list[Any] = []
    note = front.observers.note

    def told(call: Any, *rest: Any) -> None:
        entry = call.audit_entry(call.at, *rest[:1], "answered")
        noted.append((rest[:3], entry.key_id, entry.record_ids, entry.level, call.address))
        note(call, *rest)

    monkeypatch.setattr(front.observers, "note", told)
    for path in (CLIENT, "/api/v1/clients"):
        await say(partner.gateway.port, head(partner, "GET", path), until=b"}")
    half = len(noted)
    monkeypatch.setattr(Connection, "_answer_plain", lambda line, data: False)
    for path in (CLIENT, "/api/v1/clients"):
        await say(partner.gateway.port, head(partner, "GET", path), until=b"}")
    assert half == 2
    assert noted[:half] == noted[half:]
    assert not front.running
    assert not front.pipeline.shedder.inside


PLAIN = (
    "Accept: */*",
    "User-Agent: partner/1.0",
    "accept-encoding: gzip, br",
    "Connection: Keep-Alive",
    "X-Request-Id: my-own-request-id",
    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
)
UNUSUAL = (
    "Connection: close",
    "Content-Length: 0",
    "Transfer-Encoding: chunked",
    "Expect: 100-continue",
    "Upgrade: h2c",
    "Host: another",
    f"X-API-Key: {SECRET}",
    "X-Odd: 1",
    "Accept:*/*",
    "Accept:  */*",
    "Accept: */*\t",
    "Accept: ",
    " folded",
    "Accept: caf\u00e9",
    "Accept : */*",
    "User-Agent: one\r\nUser-Agent: another",
)


def block(*lines: str) -> bytes:
    return "\r\n".join(["Host: x", f"X-API-Key: {SECRET}", *lines, "", ""]).encode()


@pytest.mark.parametrize("line", PLAIN)
def test_what_is_plain(line: str) -> None:
    found = head_of(block(line))
    assert found is not None
    assert (found.digest, found.block) == (digest(SECRET), block(line))


@pytest.mark.parametrize("line", UNUSUAL)
def test_what_is_unusual_is_left_to_the_parser(line: str) -> None:
    assert head_of(block(line)) is None


@pytest.mark.parametrize(
    "first",
    [
        b"HEAD /x HTTP/1.1",
        b"GET /x HTTP/1.0",
        b"GET http://x/x HTTP/1.1",
        b"GET /x#y HTTP/1.1",
        b"GET /x\x80 HTTP/1.1",
        b'GET /"x" HTTP/1.1',
        b"GET /x  HTTP/1.1",
        b"GET  /x HTTP/1.1",
        b"get /x HTTP/1.1",
        b"GET /" + b"x" * 4096 + b" HTTP/1.1",
    ],
)
def test_unusual_first_lines_are_left_to_the_parser(first: bytes) -> None:
    assert target_in(first + b"\r\n") is None


NAMES = ["Host", "X-API-Key", "Accept", "X-Request-Id", "Connection", "Via", "Content-Length", "TE"]
NAMES += ["User-Agent", "Cookie"]
LINE = st.builds(
    "{}{}{}".format,
    st.sampled_from(NAMES) | st.text("aB-_ \t\x00:", max_size=4),
    st.sampled_from([": ", ":", ":\t", " : ", ":  "]),
    st.text("aZ09.-~,;=\"' \t\x00\x7f\u00e9", max_size=12) | st.sampled_from(["x", "close", "0"]),
)
TARGET = st.text("/ab?=&%20#\"\\ \t<>[]|^{}`;,+:@!$'()*~.-_\u00e9", max_size=20)


@given(TARGET, st.lists(LINE, max_size=5), st.sampled_from(["\r\n", "\n"]))
async def test_what_is_read_the_parser_reads_in_the_same_way(
    target: str, lines: list[str], end: str
) -> None:
    first = f"GET /{target} HTTP/1.1".encode()
    rest = end.join(["Host: x", f"X-API-Key: {SECRET}", *lines, "", ""]).encode()
    read, found = target_in(first + b"\r\n"), head_of(rest)
    if read is None or found is None:
        return
    wanted = ("max_line_size", "max_field_size", "max_headers")
    limits = {name: LIMITS[name] for name in wanted}
    loop = asyncio.get_running_loop()
    parser = HttpRequestParser(RequestHandler.__new__(RequestHandler), loop, 1 << 16, **limits)
    [(message, _)], upgraded, tail = parser.feed_data(first + b"\r\n" + rest)
    headers: CIMultiDict[str] = CIMultiDict(message.headers)
    assert (message.method, message.path, message.should_close) == ("GET", read[0], False)
    assert read[1] == len(first) + 2
    assert (message.chunked, upgraded, tail) == (False, False, b"")
    assert [digest(secret) for secret in headers.getall("X-API-Key")] == [found.digest]
    assert headers.getall("X-Request-Id", [None])[0] == found.request_id
    assert "Content-Length" not in headers


class Slow:
    """A practice system that answers once it may."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.asked = 0


@pytest.fixture
async def slow(partner_of: Begin, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    state = Slow()

    async def begin() -> tuple[Partner, Slow]:
        partner = await partner_of(World(one=one))
        pipeline = partner.gateway.gateway.public.front.pipeline
        read = pipeline.adapter.read_one

        async def held(query: Query) -> Record:
            state.asked += 1
            await state.go.wait()
            return await read(query)

        monkeypatch.setattr(pipeline.adapter, "read_one", held)
        return partner, state

    yield begin
    state.go.set()


async def test_what_comes_behind_is_answered_in_order(slow: Any, taken: list[bool]) -> None:
    partner, state = await slow()
    plain = head(partner, "GET", CLIENT)
    other = head(partner, "GET", "/api/v1/nowhere")
    last = head(partner, "GET", CLIENT, CLOSE)
    reader, writer = await asyncio.open_connection("127.0.0.1", partner.gateway.port)
    writer.write(plain)
    await until(lambda: state.asked == 1)
    for piece in (plain[:20], plain[20:] + other, plain, last):
        writer.write(piece)
        await asyncio.sleep(0.02)
    assert state.asked == 1
    state.go.set()
    heard = Heard(await reader.read(), closed=True)
    assert heard.statuses == [200, 200, 404, 200, 200]
    assert taken[0]
    writer.close()


async def test_what_comes_behind_is_bounded(slow: Any) -> None:
    partner, state = await slow()
    plain = head(partner, "GET", CLIENT)
    reader, writer = await asyncio.open_connection("127.0.0.1", partner.gateway.port)
    writer.write(plain)
    await until(lambda: state.asked == 1)
    many = 3_000_000 // len(plain)
    writer.write(plain * many)
    limiter = partner.gateway.gateway.public.runner.server.limiter
    [line] = limiter._inside
    await until(lambda: len(line._behind) > connection.MOST_BEHIND)
    await asyncio.sleep(0.1)
    assert len(line._behind) <= connection.MOST_BEHIND + connection.TAKEN_AT_ONCE
    writer.transport.abort()
    state.go.set()
    await until(lambda: not limiter._inside)
    assert reader is not None


async def test_a_slow_call_is_not_idle_and_an_idle_connection_ends(
    slow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LIMITS, "keepalive_timeout", 0.2)
    partner, state = await slow()
    saying = asyncio.create_task(say(partner.gateway.port, head(partner, "GET", CLIENT)))
    await until(lambda: state.asked == 1)
    [line] = partner.gateway.gateway.public.runner.server.limiter._inside
    await asyncio.sleep(0.5)
    assert line.idle_since() is None
    state.go.set()
    heard = await saying
    assert (heard.statuses, heard.closed) == ([200], True)


async def test_a_call_at_the_end_is_answered_and_closes_its_connection(slow: Any) -> None:
    partner, state = await slow()
    saying = asyncio.create_task(say(partner.gateway.port, head(partner, "GET", CLIENT)))
    await until(lambda: state.asked == 1)
    leaving = asyncio.create_task(partner.gateway.gateway.drain())
    await asyncio.sleep(0.05)
    state.go.set()
    heard = await saying
    await leaving
    assert (heard.statuses, heard.closed) == ([200], True)
    assert heard.answers[0][1]["connection"] == "close"


@pytest.mark.parametrize("cached", [0, 60])
async def test_nothing_behind_an_answer_that_is_not_taken_is_done(
    partner_of: Begin, cached: int
) -> None:
    world = World(one=lambda query: one(query) | {"address": "x" * 1_000_000})
    partner = await partner_of(world, cache=CacheSettings(get_client=cached))
    asked = head(partner, "GET", CLIENT)
    await say(partner.gateway.port, asked, until=b'"}')
    public = partner.gateway.gateway.public
    limiter, metrics = public.runner.server.limiter, public.front.observers.metrics
    limiter.write_limit.patience = 0.3
    async with slow_reader(partner.gateway, asked) as line:
        await until(lambda: limiter.write_limit.bytes > 0)
        hits = metrics.hits
        await asyncio.get_running_loop().sock_sendall(line, asked)
        await until(lambda: not limiter._inside)
        await asyncio.sleep(0.05)
        assert metrics.hits == hits
    assert not public.front.running


async def test_nothing_behind_is_read_where_the_connection_is_cut_off_with_the_answer(
    slow: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    partner, state = await slow()
    _, writer = await asyncio.open_connection("127.0.0.1", partner.gateway.port)
    writer.write(head(partner, "GET", CLIENT))
    await until(lambda: state.asked == 1)
    public = partner.gateway.gateway.public
    [line] = public.runner.server.limiter._inside
    writer.write(head(partner, "GET", "/api/v1/nowhere"))
    await until(lambda: line._behind)
    state.go.set()
    line.cut_off()
    await until(lambda: not public.runner.server.limiter._inside)
    await asyncio.sleep(0.05)
    assert "fault outside a call" not in capsys.readouterr().err
    assert not public.front.running
    writer.close()


async def test_a_caller_who_leaves_gives_its_place_back(slow: Any) -> None:
    partner, state = await slow()
    _, writer = await asyncio.open_connection("127.0.0.1", partner.gateway.port)
    writer.write(head(partner, "GET", CLIENT))
    await until(lambda: state.asked == 1)
    writer.transport.abort()
    public = partner.gateway.gateway.public
    await until(lambda: not public.runner.server.limiter._inside)
    state.go.set()
    await until(lambda: not public.front.running)
    assert not public.front.pipeline.shedder.inside


def test_aiohttp_has_the_names_that_are_leaned_on() -> None:
    slots = {name for kind in RequestHandler.__mro__ for name in getattr(kind, "__slots__", ())}
    assert slots >= {
        "_buffer_paused",
        "_close",
        "_force_close",
        "_keepalive_timeout",
        "_loop",
        "_max_msg_queue_size",
        "_messages",
        "_msg_queue_resume_size",
        "_next_keepalive_close_time",
        "_reading_paused",
        "_request_count",
        "_request_in_progress",
        "_waiter",
        "transport",
    }
    for name in ("_drain_helper", "_process_keepalive", "force_close", "shutdown"):
        assert callable(getattr(RequestHandler, name))
    # a request that waits makes `_waiter` done, and `start` clears it before it goes on
    names = RequestHandler.start.__code__.co_names
    assert {"_waiter", "_messages", "_force_close"} <= set(names)
