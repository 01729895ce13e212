"""Sends spans of calls and their questions to a collector over HTTP, by a thread of its own.

A span holds names alone: the operation, the key's id and the status, or the verb, the resource and
the outcome. What the collector does not take in time is dropped and counted; no call waits.
"""

import asyncio
import logging
import secrets
import threading
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, ClassVar

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.sampling import SamplingResult, TraceIdRatioBased
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, StatusCode, Tracer

from adapters.call_notes import CallNotes
from gateway.events import Events
from gateway.observe.traces import Traces, read

# Spans that wait for the collector at most; then the oldest are dropped.
QUEUE = 2048
BATCH = 512
EVERY = 1000  # milliseconds
PATIENCE = 5.0
CLOSING = 2.0
# A question that the practice system refuses is answered: its span is no error.
_ANSWERS = frozenset({"answered", "NotFound", "SlotTaken", "PatientDeceased", "Rejected"})


class Traced(CallNotes, kw_only=True, eq=False):
    """The span of a call, and one more for each question to the practice system."""

    tracer: Tracer
    span: Span
    traced: ClassVar[bool] = True

    def begin(self, verb: str, resource: str) -> Span:
        """Starts the span of a question, which requests over HTTP then name as their parent."""
        names = {"gateway.verb": verb, "gateway.resource": resource}
        span = self.tracer.start_span(
            f"{verb} {resource}",
            context=trace.set_span_in_context(self.span),
            kind=SpanKind.CLIENT,
            attributes=names,
        )
        self.traceparent = _written(span)
        return span

    def end(self, begun: Span, outcome: str) -> None:
        """Ends the span of a question."""
        begun.set_attribute("gateway.outcome", outcome)
        if outcome not in _ANSWERS:
            begun.set_status(StatusCode.ERROR)
        begun.end()

    def ended(self, status: int, key_id: str | None) -> None:
        """Ends the span of the call."""
        self.span.set_attribute("http.response.status_code", status)
        if key_id is not None:
            self.span.set_attribute("gateway.key_id", key_id)
        if status >= 500:
            self.span.set_status(StatusCode.ERROR)
        self.span.end()


class Otlp(Traces):
    """Traces that a collector at `endpoint` gets; `share` is the part of them that is kept."""

    def __init__(self, endpoint: str, share: float, events: Events) -> None:
        # the library's messages quote addresses and answers: an event is reported instead
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)
        self._exporter = _Exporter(endpoint, events)
        self._provider = TracerProvider(
            sampler=_Share(share),
            resource=Resource({SERVICE_NAME: "clinic-gateway"}),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(_SpanQueue(self._exporter, events))
        self._tracer = self._provider.get_tracer("clinic-gateway")

    def begin(self, operation: str, given: Sequence[str]) -> CallNotes:
        """Begins a new trace, or goes on with the partner's where its header is sound."""
        known = read(given) if given else ""
        parent = trace.set_span_in_context(_remote(known)) if known else None
        span = self._tracer.start_span(operation or "other", context=parent, kind=SpanKind.SERVER)
        return Traced(_written(span), tracer=self._tracer, span=span)

    async def aclose(self) -> None:
        """Sends what waits; leaves a collector that hangs after two seconds."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def close() -> None:
            self._provider.shutdown()
            with suppress(RuntimeError):  # the loop has ended, and nobody waits
                loop.call_soon_threadsafe(done.set)

        # a daemon thread: one of asyncio's own would hold up the end of the process
        threading.Thread(target=close, daemon=True).start()
        try:
            async with asyncio.timeout(CLOSING):
                await done.wait()
        except TimeoutError:
            await asyncio.get_running_loop().run_in_executor(None, self._exporter.shutdown)


class _Share(TraceIdRatioBased):
    """The share of traces that is kept, by a keyed digest: partners choose their own trace ids."""

    def __init__(self, share: float) -> None:
        super().__init__(share)
        self._key = secrets.token_bytes(32)

    def should_sample(
        self, parent_context: Context | None, trace_id: int, *rest: Any, **more: Any
    ) -> SamplingResult:
        digest = blake2b(trace_id.to_bytes(16), key=self._key, digest_size=8).digest()
        return super().should_sample(parent_context, int.from_bytes(digest), *rest, **more)


class _Exporter(OTLPSpanExporter):
    """The library's exporter, which reports what does not arrive."""

    def __init__(self, endpoint: str, events: Events) -> None:
        super().__init__(endpoint=endpoint, timeout=PATIENCE)
        self._events = events
        self._down = False
        self.taken = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.taken += len(spans)
        result = super().export(spans)
        if result is SpanExportResult.SUCCESS:
            self._down = False
            return result
        self._events.report("spans_dropped", spans=len(spans))
        if not self._down:
            self._down = True
            self._events.report("collector_down")
        return result


class _SpanQueue(BatchSpanProcessor):
    """The library's queue, which drops the oldest spans where it is full, and counts these."""

    def __init__(self, exporter: _Exporter, events: Events) -> None:
        super().__init__(exporter, QUEUE, EVERY, BATCH)
        self._own = exporter
        self._events = events
        self._come = self._dropped = 0

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is None or not span.context.trace_flags.sampled:
            return
        if self._come - self._dropped - self._own.taken >= QUEUE:
            self._dropped += 1
            self._events.report("spans_dropped", spans=1)
        self._come += 1
        super().on_end(span)


def _remote(given: str) -> Span:
    _, trace_id, span_id, flags = (int(part, 16) for part in given.split("-"))
    return NonRecordingSpan(
        SpanContext(trace_id, span_id, is_remote=True, trace_flags=trace.TraceFlags(flags))
    )


def _written(span: Span) -> str:
    context = span.get_span_context()
    if not context.is_valid:  # the library is turned off by the environment
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags & 1:02x}"
