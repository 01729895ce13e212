"""The handler of the public listener: a request becomes a call, its reply becomes an answer."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from aiohttp import web
from multidict import istr

from adapters.asking import ASKING
from gateway.contract import errors
from gateway.contract.errors import GatewayError
from gateway.contract.operations import BASE_PATH, OPERATIONS
from gateway.observe.traces import Traces
from gateway.packing import accepts_gzip
from gateway.pipeline.call import Call, Target
from gateway.pipeline.pipeline import Pipeline
from gateway.web.addresses import AddressBuckets, Proxies
from gateway.web.connection import Connection
from gateway.web.documents import NAMES, Documents
from gateway.web.observers import Observers
from gateway.web.replies import RawResponse, Replies
from gateway.web.requests import (
    EXPECT,
    Body,
    RequestIds,
    Routes,
    must_close,
    refuse_oddities,
    target_of,
)

# Ready for look-up, so that no name is folded anew for each request.
X_REQUEST_ID = istr("X-Request-Id")
X_API_KEY = istr("X-API-Key")
ACCEPT_ENCODING = istr("Accept-Encoding")
TRACEPARENT = istr("traceparent")

_BELOW = f"{BASE_PATH}/"
# After these the rest of what was sent can't be told from the next request; and where there is no
# room for a call, there is none for its connection.
_CLOSING = (
    errors.NotARequest,
    errors.ExpectationFailed,
    errors.BodyTooLarge,
    errors.BodyTooSlow,
    errors.Crowded,
)


@dataclass(kw_only=True, eq=False)
class Front:
    """Answers every request that could be parsed; so many calls are `running`."""

    pipeline: Pipeline
    documents: Documents
    replies: Replies
    observers: Observers
    traces: Traces
    body_timeout: float
    proxies: Proxies
    now: Callable[[], datetime]
    request_id: RequestIds = field(default_factory=RequestIds)
    running: int = 0

    def __post_init__(self) -> None:
        self._routes = Routes(OPERATIONS)
        self._buckets = AddressBuckets()
        self._idle = asyncio.Event()
        self._leaving = False

    def leave(self) -> None:
        """From now on every answer is the last on its connection."""
        self._leaving = True

    async def idle(self, seconds: float) -> bool:
        """Whether, within that time, a moment came when no call ran."""
        self._idle.clear()
        if self.running:
            try:
                async with asyncio.timeout(seconds):
                    await self._idle.wait()
            except TimeoutError:
                return False
        return True

    async def __call__(self, request: web.BaseRequest) -> RawResponse:
        """The answer; every fault of our own is one too."""
        began = time.perf_counter()
        path, query = target_of(request)
        wanted = self._routes.match(request.method, path)
        name = wanted.operation.id if isinstance(wanted, Target) else NAMES.get(path, "")
        # the listener makes no others; to cast it would cost as much as to look at it
        connection: Connection = request.protocol  # type: ignore[assignment]
        call = self._call(request, wanted, name, query, connection.address)
        ASKING.set(call.asking)
        error: GatewayError | None = None
        self.running += 1
        connection.call = call
        try:
            refuse_oddities(request)
            if connection.is_proxy:
                call.address = self.proxies.caller(call.address, request.headers)
            if (path.startswith(_BELOW) and path not in NAMES) or path == BASE_PATH:
                reply = await self.pipeline.run(call)
                if isinstance(wanted, Target) and wanted.operation.creates:
                    # whoever is told of a booking finds it in the audit
                    await self.observers.keep(call, name)
                # asked only now: the end may have begun meanwhile
                close = self._is_last(request, call)
                answer = self.replies.reply(call, reply, close=close)
            else:
                answer = await self._document(request, call, path)
                began += await self._hold_back(call)
        except GatewayError as refused:
            error = refused
            began += await self._hold_back(call)
            answer = self._refusal(request, call, refused)
        except Exception as fault:  # noqa: BLE001 - a fault of ours is a 500, never a traceback
            error = errors.InternalError()
            error.__cause__ = fault
            answer = self._refusal(request, call, error)
        except asyncio.CancelledError:  # cut off at the end; a booking may be made all the same
            creates = isinstance(wanted, Target) and wanted.operation.creates
            error = errors.BookingUnknown() if creates else errors.Unavailable(0)
            self.observers.note(call, name, error.status, error, began)
            raise
        finally:
            connection.call, connection.had_key = None, call.key is not None
            self.running -= 1
            if not self.running:
                self._idle.set()
        self.observers.note(call, name, answer.status, error, began)
        return answer

    async def _hold_back(self, call: Call) -> float:
        """Wait, where many come from the same address without a key that counts; the seconds.

        However often they come, they get their answer. Calls with a good key never wait here.
        """
        if call.key is not None:
            return 0.0
        seconds = self._buckets.take(call.address)
        if seconds > 0:
            call.waits_since = time.monotonic()
            await asyncio.sleep(seconds)
            call.waits_since = None
        return seconds

    def _call(
        self,
        request: web.BaseRequest,
        target: Target | GatewayError,
        name: str,
        query: str,
        address: str,
    ) -> Call:
        headers = request.headers
        return Call(
            at=self.now(),
            request_id=self.request_id(headers.get(X_REQUEST_ID)),
            method=request.method,
            target=target,
            secrets=headers.getall(X_API_KEY, ()),
            query=query,
            upload=Body(request, self.body_timeout),
            asking=self.traces.begin(name, headers.getall(TRACEPARENT, ())),
            address=address,
        )

    async def _document(self, request: web.BaseRequest, call: Call, path: str) -> RawResponse:
        if path not in NAMES:
            raise errors.NotFound
        call.key = self.documents.key(call.secrets, call.address)
        if call.method not in {"GET", "HEAD"}:
            raise errors.MethodNotAllowed("GET, HEAD")
        content = await self.documents.get(path, call.query, call.key)
        packed = accepts_gzip(request.headers.getall(ACCEPT_ENCODING, ()))
        close = self._is_last(request, call)
        return self.replies.content(call.request_id, content, packed=packed, close=close)

    def _is_last(self, request: web.BaseRequest, call: Call) -> bool:
        """Whether the connection ends with this answer.

        Where a key asks for too much, who has sent more at once gets no turn for each.
        """
        connection: Connection = request.protocol  # type: ignore[assignment]
        crowded = connection.has_more and self.pipeline.crowded(call.key)
        return crowded or self._leaving or must_close(request)

    def _refusal(self, request: web.BaseRequest, call: Call, error: GatewayError) -> RawResponse:
        close = isinstance(error, _CLOSING) or request.method == "CONNECT"
        # who was not told to continue may send the body or not: nobody can tell what comes next
        waits = EXPECT in request.headers and not request.content.at_eof()
        close = close or waits or self._is_last(request, call)
        return self.replies.error(
            call.request_id, error, quota=call.quota, replayed=call.replayed, close=close
        )
