"""Which hosts and targets a request may name."""

import pytest

from gateway.web.addresses import host_of
from tests.conftest import RunningGateway
from tests.web.wire import say

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOST = "must be a host name or address, with a port or without"
BLANKS = "must have one blank between method, target and version"
UNREAD = "cannot be read as HTTP/1.1"


@pytest.fixture
def running_gateway(lasting_gateway: RunningGateway) -> RunningGateway:
    return lasting_gateway


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("gateway.example.org", "gateway.example.org"),
        ("GateWay:8080", "gateway"),
        ("127.0.0.1:80", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[0:0::1]:8080", "::1"),
        ("under_score:", "under_score"),
        ("%c3%a9.example", "%c3%a9.example"),
        ("", ""),
        (":80", ""),
        ("a b", ""),
        ("a/b?c#d@e", ""),
        ("user@a", ""),
        ("a:b", ""),
        ("a:1:2", ""),
        ("::1", ""),
        ("[::g]", ""),
        ("[1.2.3.4]", ""),
        ("[::1]x", ""),
        ("%zz", ""),
        ("é.example", ""),
        ("a,\tb", ""),
    ],
)
async def test_what_is_a_host(text: str, host: str) -> None:
    assert host_of(text) == host


@pytest.mark.parametrize(
    ("first", "host", "field", "problem"),
    [
        ("GET / HTTP/1.1", "a b", "Host", HOST),
        ("GET / HTTP/1.1", "a/b?c#d@e", "Host", HOST),
        ("GET / HTTP/1.1", "", "Host", HOST),
        ("GET / HTTP/1.0", "a b", "Host", HOST),
        ("GET  / HTTP/1.1", "x", "request", BLANKS),
        ("GET /  HTTP/1.1", "x", "request", BLANKS),
        ("GET ftp://x/ HTTP/1.1", "x", "request", "must ask for a path, or for an address of http"),
        ("GET ws://x/ HTTP/1.1", "x", "request", "must ask for a path, or for an address of http"),
        ("GET http://a@b/ HTTP/1.1", "x", "request", "must ask for an address whose host is"),
        ("GET http://[::1/ HTTP/1.1", "x", "request", UNREAD),
        ("GET * HTTP/1.1", "x", "request", UNREAD),
        ("GET x HTTP/1.1", "x", "request", UNREAD),
    ],
)
async def test_what_names_no_host_of_http_is_400_and_closed(
    running_gateway: RunningGateway, first: str, host: str, field: str, problem: str
) -> None:
    heard = await say(running_gateway.port, f"{first}\r\nHost: {host}\r\n\r\n".encode())
    [(status, _, body)] = heard.answers
    assert (status, heard.closed) == (400, True)
    assert f"Invalid request: {field} {problem}".encode() in body


@pytest.mark.parametrize(
    ("first", "host"),
    [
        ("GET / HTTP/1.1", "[::1]:8080"),
        ("GET / HTTP/1.1", "gateway.example.org:443"),
        ("GET http://y:80/ HTTP/1.1", "x"),
        ("GET HTTPS://[::1]/ HTTP/1.1", "x"),
        ("OPTIONS * HTTP/1.1", "x"),
    ],
)
async def test_every_form_that_a_request_may_have_is_read(
    running_gateway: RunningGateway, first: str, host: str
) -> None:
    sent = f"{first}\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    assert (await say(running_gateway.port, sent)).statuses == [404]
