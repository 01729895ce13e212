"""Handles requests of the public listener: makes each a call, and the call's reply an answer."""

import asyncio
import os
import re
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, NamedTuple

from aiohttp import HttpVersion11, web
from multidict import MultiDict, istr

from adapters.call_notes import CALL_NOTES
from gateway.assets import accepts_gzip
from gateway.contract import errors
from gateway.contract.errors import GatewayError
from gateway.contract.operations import BASE_PATH, OPERATIONS, Operation
from gateway.keys.secret import FORM
from gateway.observe.traces import Traces
from gateway.pipeline.call import Admitted, Call, Target
from gateway.pipeline.pipeline import Pipeline
from gateway.pipeline.steps import authenticate, digest_of
from gateway.web.addresses import X_FORWARDED_FOR, AddressBuckets, Proxies, check_addressed
from gateway.web.connection import Connection
from gateway.web.documents import NAMES, Documents
from gateway.web.observers import Observers
from gateway.web.plain import Head
from gateway.web.replies import RawResponse, Replies

# `istr` folds the case once, not once for each request.
X_REQUEST_ID = istr("X-Request-Id")
X_API_KEY = istr("X-API-Key")
ACCEPT_ENCODING = istr("Accept-Encoding")
TRACEPARENT = istr("traceparent")
EXPECT = istr("Expect")
TRANSFER_ENCODING = istr("Transfer-Encoding")
UPGRADE = istr("Upgrade")
# The most bytes of a body.
LARGEST = 64 * 1024
# A secret is no request id: it would stand in every log.
_request_id = re.compile(rf"(?!.*{FORM})[A-Za-z0-9._-]{{8,64}}").fullmatch
_VERSIONS = frozenset({(1, 0), (1, 1)})

_BELOW = f"{BASE_PATH}/"
# Paths of reads that are remembered, and the most characters of one.
PATHS, LONGEST_PATH = 4096, 128
# These close the connection: the rest of the request cannot be told from the next one, and where
# there is no room for a call, there is none for its connection.
_CLOSING = (
    errors.NotARequest,
    errors.ExpectationFailed,
    errors.BodyTooLarge,
    errors.BodyTooSlow,
    errors.Crowded,
)


class Routes:
    """The operations by method and path; raises ValueError for an id amid a path or a duplicate.

    Paths are matched as they came, undecoded. A path that is written out wins over one that ends in
    an id. The id itself is not checked here.
    """

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._written: dict[str, dict[str, Operation]] = {}
        self._with_id: dict[str, dict[str, Operation]] = {}
        for operation in operations:
            before, _, last = operation.path.rpartition("/")
            if "{" in before:
                raise ValueError(f"{operation.id}: only the end of a path may be an id")
            if last.startswith("{"):
                methods = self._with_id.setdefault(BASE_PATH + before, {})
            else:
                methods = self._written.setdefault(BASE_PATH + operation.path, {})
            if operation.method in methods:
                raise ValueError(f"{operation.id}: another operation has this path and method")
            methods[operation.method] = operation
            if operation.method == "GET":
                methods["HEAD"] = operation

    def match(self, method: str, path: str) -> Target | GatewayError:
        """Returns the operation with the id of the path, or NotFound or MethodNotAllowed."""
        methods, last = self._written.get(path), ""
        if methods is None:
            before, _, last = path.rpartition("/")
            methods = self._with_id.get(before) if last else None
        if methods is None:
            return errors.NotFound()
        operation = methods.get(method)
        return Target(operation, last) if operation else errors.MethodNotAllowed(", ".join(methods))


def target_of(request: web.BaseRequest) -> tuple[str, str]:
    """Returns the path and the query, both undecoded; of a whole address, only these two parts."""
    raw = request.raw_path
    if not raw.startswith("/"):
        url = request.rel_url
        return url.raw_path, url.raw_query_string
    path, _, query = raw.partition("?")
    return path, query


def _new_ids() -> Iterator[str]:
    """Yields ids of requests; draws random digits for many at a time, since each draw costs."""
    while True:
        digits = os.urandom(16 * 256).hex()
        for start in range(0, len(digits), 32):
            yield digits[start : start + 32]


def refuse_oddities(request: web.BaseRequest) -> None:
    """Raises the error for a request that is refused whatever its key."""
    headers = request.headers
    version = request.version
    if version is not HttpVersion11 and version not in _VERSIONS:
        raise errors.NotARequest
    check_addressed(request)
    if TRANSFER_ENCODING in headers:
        if version.minor == 0:
            raise errors.NotARequest("Transfer-Encoding", "does not exist in HTTP/1.0")
        if [text.strip().lower() for text in headers.getall(TRANSFER_ENCODING)] != ["chunked"]:
            raise errors.NotARequest("Transfer-Encoding", "must be chunked and nothing else")
    if EXPECT in headers and {text.strip().lower() for text in headers.getall(EXPECT)} != {
        "100-continue"
    }:
        raise errors.ExpectationFailed
    if request.method == "CONNECT":
        raise errors.MethodNotAllowed("GET, HEAD, POST")


@dataclass(slots=True, eq=False)
class Body:
    """The upload of one request, whose body may take that many `seconds` to arrive."""

    request: web.BaseRequest
    seconds: float

    def size(self) -> int:
        announced = self.request.content_length
        return LARGEST if announced is None else min(announced, LARGEST)

    def idempotency_keys(self) -> Sequence[str]:
        return self.request.headers.getall("Idempotency-Key", ())

    async def read(self) -> bytes:
        request = self.request
        _check_type(request)
        if (request.content_length or 0) > LARGEST:
            raise errors.BodyTooLarge
        transport = request.transport
        if EXPECT in request.headers and request.version.minor > 0 and transport is not None:
            transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = bytearray()
        try:
            async with asyncio.timeout(self.seconds):
                while chunk := await request.content.readany():
                    body += chunk
                    if len(body) > LARGEST:
                        raise errors.BodyTooLarge
        except TimeoutError as error:
            raise errors.BodyTooSlow from error
        except (web.RequestPayloadError, ConnectionError) as error:
            raise errors.NotARequest from error
        return bytes(body)


class NoBody:
    """The upload of a request without a body."""

    def size(self) -> int:
        return 0

    def idempotency_keys(self) -> Sequence[str]:
        return ()

    async def read(self) -> bytes:
        return b""


NO_BODY = NoBody()


def _check_type(request: web.BaseRequest) -> None:
    """Raises NotJson, NotUtf8 or Encoded unless the headers say plain JSON in UTF-8."""
    kinds = request.headers.getall("Content-Type", [])
    codings = request.headers.getall("Content-Encoding", [])
    kind, *parameters = kinds[0].lower().split(";") if len(kinds) == 1 else [""]
    if kind.strip() != "application/json":
        raise errors.NotJson
    pairs = (parameter.partition("=") for parameter in parameters)
    charsets = [value.strip(' \t"') for name, _, value in pairs if name.strip() == "charset"]
    if any(charset not in {"utf-8", "utf8"} for charset in charsets):
        raise errors.NotUtf8
    if any(coding.strip().lower() != "identity" for coding in codings):
        raise errors.Encoded


class Exchange(NamedTuple):
    """A call on its connection: its name in the logs, when it began, and what refuses it."""

    connection: Connection
    call: Call
    name: str
    began: float
    refuse: Callable[[GatewayError], RawResponse]


@dataclass(kw_only=True, eq=False)
class Front:
    """The handler of every request that could be parsed; `running` is the number of its calls."""

    pipeline: Pipeline
    documents: Documents
    replies: Replies
    observers: Observers
    traces: Traces
    body_timeout: float
    proxies: Proxies
    now: Callable[[], datetime]
    running: int = 0
    leaving: bool = False  # whether each answer is the last of its connection

    def __post_init__(self) -> None:
        self._routes = Routes(OPERATIONS)
        # queries are not remembered: partners search for people by them
        self._read = lru_cache(PATHS)(partial(self._routes.match, "GET"))
        self._buckets = AddressBuckets()
        self._new_ids = _new_ids()
        self._idle = asyncio.Event()

    def request_id(self, given: str | None) -> str:
        """Returns the id that the caller gave where it has the right form, else a new one."""
        return given if given is not None and _request_id(given) else next(self._new_ids)

    async def idle(self, seconds: float) -> bool:
        """Returns whether, within that time, there was a moment without a call."""
        self._idle.clear()
        if self.running:
            try:
                async with asyncio.timeout(seconds):
                    await self._idle.wait()
            except TimeoutError:
                return False
        return True

    async def __call__(self, request: web.BaseRequest) -> RawResponse:
        """Returns the answer, also where the gateway itself fails."""
        began = time.perf_counter()
        path, query = target_of(request)
        target = self._routes.match(request.method, path)
        name = target.operation.id if isinstance(target, Target) else NAMES.get(path, "")
        # the listener makes no other kind; a cast is a call, which costs
        connection: Connection = request.protocol  # type: ignore[assignment]
        call = self._call(request, target, name, query, connection.address)
        exchange = Exchange(connection, call, name, began, partial(self._refusal, request, call))
        return await self._settle(exchange, self._reply(request, call, path))

    async def _reply(self, request: web.BaseRequest, call: Call, path: str) -> RawResponse:
        refuse_oddities(request)
        connection: Connection = request.protocol  # type: ignore[assignment]
        if connection.is_proxy:
            call.address = self.proxies.caller(call.address, request.headers)
        if (not path.startswith(_BELOW) or path in NAMES) and path != BASE_PATH:
            return await self._document(request, call, path)
        reply = await self.pipeline.run(call)
        target = call.target
        if isinstance(target, Target) and target.operation.creates:
            # a booking is answered only once the audit has it
            await self.observers.keep(call, target.operation.id)
        # asked only now: the shutdown may have begun meanwhile
        return self.replies.reply(call, reply, close=self._is_last(request, call))

    def take(
        self, connection: Connection, head: Head, raw: str
    ) -> RawResponse | Coroutine[Any, Any, RawResponse] | None:
        """Returns the answer to a plain request for that target, or what makes it.

        Returns None, with nothing done, for what is no read of an operation, for a call that is
        refused or has to wait, and while the shutdown goes on: these take the road of all others.
        """
        began = time.perf_counter()
        path, _, query = raw.partition("?")
        is_long = len(path) > LONGEST_PATH
        target = self._routes.match("GET", path) if is_long else self._read(path)
        if not isinstance(target, Target) or self.leaving:
            return None
        name = target.operation.id
        given = head.traceparent
        call = Call(
            at=self.now(),
            request_id=self.request_id(head.request_id),
            method="GET",
            target=target,
            digest=head.digest,
            query=query,
            upload=NO_BODY,
            asking=self.traces.begin(name, () if given is None else (given,)),
            address=connection.address,
        )
        reply = None
        try:
            if connection.is_proxy:
                call.address = self._caller(call.address, head.forwarded)
            admitted = self.pipeline.admit(call)
            if admitted is not None:
                reply = self.pipeline.remembered(admitted)
        except Exception:  # noqa: BLE001 - a refusal, or a fault of ours, which that road answers
            return None
        if admitted is None:
            return None
        if reply is None:
            exchange = Exchange(
                connection, call, name, began, partial(self._plain_refusal, connection, call)
            )
            return self._settle(exchange, self._plain_reply(connection, admitted))
        answer = self.replies.reply(call, reply, close=self._is_crowded(connection, call))
        connection.had_key = True
        self.observers.note(call, name, answer.status, None, began)
        return answer

    def _caller(self, peer: str, forwarded: str | None) -> str:
        """Returns the address of the caller; raises NotARequest as `Proxies.caller` does."""
        if forwarded is None:
            return peer
        return self.proxies.caller(peer, MultiDict({X_FORWARDED_FOR: forwarded}))

    async def _plain_reply(self, connection: Connection, admitted: Admitted) -> RawResponse:
        reply = await self.pipeline.answer(admitted)
        call = admitted.call
        close = self.leaving or self._is_crowded(connection, call)
        return self.replies.reply(call, reply, close=close)

    def _plain_refusal(
        self, connection: Connection, call: Call, error: GatewayError
    ) -> RawResponse:
        crowded = self._is_crowded(connection, call)
        close = isinstance(error, _CLOSING) or self.leaving or crowded
        return self.replies.error(call.request_id, error, call, close=close)

    async def _settle(
        self, exchange: Exchange, making: Coroutine[Any, Any, RawResponse]
    ) -> RawResponse:
        """Returns the answer that is made, or the one that refuses the call, and notes the call."""
        connection, call, name, began, refuse = exchange
        CALL_NOTES.set(call.asking)
        error: GatewayError | None = None
        self.running += 1
        connection.call = call
        try:
            answer = await making
            if call.key is None:
                began += await self._hold_back(call)
        except GatewayError as refused:
            error = refused
            began += await self._hold_back(call)
            answer = refuse(refused)
        except Exception as fault:  # noqa: BLE001 - a fault of ours is a 500, never a traceback
            error = errors.InternalError()
            error.__cause__ = fault
            answer = refuse(error)
        except asyncio.CancelledError:  # cut off at the end; a booking may still be made
            target = call.target
            creates = isinstance(target, Target) and target.operation.creates
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
        """Waits where many calls without a valid key come from one address; returns the seconds.

        Each gets its answer, however many they are. Calls with a valid key never wait here.
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
            digest=digest_of(headers.getall(X_API_KEY, ())),
            query=query,
            upload=Body(request, self.body_timeout),
            asking=self.traces.begin(name, headers.getall(TRACEPARENT, ())),
            address=address,
        )

    async def _document(self, request: web.BaseRequest, call: Call, path: str) -> RawResponse:
        if path not in NAMES:
            raise errors.NotFound
        if call.digest is not None:
            # who shows a key gets its view
            keys, now = self.pipeline.keys, self.now()
            call.key = authenticate(call.digest, call.address, keys, now, settled=True)
        if call.method not in {"GET", "HEAD"}:
            raise errors.MethodNotAllowed("GET, HEAD")
        content = await self.documents.get(path, call.query, call.key)
        packed = accepts_gzip(request.headers.getall(ACCEPT_ENCODING, ()))
        close = self._is_last(request, call)
        return self.replies.content(call.request_id, content, packed=packed, close=close)

    def _is_last(self, request: web.BaseRequest, call: Call) -> bool:
        """Returns whether the connection ends with this answer.

        It does for a key with too many calls at once, where further requests wait behind this one.
        """
        connection: Connection = request.protocol  # type: ignore[assignment]
        crowded = self._is_crowded(connection, call)
        # the parser would take the trailers of a chunked body for headers of the next request
        is_odd = UPGRADE in request.headers or TRANSFER_ENCODING in request.headers
        return crowded or self.leaving or is_odd

    def _is_crowded(self, connection: Connection, call: Call) -> bool:
        return connection.has_more and self.pipeline.crowded(call.key)

    def _refusal(self, request: web.BaseRequest, call: Call, error: GatewayError) -> RawResponse:
        close = isinstance(error, _CLOSING) or request.method == "CONNECT"
        # a caller who was not told to continue may send the body or not: what comes next is unclear
        waits = EXPECT in request.headers and not request.content.at_eof()
        close = close or waits or self._is_last(request, call)
        return self.replies.error(call.request_id, error, call, close=close)
