import io
import json
import time
from uuid import uuid4

import aiohttp
import pytest

from gateway.observe.event_log import Outlet
from tests.conftest import RunningGateway, Start
from tests.partner import Partner
from tests.web.wire import head, say

pytestmark = pytest.mark.asyncio(loop_scope="module")

TYPES = "/api/v1/appointments/types"
BOOK = "/api/v1/appointments"
JSON = "Content-Type: application/json"
END = "Connection: close"
BAD = (
    b'{"message":"Invalid request: request cannot be read as HTTP/1.1",'
    b'"errors":[{"field":"request","problem":"cannot be read as HTTP/1.1"}]}'
)
TOO_LARGE = b'{"message":"Request header fields too large"}'


@pytest.fixture
def running_gateway(lasting_gateway: RunningGateway) -> RunningGateway:
    return lasting_gateway


@pytest.fixture
def partner(lasting_partner: Partner) -> Partner:
    return lasting_partner


@pytest.mark.parametrize(
    ("sent", "status", "body"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400, BAD),
        (b"GET\r\n\r\n", 400, BAD),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-API-Key: vk_secret\x01\r\n\r\n", 400, BAD),
        (b"GET / HTTP/1.1\r\nX-API-Key: vk_secret\r\n\r\n", 400, BAD),
        (b"GET /\xff HTTP/1.1\r\nHost: x\r\nX-API-Key: vk_secret\r\n\r\n", 400, BAD),
        (b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431, TOO_LARGE),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 5000 + b"\r\n\r\n", 431, TOO_LARGE),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-A: vk_secret\r\n" * 80 + b"\r\n", 431, TOO_LARGE),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
            400,
            BAD,
        ),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n",
            400,
            BAD,
        ),
        (b"GET / HTTP/2.0\r\nHost: x\r\nX-API-Key: vk_secret\r\n\r\n", 400, BAD),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, BAD),
        (b"GET / HTTP/0.9\r\nHost: x\r\n\r\n", 400, BAD),
        (b"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 400, BAD),
    ],
    ids=[
        "tls",
        "no path",
        "bad header",
        "no host",
        "bytes",
        "line",
        "field",
        "many",
        "cl",
        "cl+te",
        "2.0",
        "preface",
        "0.9",
        "3.0",
    ],
)
async def test_what_is_no_request_is_refused_in_our_shape_and_reflected_nowhere(
    running_gateway: RunningGateway,
    monkeypatch: pytest.MonkeyPatch,
    sent: bytes,
    status: int,
    body: bytes,
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(running_gateway.gateway.events, "_outlet", Outlet(stream, str))
    heard = await say(running_gateway.port, sent)
    assert heard.closed
    [(found, headers, answered)] = heard.answers
    assert (found, answered) == (status, body)
    assert headers["content-type"] == "application/json"
    assert headers["connection"] == "close"
    assert headers["server"] == "clinic-gateway"
    assert len(headers["x-request-id"]) == 32
    assert "secret" not in stream.getvalue()


async def test_a_foreign_expectation_is_417_even_without_a_key(
    running_gateway: RunningGateway,
) -> None:
    sent = f"GET {TYPES} HTTP/1.1\r\nHost: x\r\nExpect: 200-ok\r\n\r\n".encode()
    heard = await say(running_gateway.port, sent)
    assert heard.closed
    assert heard.statuses == [417]


async def test_a_body_is_asked_for_only_once_the_call_may_book(partner: Partner) -> None:
    lines = (JSON, "Content-Length: 2", "Expect: 100-continue")
    port = partner.gateway.port
    heard = await say(port, head(partner, "POST", BOOK, *lines), b"{}", until=b"errors")
    assert heard.statuses == [100, 400]
    reader = await partner.with_key(permissions=["CLIENT_READ"])
    heard = await say(port, head(reader, "POST", BOOK, *lines), until=b"}")
    [(status, headers, _)] = heard.answers
    assert (status, headers["connection"]) == (403, "close")


async def test_http_1_0_gets_its_answer_but_no_chunks(partner: Partner) -> None:
    port = partner.gateway.port
    heard = await say(port, head(partner, "GET", TYPES, version="1.0"))
    assert (heard.statuses, heard.closed) == ([200], True)
    kept = head(partner, "GET", TYPES, "Connection: keep-alive", version="1.0")
    heard = await say(port, kept, head(partner, "GET", TYPES, version="1.0"))
    assert heard.statuses == [200, 200]
    assert heard.answers[0][1]["connection"] == "keep-alive"
    lines = (JSON, "Transfer-Encoding: chunked", "Connection: keep-alive")
    heard = await say(port, head(partner, "POST", BOOK, *lines, version="1.0"), b"0\r\n\r\n")
    assert (heard.statuses, heard.closed) == ([400], True)


@pytest.mark.parametrize(
    ("lines", "field"),
    [
        (("Transfer-Encoding: Chunked",), "clientId"),
        (("Transfer-Encoding: gzip, chunked",), "Transfer-Encoding"),
        (("Transfer-Encoding: gzip", "Transfer-Encoding: chunked"), "request"),
        (("Transfer-Encoding: chunked, chunked",), "request"),
        (("Transfer-Encoding: identity",), "request"),
        (("Transfer-Encoding: chunked, gzip",), "request"),
        (("Transfer-Encoding:", "Transfer-Encoding: chunked"), "request"),
    ],
)
async def test_a_body_comes_whole_or_in_chunks_and_no_other_way(
    partner: Partner, lines: tuple[str, ...], field: str
) -> None:
    sent = head(partner, "POST", BOOK, JSON, *lines)
    follows = head(partner, "GET", TYPES, END)
    heard = await say(partner.gateway.port, sent + b"2\r\n{}\r\n0\r\n\r\n", follows)
    [(status, headers, body)] = heard.answers
    assert (status, headers["connection"], heard.closed) == (400, "close", True)
    assert json.loads(body)["errors"][0]["field"] == field


async def test_connect_is_405_and_the_end_of_the_connection(partner: Partner) -> None:
    heard = await say(partner.gateway.port, head(partner, "CONNECT", "example.org:443"))
    assert (heard.statuses, heard.closed) == ([405], True)


async def test_an_upgrade_is_answered_as_if_nobody_had_asked_for_it(partner: Partner) -> None:
    sent = head(partner, "GET", TYPES, "Connection: Upgrade", "Upgrade: h2c")
    heard = await say(partner.gateway.port, sent)
    assert (heard.statuses, heard.closed) == ([200], True)


async def test_pipelined_requests_are_answered_in_their_order(partner: Partner) -> None:
    paths = (TYPES, "/api/v1/nowhere", f"/api/v1/clients/{uuid4()}", "/api/v1/clients/x")
    sent = b"".join(head(partner, "GET", path) for path in paths)
    heard = await say(partner.gateway.port, sent + head(partner, "GET", TYPES, END))
    assert heard.statuses == [200, 404, 404, 400, 200]


async def test_head_is_get_without_a_body(partner: Partner) -> None:
    heard = await say(partner.gateway.port, head(partner, "HEAD", TYPES, END))
    raw = heard.data.decode().lower()
    assert raw.startswith("http/1.1 200")
    assert raw.endswith("\r\n\r\n")
    got = await say(partner.gateway.port, head(partner, "GET", TYPES, END))
    assert f"content-length: {len(got.answers[0][2])}\r\n" in raw


async def test_an_address_as_target_counts_by_its_path_alone(partner: Partner) -> None:
    heard = await say(
        partner.gateway.port,
        head(partner, "GET", "http://evil.example/api/v1/clients?limit=1", END),
    )
    [(status, headers, _)] = heard.answers
    assert status == 200
    assert headers["link"].startswith(f"<{partner.gateway.base}/clients?")


async def test_links_never_come_from_the_host_header(partner: Partner) -> None:
    sent = head(partner, "GET", "/api/v1/clients?limit=1", END).replace(b"Host: x", b"Host: evil")
    heard = await say(partner.gateway.port, sent)
    assert b"evil" not in heard.data


async def test_a_second_key_header_is_no_key(partner: Partner) -> None:
    twice = head(partner, "GET", TYPES, f"X-API-Key: {partner.secret}", END)
    [(status, _, body)] = (await say(partner.gateway.port, twice)).answers
    assert (status, json.loads(body)) == (401, {"message": "Invalid or expired API key"})


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["Content-Length: 2"], 415),
        (["Content-Type: text/plain", "Content-Length: 2"], 415),
        (["Content-Type: application/json5", "Content-Length: 2"], 415),
        ([JSON, "Content-Encoding: gzip", "Content-Length: 2"], 415),
        (["Content-Type: application/json; charset=latin1", "Content-Length: 2"], 415),
        (['Content-Type: application/json;a=b; Charset="UTF-16"', "Content-Length: 2"], 415),
        ([JSON, "Content-Encoding: identity", "Content-Length: 2"], 400),
        (["Content-Type: Application/JSON; charset=utf-8", "Content-Length: 2"], 400),
        (['Content-Type: application/json;charset="UTF-8";a=b', "Content-Length: 2"], 400),
    ],
)
async def test_a_body_is_plain_json_by_its_header(
    partner: Partner, lines: list[str], status: int
) -> None:
    heard = await say(partner.gateway.port, head(partner, "POST", BOOK, *lines, END), b"{}")
    assert heard.statuses == [status]


async def test_a_compressed_body_is_told_what_is_taken_instead(partner: Partner) -> None:
    lines = (JSON, "Content-Encoding: gzip", "Content-Length: 2", END)
    heard = await say(partner.gateway.port, head(partner, "POST", BOOK, *lines), b"{}")
    [(status, headers, body)] = heard.answers
    assert (status, headers["accept-encoding"]) == (415, "identity")
    assert b"Content-Encoding" in body


async def test_a_path_is_matched_as_it_is_written(partner: Partner) -> None:
    for path in ("/api/v1/%63lients", "/api/v1/clients%2f", "/%61pi/v1/clients"):
        heard = await say(partner.gateway.port, head(partner, "GET", path, END))
        assert heard.statuses == [404]


async def test_a_body_over_64_kib_is_413_announced_or_not(partner: Partner) -> None:
    port = partner.gateway.port
    announced = head(partner, "POST", BOOK, JSON, "Content-Length: 65537")
    heard = await say(port, announced, until=b"}")
    assert (heard.statuses, heard.answers[0][1]["connection"]) == ([413], "close")
    chunked = head(partner, "POST", BOOK, JSON, "Transfer-Encoding: chunked")
    chunks = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
    heard = await say(port, chunked, chunks * 2, b"1\r\n \r\n", until=b"}")
    assert heard.statuses == [413]
    heard = await say(port, chunked, chunks * 2, b"0\r\n\r\n", until=b"}")
    assert heard.statuses == [400]


async def test_a_body_of_one_byte_chunks_is_read_no_further_than_any_other(
    partner: Partner,
) -> None:
    sent = head(partner, "POST", BOOK, JSON, "Transfer-Encoding: chunked")
    one = b"1\r\n \r\n"
    began = time.process_time()
    heard = await say(partner.gateway.port, sent, one * 0x10000, b"0\r\n\r\n", until=b"}")
    assert heard.statuses == [400]
    heard = await say(partner.gateway.port, sent, one * 0x10001, until=b"}")
    assert (heard.statuses, heard.answers[0][1]["connection"]) == ([413], "close")
    # both of them, and who sent them
    assert time.process_time() - began < 1


@pytest.mark.asyncio(loop_scope="function")
async def test_a_body_that_does_not_arrive_is_408_after_its_time(
    start_gateway: Start, session: aiohttp.ClientSession
) -> None:
    slow = await start_gateway("slow", body_timeout=0.05)
    partner = await Partner(slow, session, None).with_key()
    sent = head(partner, "POST", BOOK, JSON, "Content-Length: 2")
    heard = await say(slow.port, sent, b"{", until=b"}")
    assert (heard.statuses, heard.answers[0][1]["connection"]) == ([408], "close")


async def test_a_body_that_breaks_is_400(partner: Partner) -> None:
    sent = head(partner, "POST", BOOK, JSON, "Transfer-Encoding: chunked")
    heard = await say(partner.gateway.port, sent + b"ZZ\r\n{}\r\n0\r\n\r\n")
    assert (heard.statuses, heard.closed) == ([400], True)


async def test_a_body_that_comes_after_its_refusal_is_skipped(partner: Partner) -> None:
    refused = head(partner, "POST", "/nowhere", JSON, "Content-Length: 2")
    heard = await say(partner.gateway.port, refused, b"{}" + head(partner, "GET", TYPES, END))
    assert heard.statuses == [404, 200]


async def test_a_body_nobody_asked_for_is_skipped(partner: Partner) -> None:
    with_body = head(partner, "GET", TYPES, "Content-Length: 5") + b"hello"
    heard = await say(partner.gateway.port, with_body + head(partner, "GET", TYPES, END))
    assert heard.statuses == [200, 200]


async def test_a_trailer_never_becomes_a_header_of_the_next_request(partner: Partner) -> None:
    chunked = (
        "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        f"2\r\n{{}}\r\n0\r\nX-API-Key: {partner.secret}\r\n\r\n"
    ).encode()
    keyless = f"GET {TYPES} HTTP/1.1\r\nHost: b\r\n\r\n".encode()
    heard = await say(partner.gateway.port, chunked, keyless)
    assert (heard.statuses, heard.closed) == ([404], True)


async def test_a_host_that_cannot_be_decoded_gets_an_answer(partner: Partner) -> None:
    for target, status in (("http://xn--a/", 404), ("http://xn--a.b/x", 404), ("ws://xn--a/", 400)):
        sent = f"GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()
        heard = await say(partner.gateway.port, sent)
        assert (heard.statuses, heard.closed) == ([status], True)


async def test_trace_is_405_and_repeats_nothing(partner: Partner) -> None:
    sent = head(partner, "TRACE", TYPES, "X-Told: nobody", END)
    [(status, headers, body)] = (await say(partner.gateway.port, sent)).answers
    assert (status, headers["allow"]) == (405, "GET, HEAD")
    assert json.loads(body) == {"message": "Method not allowed"}
    assert "nobody" not in str(headers)


async def test_what_comes_behind_an_upgrade_is_never_an_answer_to_another(
    partner: Partner,
) -> None:
    """Whoever stands in between counts one answer for each request, or the connection's end."""
    sent = head(partner, "GET", TYPES, "Connection: Upgrade", "Upgrade: websocket")
    heard = await say(partner.gateway.port, sent + head(partner, "GET", "/nowhere"))
    assert (heard.statuses, heard.closed) == ([200], True)
    assert heard.answers[0][1]["connection"] == "close"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/clients/..%2f..%2fadmin%3fx=1",
        "/api/v1/clients/%00%0d%0aX-Told:%20nobody",
        "/api/v1/clients/../../admin",
        "/api/v1/clients/%2e%2e",
        "//evil.example/api/v1/clients",
        "/api/v1//clients",
        "/api/v1/clients;x",
        "*",
    ],
)
async def test_no_path_leads_anywhere_but_to_an_operation(partner: Partner, path: str) -> None:
    heard = await say(partner.gateway.port, head(partner, "GET", path, END))
    assert heard.closed
    assert set(heard.statuses) <= {400, 404}
    assert len(heard.statuses) == 1
    for told in (b"admin", b"nobody", b"evil", b"clinic.db"):
        assert told not in heard.data


async def test_a_refused_body_that_does_not_come_ends_its_connection_soon(
    partner: Partner,
) -> None:
    began = time.monotonic()
    sent = head(partner, "POST", BOOK, JSON, "Content-Length: 65537")
    heard = await say(partner.gateway.port, sent)
    assert (heard.statuses, heard.closed) == ([413], True)
    assert time.monotonic() - began < 3.5


async def test_nothing_is_kept_of_keys_that_nobody_has(partner: Partner) -> None:
    ring, pipeline = partner.gateway.gateway.ring, partner.gateway.gateway.public.front.pipeline
    known, counted = len(ring), set(pipeline.limiter._windows)
    lines = [
        f"GET {TYPES} HTTP/1.1\r\nHost: x\r\nX-API-Key: vk_{n:048}\r\n\r\n" for n in range(200)
    ]
    lines.append(f"GET {TYPES} HTTP/1.1\r\nHost: x\r\nX-API-Key: x\r\n{END}\r\n\r\n")
    heard = await say(partner.gateway.port, "".join(lines).encode())
    assert heard.statuses == [401] * 201
    assert set(pipeline.limiter._windows) <= counted
    assert (len(ring), pipeline.shedder.inside, pipeline.shedder._lines) == (known, set(), {})
