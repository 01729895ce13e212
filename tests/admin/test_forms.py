"""What is posted to the panel: only whole forms of its own kind, in time, whoever sends them."""

import asyncio
import json

import aiohttp
import pytest

from gateway.admin.guard import HEADERS
from gateway.administrators.administrator import AdministratorStore
from gateway.assembly.listeners import PANEL_CONNECTIONS, PANEL_CONNECTIONS_OF_ONE
from tests.admin.manager import Manager, manager_of
from tests.conftest import RunningGateway, Start
from tests.waiting import until

FORM = "application/x-www-form-urlencoded"
ODD: list[tuple[str, bytes]] = [
    (FORM, b"asked=a&name=\xff&password=x"),
    (FORM, b"asked=a&name=x%00&password=x"),
    (f"{FORM}; charset=nonsense", b"asked=a&name=x&password=x"),
    (f"{FORM}; charset=raw_unicode_escape", b"asked=a&name=\\ud800&password=x"),
    ("multipart/form-data", b"asked=a"),
    ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data\r\n\r\na\r\n--x--"),
    ("application/json", b"{}"),
]


def port_of(running: RunningGateway) -> int:
    assert running.gateway.panel is not None
    return running.gateway.panel.port


async def said(port: int, *head: bytes, body: bytes = b"") -> bytes:
    """What the panel answers to such a request, until it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    own = f"Host: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\nConnection: close".encode()
    writer.write(b"\r\n".join([head[0], own, *head[1:]]) + b"\r\n\r\n" + body)
    try:
        async with asyncio.timeout(5):
            return await reader.read()
    finally:
        writer.close()


def faults(running: RunningGateway, captured: pytest.CaptureFixture[str]) -> list[str]:
    """What the log says of faults of the panel."""
    lines = captured.readouterr().err.splitlines()
    return [each for each in lines if json.loads(each)["event"] == "the panel failed"]


async def test_a_strangers_odd_form_is_refused_and_is_no_fault(
    running_gateway: RunningGateway, capfd: pytest.CaptureFixture[str]
) -> None:
    port = port_of(running_gateway)
    for kind, body in ODD:
        head = b"Cookie: clinic-gateway-asked=a", f"Content-Type: {kind}".encode()
        length = f"Content-Length: {len(body)}".encode()
        answer = await said(port, b"POST /sign-in HTTP/1.1", *head, length, body=body)
        assert answer.startswith(b"HTTP/1.1 400 "), (kind, body[:50], answer[:200])
        assert faults(running_gateway, capfd) == [], (kind, body[:50])


@pytest.mark.parametrize("cookie", [b"clinic-gateway=\xff", b"clinic-gateway-asked=\xff"])
async def test_a_cookie_that_is_no_text_is_none(
    running_gateway: RunningGateway, capfd: pytest.CaptureFixture[str], cookie: bytes
) -> None:
    port, sent = port_of(running_gateway), b"Cookie: " + cookie
    assert (await said(port, b"GET /keys HTTP/1.1", sent)).startswith(b"HTTP/1.1 303 ")
    assert (await said(port, b"GET /sign-in HTTP/1.1", sent)).startswith(b"HTTP/1.1 200 ")
    body = b"asked=%FF&name=x&password=x"
    head = f"Content-Type: {FORM}".encode(), f"Content-Length: {len(body)}".encode()
    answer = await said(port, b"POST /sign-in HTTP/1.1", sent, *head, body=body)
    assert answer.startswith(b"HTTP/1.1 403 "), answer[:200]
    assert faults(running_gateway, capfd) == []


async def test_whoever_sends_an_odd_browser_name_comes_in_all_the_same(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    manager = await manager_of(running_gateway, session)
    page = await manager.other().get("/sign-in")
    asked = page.field("asked")
    body = f"asked={asked}&name=Claire&password=correct+horse+battery+staple".encode()
    answer = await said(
        port_of(running_gateway),
        b"POST /sign-in HTTP/1.1",
        b"User-Agent: \xff<b>",
        f"Cookie: clinic-gateway-asked={asked}".encode(),
        f"Content-Type: {FORM}".encode(),
        f"Content-Length: {len(body)}".encode(),
        body=body,
    )
    assert answer.startswith(b"HTTP/1.1 303 "), answer[:200]
    assert "\\udcff&lt;b&gt;" in (await manager.get("/account")).text


async def test_a_form_that_does_not_come_keeps_nobody_out(
    start_gateway: Start, session: aiohttp.ClientSession
) -> None:
    running = await start_gateway(body_timeout=0.2)
    assert await AdministratorStore(running.gateway.store).list() == []
    length = b"Content-Length: 100"
    kind = f"Content-Type: {FORM}".encode()
    slow = said(port_of(running), b"POST /sign-in HTTP/1.1", kind, length, body=b"asked=a")
    assert (await slow).startswith(b"HTTP/1.1 408 ")


async def test_one_address_cannot_take_every_connection(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    port = port_of(running_gateway)
    head = f"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n".encode()
    lines = [
        await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
        for _ in range(PANEL_CONNECTIONS)
    ]
    ends = [asyncio.create_task(reader.read()) for reader, _ in lines]
    try:
        for _, writer in lines:
            writer.write(head)
        refused = PANEL_CONNECTIONS - PANEL_CONNECTIONS_OF_ONE
        await until(lambda: sum(end.done() for end in ends) >= refused)
        inside = [end for end in ends if not end.done()]
        assert len(inside) == PANEL_CONNECTIONS_OF_ONE
        assert (await Manager(f"http://127.0.0.1:{port}", session).get("/sign-in")).status == 200
        assert not any(end.done() for end in inside)
    finally:
        for _, writer in lines:
            writer.close()
        await asyncio.wait(ends)


async def test_what_cannot_be_read_is_refused_in_words_and_with_every_header(
    running_gateway: RunningGateway,
) -> None:
    port = port_of(running_gateway)
    blanks = await said(port, b"GET  /sign-in HTTP/1.1")
    assert b" 400 " in blanks.partition(b"\r\n")[0]
    assert b"must have one blank between method, target and version\n" in blanks
    large = await said(port, b"GET /sign-in HTTP/1.1", *[b"X-Much: " + b"x" * 4000] * 5)
    assert b" 431 " in large.partition(b"\r\n")[0]
    assert large.endswith(b"\r\n\r\nRequest header fields too large\n")
    for answer in (blanks, large):
        head = answer.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
        assert {f"{name}: {value}" for name, value in HEADERS.items()} <= set(head)


@pytest.mark.parametrize(
    ("target", "status"),
    [("ftp://evil.example/sign-in", 421), ("http://evil.example/sign-in", 421), ("{}", 200)],
)
async def test_a_whole_address_must_be_the_panels(
    running_gateway: RunningGateway, target: str, status: int
) -> None:
    port = port_of(running_gateway)
    whole = target.format(f"http://127.0.0.1:{port}/sign-in").encode()
    answer = await said(port, b"GET " + whole + b" HTTP/1.1")
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:200]
