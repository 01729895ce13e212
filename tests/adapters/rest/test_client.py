"""Whatever a backend does on the wire: it is turned down, in time, and nothing is done twice."""

import asyncio
import contextlib
import gzip
import socket
import time

import pytest

from adapters.base import BackendNonsense, BackendTimeout, BackendUnavailable, OutcomeUnknown
from adapters.rest import reader
from adapters.rest.client import Client, Request, address_problem
from adapters.rest.requests import Endpoint, TemplateValues
from tests.adapters.rest.backends import ASK, WRITE, asking
from tests.adapters.rest.raw import Talk, head, http, raw
from tests.waiting import until

UNUSABLE = {
    "a page of HTML": http("<html>", kind="text/html"),
    "JSON that says it is text": http("{}", kind="text/plain"),
    "HTML that says it is JSON": http("<html>"),
    "a byte order mark": http(b"\xef\xbb\xbf{}"),
    "NaN": http('{"a": NaN}'),
    "another encoding": http(b'{"a": "\xe9"}'),
    "an encoding that is not ours": http("{}", kind="application/json; charset=iso-8859-1"),
    "nothing": http(b""),
    "204": head(status="204 No Content"),
    "fewer bytes than promised": head("Content-Length: 100", "Connection: close") + b'{"a": 1}',
    "chunks that break off": head("Transfer-Encoding: chunked") + b'8\r\n{"a": 1',
    "no length": head("Connection: close") + b"{}",
    "two lengths": head("Content-Length: 2", "Content-Length: 9") + b'{"a": 123}',
    "a surrogate alone": http('{"a": "\\ud800"}'),
    "a depth without end": http("[" * 100_000),
    "a compressed body": http(gzip.compress(b"{}"), "Content-Encoding: gzip"),
    "too large a body": http(b"[" + b"1," * 1_100_000 + b"1]"),
    "too large a body in chunks": head("Transfer-Encoding: chunked")
    + b"10000\r\n%s\r\n" % (b" " * 0x10000) * 40
    + b"0\r\n\r\n",
    "a redirect": http("{}", "Location: http://127.0.0.1:1/", status="302 Found"),
    "a header without end": head(f"X-Long: {'x' * 20_000}", "Content-Length: 2") + b"{}",
    "no HTTP": b"220 mail ready\r\n\r\n",
}


@pytest.mark.parametrize("answer", UNUSABLE.values(), ids=UNUSABLE)
async def test_an_answer_that_cannot_be_trusted_is_turned_down(answer: bytes) -> None:
    async with raw(answer) as server, asking(server.url) as backend:
        with pytest.raises(BackendNonsense) as raised:
            await backend.read(ASK)
        assert "mail" not in str(raised.value)
        assert len(server.seen) == 1


@pytest.mark.parametrize("answer", UNUSABLE.values(), ids=UNUSABLE)
async def test_after_a_write_the_same_answer_leaves_its_outcome_unknown(answer: bytes) -> None:
    async with raw(answer) as server, asking(server.url) as backend:
        with pytest.raises(OutcomeUnknown):
            await backend.write(WRITE, 1.0)
        assert len(server.seen) == 1


async def test_an_answer_is_the_json_it_holds() -> None:
    chunked = head("Transfer-Encoding: chunked") + b'4\r\n{"a"\r\n3\r\n:1}\r\n0\r\n\r\n'
    async with raw(http('{"a": 1}'), chunked) as server, asking(server.url) as backend:
        assert (await backend.read(ASK)).data == {"a": 1}
        assert (await backend.read(ASK)).data == {"a": 1}
        assert server.connections == 1


async def test_bytes_of_another_encoding_in_a_header_leave_the_answer_as_it_is() -> None:
    answer = http("{}", "X-Clinic: Pr?t").replace(b"?", b"\xe4")
    async with raw(answer) as server, asking(server.url) as backend:
        for told in (await backend.read(ASK), await backend.write(WRITE, 1.0)):
            assert (told.data, told.headers[b"x-clinic"]) == ({}, b"Pr\xe4t")


async def _silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(30)


async def _dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Content-Length: 1000"))
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)


async def _never_final(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("talk", [_silent, _dripping, _never_final])
async def test_who_is_slow_is_given_up_when_the_time_is_over(talk: object) -> None:
    async with raw(talk) as server, asking(server.url, patience=0.3) as backend:  # type: ignore[arg-type]
        began = time.monotonic()
        with pytest.raises(BackendTimeout):
            await backend.read(ASK)
        with pytest.raises(OutcomeUnknown):
            await backend.write(WRITE, 0.3)
        assert time.monotonic() - began < 1.5
        assert len(server.seen) == 2


def _closed_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


async def test_who_is_not_there_was_not_asked() -> None:
    for host in (f"127.0.0.1:{_closed_port()}", "nowhere.invalid"):
        async with asking(f"http://{host}/api") as backend:
            began = time.monotonic()
            with pytest.raises(BackendUnavailable):
                await backend.read(ASK)
            with pytest.raises(BackendUnavailable):
                await backend.write(WRITE, 1.0)
            assert time.monotonic() - began < 2


async def test_a_read_whose_kept_connection_breaks_is_sent_once_more() -> None:
    async with raw(http("[1]"), None, http("[2]")) as server, asking(server.url) as backend:
        assert (await backend.read(ASK)).data == [1]
        assert (await backend.read(ASK)).data == [2]
        assert (len(server.seen), server.connections) == (3, 2)


async def test_a_read_whose_new_connection_breaks_is_not_sent_again() -> None:
    async with raw(None) as server, asking(server.url) as backend:
        with pytest.raises(BackendUnavailable):
            await backend.read(ASK)
        assert len(server.seen) == 1


async def test_a_read_is_never_sent_a_third_time() -> None:
    async with raw(http("[1]"), None) as server, asking(server.url) as backend:
        await backend.read(ASK)  # the next one takes a connection that is kept open
        with pytest.raises(BackendUnavailable):
            await backend.read(ASK)
        assert len(server.seen) == 3


async def test_a_write_whose_connection_breaks_is_not_sent_again() -> None:
    async with raw(None) as server, asking(server.url) as backend:
        with pytest.raises(OutcomeUnknown):
            await backend.write(WRITE, 1.0)
        assert len(server.seen) == 1


async def test_a_read_waits_for_a_connection_as_long_as_it_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reader, "CONNECT_PATIENCE", 0.2)

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        writer.write(http("{}", "Connection: close"))
        await writer.drain()

    async with raw(slow) as server, asking(server.url, patience=3.0, in_flight=1) as backend:
        answers = await asyncio.gather(*(backend.read(ASK) for _ in range(3)))
        assert [each.data for each in answers] == [{}, {}, {}]


async def test_a_connection_that_does_not_come_is_given_up_before_the_time_for_a_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reader, "CONNECT_PATIENCE", 0.1)
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):  # nobody accepts them, and no more fit
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        port, began = full.getsockname()[1], loop.time()
        async with asking(f"http://127.0.0.1:{port}", patience=60.0) as backend:
            with pytest.raises(BackendTimeout):
                await backend.read(ASK)
        assert loop.time() - began < 30.0


async def test_what_came_unasked_on_a_kept_connection_is_no_answer() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(http('{"n": 1}'))
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.write(http('{"n": "an answer to nobody"}'))
        await reader.read()

    async with raw(talk, http('{"n": 2}')) as server, asking(server.url) as backend:
        assert (await backend.read(ASK)).data == {"n": 1}
        await asyncio.sleep(0.1)
        assert (await backend.read(ASK)).data == {"n": 2}
        assert server.connections == 2


async def test_every_write_has_a_connection_of_its_own() -> None:
    async with raw(http()) as server, asking(server.url) as backend:
        await backend.read(ASK)
        await backend.write(WRITE, 1.0)
        await backend.write(WRITE, 1.0)
        assert (server.connections, len(server.seen)) == (3, 3)


async def _before_a_word(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(30)


async def _after_the_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Content-Length: 1000") + b"[")
    await writer.drain()
    await asyncio.sleep(30)


async def _in_chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Transfer-Encoding: chunked") + b"1\r\n[\r\n")
    await writer.drain()
    await asyncio.sleep(30)


@pytest.mark.parametrize("talk", [_before_a_word, _after_the_head, _in_chunks])
async def test_what_is_under_way_when_it_is_closed_ends_as_unavailable(
    talk: Talk,
) -> None:
    async with raw(talk) as server, asking(server.url, patience=5.0, in_flight=2) as backend:
        reads = [asyncio.create_task(backend.read(ASK))]
        writes = [asyncio.create_task(backend.write(WRITE, 5.0))]
        await until(lambda: len(server.seen) == 2)
        reads += [asyncio.create_task(backend.read(ASK)) for _ in range(2)]
        writes.append(asyncio.create_task(backend.write(WRITE, 5.0)))
        await asyncio.sleep(0.1)  # the other three wait for a connection
        began = time.monotonic()
        await backend.aclose()
        ends = await asyncio.gather(*reads, *writes, return_exceptions=True)
        unavailable = BackendUnavailable
        assert [type(each) for each in ends] == [*[unavailable] * 3, OutcomeUnknown, unavailable]
        assert all("closed its connections" in str(each) for each in ends)
        assert time.monotonic() - began < 1
        assert len(server.seen) == 2


@pytest.mark.parametrize("used", [True, False])
async def test_what_begins_after_it_was_closed_is_not_sent(*, used: bool) -> None:
    async with raw(http()) as server, asking(server.url) as backend:
        if used:
            await backend.read(ASK)
            await backend.write(WRITE, 1.0)
        await backend.aclose()
        with pytest.raises(BackendUnavailable):
            await backend.read(ASK)
        with pytest.raises(BackendUnavailable):
            await backend.write(WRITE, 1.0)
        assert len(server.seen) == (2 if used else 0)


async def test_nothing_is_kept_followed_or_taken_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with raw(http("[7]")) as elsewhere:
        moved = http("{}", f"Location: {elsewhere.url}", status="307 Temporary Redirect")
        async with raw(http("{}", "Set-Cookie: s=1"), moved) as server:
            async with asking(server.url, headers={"X-Key": {"secret": "token"}}) as backend:
                await backend.read(ASK)
                with pytest.raises(BackendNonsense):
                    await backend.read(ASK)
            assert "cookie" not in "".join(server.seen).lower()
            assert all("X-Key: t0ken\r\n" in each for each in server.seen)
            assert all("Accept-Encoding: identity\r\n" in each for each in server.seen)
        assert elsewhere.seen == []


async def test_an_id_stays_one_part_of_the_path_whatever_it_holds() -> None:
    request = Endpoint(
        method="GET",
        label="",
        parts=["things", lambda values: "a/b?c=d#e\r\n%2e é"],
        query=[("q", lambda values: "a&b=c +")],
        body=None,
    ).request(TemplateValues())
    async with raw(http()) as server, asking(server.url) as backend:
        await backend.read(request)
        line = server.seen[0].partition("\r\n")[0]
        path = "/api/things/a%2Fb%3Fc%3Dd%23e%0D%0A%252e%20%C3%A9"
        assert line == f"GET {path}?q=a%26b%3Dc+%2B HTTP/1.1"


async def test_no_target_leads_to_another_host() -> None:
    away = Request(label="", method="GET", target="@elsewhere.example.org/")
    async with raw(http()) as server, asking(server.url.removesuffix("/api")) as backend:
        await backend.read(away)
        assert f"Host: {server.url.split('/')[2]}\r\n" in server.seen[0]


def test_a_link_is_followed_on_the_backend_alone() -> None:
    backend = Client("https://cloud.example.org/api", timeout=1.0)
    for link in (
        "/api/things?after=a%26b",
        "?after=a%26b",
        "things?after=a%26b",
        "https://cloud.example.org:443/api/things?after=a%26b",
        "http://CLOUD.example.org/api/things?after=a%26b",
    ):
        assert backend.behind(link, ASK) == "/things?after=a%26b"
    assert backend.behind("https://cloud.example.org/api?page=2", ASK) == "?page=2"
    for link in (
        "https://elsewhere.example.org/api/things",
        "http://elsewhere.example.org/api/things",
        "http://cloud.example.org:443@elsewhere.example.org/api/things",
        "ftp://cloud.example.org:443/api/things",
        "http://cloud.example.org:8080/api/things",
        "https://cloud.example.org/apis?page=2",
        "https://cloud.example.org:8443/api/things",
        "/admin",
        "//elsewhere.example.org/api",
        "../admin",
        "/apis/things",
        "/api/%2e%2e/admin",
        "http://[",
    ):
        with pytest.raises(BackendNonsense):
            backend.behind(link, ASK)


@pytest.mark.parametrize("path", ["/api", ""])
async def test_a_link_to_the_address_itself_is_followed_over_its_own_scheme(path: str) -> None:
    async with raw(http()) as server, asking(f"{server.url[:-4]}{path}") as backend:
        for scheme in ("http", "https"):
            link = f"{scheme}{server.url[4:-4]}{path}?page=2"
            answer = await backend.read(ASK)
            await backend.read(ASK._replace(target=answer.behind(link, ASK)))
            assert server.seen[-1].startswith(f"GET {path or '/'}?page=2 HTTP/1.1\r\n")


@pytest.mark.parametrize(
    "url",
    ["", "cloud", "ftp://cloud.example.org", "https://", "http://a:99999", "https://u:p@a.example",
     "https://u@a.example", "https://a.example/?x=1", "https://a.example/#x", "sqlite:///clinic.db"],
)  # fmt: skip
def test_an_address_must_be_one_of_http(url: str) -> None:
    assert address_problem(url)
    assert address_problem("https://cloud.example.org/api") is None
