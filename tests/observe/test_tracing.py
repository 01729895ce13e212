"""Traces: what a collector gets, what the practice system is told, and what neither can spoil."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from adapters.base import BackendUnavailable, Query, Record
from adapters.call_notes import CALL_NOTES, CallNotes
from adapters.rest.client import Client, Request
from gateway.app import build
from gateway.observe import otlp
from gateway.observe.traces import Traces, read
from gateway.settings import Settings, StartRefused, TracingSettings
from tests.conftest import Begin, Template
from tests.heard import Heard
from tests.partner import Partner
from tests.web.test_observers import lines_of
from tests.world import SOME_ID, World

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
# what may look like a header of any version
HEADER = r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[a-z]{0,3})?"
GIVEN = f"00-{TRACE}-{PARENT}-01"


class Collector:
    """Takes OTLP over HTTP; `answer` is what it does then."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.paths: list[str] = []
        self.url = ""
        self.tokens: list[str] = []
        self.came = asyncio.Event()
        self.answer: Callable[[], Any] = lambda: None

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.paths.append(request.path)
        self.tokens.append(request.headers.get("Authorization", ""))
        status = await self.answer() if asyncio.iscoroutinefunction(self.answer) else 200
        if status == 200:
            sent = ExportTraceServiceRequest.FromString(body)
            for resource in sent.resource_spans:
                names = {each.key: each.value.string_value for each in resource.resource.attributes}
                assert names == {"service.name": "clinic-gateway"}
                for scope in resource.scope_spans:
                    self.spans += scope.spans
            self.came.set()
        return web.Response(status=status)

    async def of(self, count: int) -> list[Span]:
        """So many spans, as soon as they are there."""
        async with asyncio.timeout(10):
            while len(self.spans) < count:
                self.came.clear()
                await self.came.wait()
        return self.spans


@pytest.fixture
async def collector(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Collector]:
    monkeypatch.setattr(otlp, "EVERY", 50)
    taken = Collector()
    app = web.Application()
    app.router.add_post("/{path:.*}", taken.take)
    async with TestServer(app) as server:
        taken.url = str(server.make_url("/"))
        yield taken


def tracing(collector: Collector, **more: Any) -> TracingSettings:
    return TracingSettings(endpoint=collector.url, **more)


def attributes(span: Span) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


async def test_a_call_is_a_span_below_the_partners_and_its_question_one_below(
    partner_of: Begin, collector: Collector
) -> None:
    partner = await partner_of(World(), tracing=tracing(collector))
    await partner.send("GET", f"/clients/{SOME_ID}", headers={"traceparent": GIVEN})
    question, call = await collector.of(2)
    assert collector.paths[0] == "/v1/traces"
    assert (call.name, call.kind) == ("get_client", Span.SPAN_KIND_SERVER)
    assert (question.name, question.kind) == ("read_one clients", Span.SPAN_KIND_CLIENT)
    assert call.trace_id.hex() == question.trace_id.hex() == TRACE
    assert (call.parent_span_id.hex(), question.parent_span_id) == (PARENT, call.span_id)
    assert attributes(call) == {
        "http.response.status_code": 200,
        "gateway.key_id": partner._key_id,
    }
    assert attributes(question) == {
        "gateway.verb": "read_one",
        "gateway.resource": "clients",
        "gateway.outcome": "answered",
    }
    assert call.start_time_unix_nano <= question.start_time_unix_nano
    assert question.end_time_unix_nano <= call.end_time_unix_nano
    [line] = await lines_of(partner)
    assert line["traceId"] == TRACE


async def test_bookings_refusals_and_failures_are_spans_too_and_hold_no_value(
    partner_of: Begin, collector: Collector
) -> None:
    def down(query: Query) -> Record:
        raise BackendUnavailable("the text of a fault")

    partner = await partner_of(World(one=down), tracing=tracing(collector))
    draft = {"clientId": SOME_ID, "patientId": SOME_ID, "vetId": SOME_ID, "reason": "Secretitis"}
    await partner.post("/appointments", draft | {"scheduledAt": "2099-01-01T09:00:00Z"})
    await partner.get(f"/clients/{SOME_ID}")
    await partner.get("/clients?search=Secretson")
    await partner.anonymous().get("/nowhere/Secretville")
    spans = await collector.of(7)
    found = {each.name: each for each in spans}
    assert found.keys() == {
        "create_appointment", "create_appointment appointments", "get_client", "read_one clients",
        "list_clients", "read_many clients", "other",
    }  # fmt: skip
    assert found["create_appointment appointments"].parent_span_id == (
        found["create_appointment"].span_id
    )
    assert attributes(found["read_one clients"])["gateway.outcome"] == "BackendUnavailable"
    for name in ("get_client", "read_one clients"):
        assert found[name].status.code == Status.STATUS_CODE_ERROR
    assert attributes(found["other"]) == {"http.response.status_code": 401}
    assert found["other"].status.code == Status.STATUS_CODE_UNSET
    assert len({each.trace_id for each in spans}) == 4
    text = "".join(map(str, spans))
    for word in ("Secret", SOME_ID, "vk_", "fault", "127.0.0.1"):
        assert word not in text


@pytest.mark.parametrize(
    "given", [(), ("nonsense",), (GIVEN, GIVEN), (f"00-{'0' * 32}-{PARENT}-01",)]
)
async def test_what_is_malformed_or_there_twice_begins_a_new_trace(
    collector: Collector, given: tuple[str, ...]
) -> None:
    traces = otlp.Otlp(f"{collector.url}v1/traces", 1.0, Heard())
    asking = traces.begin("get_client", given)
    asking.ended(200, None)
    [span] = await collector.of(1)
    assert span.parent_span_id == b""
    assert span.trace_id.hex() not in {TRACE, "0" * 32}
    await traces.aclose()


async def test_a_share_of_the_traces_is_kept_by_their_id_whatever_the_partner_wants(
    collector: Collector,
) -> None:
    traces = otlp.Otlp(f"{collector.url}v1/traces", 0.25, Heard())
    kept = 0
    for number in range(400):
        trace_id = f"{number * 0x9E3779B97F4A7C15 % 2**128 or 1:032x}"
        asking = traces.begin("get_client", (f"00-{trace_id}-{PARENT}-01",))
        question = asking.begin("read_one", "clients")
        flags = asking.traceparent[-2:]
        asking.end(question, "answered")
        asking.ended(200, "key")
        assert asking.trace_id == trace_id
        kept += flags == "01"
    await traces.aclose()
    assert 60 < kept < 140
    assert len(collector.spans) == 2 * kept


async def test_who_chooses_the_number_of_a_trace_does_not_choose_that_it_is_kept(
    collector: Collector,
) -> None:
    traces = otlp.Otlp(f"{collector.url}v1/traces", 0.25, Heard())
    kept = 0
    for number in range(1, 401):
        # by their numbers alone these would all be among the first quarter
        asking = traces.begin("get_client", (f"00-{number:032x}-{PARENT}-01",))
        kept += asking.traceparent[-2:] == "01"
        asking.ended(200, "key")
    await traces.aclose()
    assert 60 < kept < 140


async def test_a_collector_that_hangs_costs_no_call_anything_and_is_left_at_the_end(
    template: Template, partner_of: Begin, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More spans than wait at most: the rest are lost, counted, and the calls go on."""
    released = asyncio.Event()

    async def hang() -> int:
        await released.wait()
        return 503

    collector.answer = hang
    monkeypatch.setattr(otlp, "QUEUE", 8)
    monkeypatch.setattr(otlp, "BATCH", 4)
    monkeypatch.setattr(otlp, "CLOSING", 0.3)
    partner = await partner_of(World(), tracing=tracing(collector))
    gateway = partner.gateway.gateway
    metrics = gateway.public.runner.server.request_handler.observers.metrics
    slowest = 0.0
    for _ in range(40):
        began = time.perf_counter()
        assert (await partner.get(f"/clients/{SOME_ID}")).status == 200
        slowest = max(slowest, time.perf_counter() - began)
    assert slowest < 1.0
    [lost] = metrics.snapshot()["gateway_spans_lost_total"]
    # 80 spans, of which 8 wait and one batch of at most 4 is under way
    assert 80 - 8 - 4 <= lost.value <= 80 - 8
    began = time.perf_counter()
    await gateway.public.front.traces.aclose()
    assert time.perf_counter() - began < 2.0
    released.set()


async def test_a_collector_may_want_a_token_and_the_library_may_be_turned_off(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20of-the-collector")
    traces = otlp.Otlp(f"{collector.url}v1/traces", 1.0, Heard())
    traces.begin("get_client", ()).ended(200, None)
    await collector.of(1)
    assert collector.tokens == ["Bearer of-the-collector"]
    await traces.aclose()
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    traces = otlp.Otlp(f"{collector.url}v1/traces", 1.0, Heard())
    asking = traces.begin("get_client", ())
    asking.end(asking.begin("read_one", "clients"), "answered")
    assert (asking.traceparent, asking.trace_id) == ("", None)
    await traces.aclose()
    assert len(collector.spans) == 1


async def test_a_collector_that_is_gone_is_told_of_once_and_what_is_lost_counted(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(otlp, "PATIENCE", 0.1)
    heard = Heard()
    traces = otlp.Otlp("http://127.0.0.1:1/v1/traces", 1.0, heard)
    for sent in (1, 2, 3):
        traces.begin("get_client", ()).ended(200, None)
        async with asyncio.timeout(10):
            while heard.counted["spans_dropped"] < sent:  # noqa: ASYNC110 - a thread of the library's counts
                await asyncio.sleep(0.02)
    assert heard.said == ["collector_down"]
    await traces.aclose()
    assert (heard.counted["spans_dropped"], heard.said) == (3, ["collector_down"])
    assert [each for each in caplog.records if each.levelname != "DEBUG"] == []


# What the practice system is told


class Practice:
    """A backend over HTTP that notes the headers of trace it was sent."""

    def __init__(self) -> None:
        self.heard: list[dict[str, str]] = []

    async def take(self, request: web.Request) -> web.Response:
        names = ("traceparent", "tracestate", "baggage")
        told = request.headers
        self.heard.append({each: told[each] for each in names if each in told})
        return web.json_response({})


@pytest.fixture
async def practice() -> AsyncIterator[Any]:
    heard = Practice()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", heard.take)
    async with TestServer(app) as server:
        client = Client(str(server.make_url("/")), timeout=3)
        yield heard, client
        await client.aclose()


async def test_a_backend_over_http_is_told_of_the_question_that_asks_it(
    practice: Any, collector: Collector
) -> None:
    heard, client = practice
    traces = otlp.Otlp(f"{collector.url}v1/traces", 1.0, Heard())
    asking = traces.begin("create_appointment", (GIVEN,))
    CALL_NOTES.set(asking)
    question = asking.begin("create_appointment", "appointments")
    request = Request(label="x", method="POST", body=b"{}")
    await client.write(request, {}, 3)
    await client.read(Request(label="x", method="GET"), {})
    asking.end(question, "answered")
    asking.ended(201, None)
    first, _ = await collector.of(2)
    assert heard.heard == [{"traceparent": f"00-{TRACE}-{first.span_id.hex()}-01"}] * 2
    await traces.aclose()


async def test_without_a_collector_a_partners_trace_is_passed_on_and_nothing_else(
    practice: Any,
) -> None:
    heard, client = practice
    request = Request(label="x", method="GET")
    for sent in ((GIVEN,), (), ("nonsense",), (GIVEN, GIVEN)):
        CALL_NOTES.set(Traces().begin("get_client", sent))
        await client.read(request, {})
    assert heard.heard == [{"traceparent": GIVEN}, {}, {}, {}]


async def test_a_real_gateway_passes_it_on_through_its_adapter(partner_of: Begin) -> None:
    seen: list[str] = []

    def look(query: Query) -> Record:
        asking = CALL_NOTES.get()
        seen.append(asking.traceparent)
        return {"id": SOME_ID}

    partner = await partner_of(World(one=look))
    path = f"/clients/{SOME_ID}"
    await partner.send("GET", path, headers={"traceparent": GIVEN, "tracestate": "a=Renaud"})
    await partner.send("GET", path)  # perhaps on the same connection
    assert seen == [GIVEN, ""]
    first, second = await lines_of(partner)
    assert first["traceId"] == TRACE
    assert "traceId" not in second


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (GIVEN, GIVEN),
        (f"00-{TRACE}-{PARENT}-00", f"00-{TRACE}-{PARENT}-00"),
        (f"cc-{TRACE}-{PARENT}-01", GIVEN),
        (f"cc-{TRACE}-{PARENT}-01-what-the-future-says", GIVEN),
        (f"cc-{TRACE}-{PARENT}-01.what", ""),
        (f"00-{TRACE}-{PARENT}-01-more", ""),
        (f"ff-{TRACE}-{PARENT}-01", ""),
        (f"00-{'0' * 32}-{PARENT}-01", ""),
        (f"00-{TRACE}-{'0' * 16}-01", ""),
        (GIVEN.upper(), ""),
        (f" {GIVEN}", ""),
        (f"{GIVEN}\n", ""),
        (f"cc-{TRACE}-{PARENT}-01-{'a' * 600}", ""),
        ("", ""),
    ],
)
def test_the_header_is_read_as_w3c_says(given: str, taken: str) -> None:
    assert read((given,)) == taken


@given(st.text(max_size=80) | st.from_regex(HEADER, fullmatch=True))
def test_what_is_taken_has_the_one_form_whatever_is_sent(given: str) -> None:
    assert re.fullmatch("(00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})?", read((given,)))


async def test_an_endpoint_without_its_libraries_is_refused_with_the_remedy(
    template: Template, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil
    import sys

    from gateway.settings import load_settings

    monkeypatch.setitem(sys.modules, "gateway.observe.otlp", None)
    shutil.copytree(template.folder, tmp_path / "state")
    file = tmp_path / "state" / "gateway.yaml"
    file.write_text(f"{file.read_text()}tracing:\n  endpoint: http://127.0.0.1:4318\n")
    settings = load_settings(tmp_path / "state" / "gateway.yaml", {})
    assert isinstance(settings, Settings)
    with pytest.raises(StartRefused, match=r"pip install '\.\[otel\]'"):
        await build(settings)


def test_the_address_of_a_collector_gets_its_path() -> None:
    for address, taken in (
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
        ("https://traces.example.org/otlp/v1/traces", "https://traces.example.org/otlp/v1/traces"),
    ):
        assert TracingSettings(endpoint=address).endpoint == taken
    for wrong in ("127.0.0.1:4318", "grpc://x", "http://user:pass@x", "http://x?y", ""):
        with pytest.raises(ValueError, match="collector's address"):
            TracingSettings(endpoint=wrong)


async def test_without_an_endpoint_nothing_of_the_library_is_loaded(partner: Partner) -> None:
    script = (
        "import sys, gateway.app; from gateway.assembly.kit import open_spans;"
        "from types import SimpleNamespace as N;"
        "kit = N(settings=N(tracing=N(endpoint=None)), closing=lambda traces: traces);"
        "open_spans(kit);"
        "print([each for each in sys.modules"
        " if each.startswith(('opentelemetry', 'google', 'requests'))])"
    )
    process = await asyncio.create_subprocess_exec(
        __import__("sys").executable, "-c", script, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert json.loads(said) == []
    assert type(Traces().begin("get_client", ())) is CallNotes
