"""Turns answers into bytes: sets every header, and gives every error its one shape."""

import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from types import MappingProxyType

import orjson
from aiohttp import web

from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.errors import GatewayError
from gateway.contract.operations import BASE_PATH
from gateway.limits.base import Quota
from gateway.pipeline.call import Call, Reply
from gateway.web.connection import Connection
from gateway.web.documents import JSON, Content

SERVER = "clinic-gateway"
_ALWAYS = f"Server: {SERVER}\r\nX-Content-Type-Options: nosniff\r\n"
_FIXED = f"{_ALWAYS}Cache-Control: private, no-store\r\nVary: X-API-Key\r\n"
_JSON_STATUS = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n{_FIXED}Content-Type: {JSON}\r\n"
    "Content-Length: "
    for status in HTTPStatus
}
_LEVEL = {level: f"X-Access-Level: {level.value}\r\n" for level in LEVELS}
_REPLAYED = "Idempotent-Replayed: true\r\n"


class RawResponse(web.StreamResponse):
    """A whole answer, with its head as text: the base class would build it from a dictionary."""

    def __init__(self, status: int, head: str, body: bytes, *, close: bool = False) -> None:
        self._status = status
        self._head = head
        self._content = body
        self.closes = close

    def encoded(self, more: str = "", *, is_head: bool = False) -> bytes:
        """Returns the bytes to send, with `more` headers; only the head where `is_head`."""
        head = f"{self._head}{more}\r\n".encode("ascii")
        return head if is_head else head + self._content

    async def prepare(self, request: web.BaseRequest) -> None:
        self._req = request
        self._keep_alive = request.keep_alive and not self.closes

    async def write_eof(self, data: bytes = b"") -> None:
        request = self._req
        if request is None:
            return
        self._req = None
        transport = request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the caller is gone")
        more = ""
        if not self._keep_alive:
            more = "Connection: close\r\n"
        elif request.version.minor == 0:
            more = "Connection: keep-alive\r\n"
        transport.write(self.encoded(more, is_head=request.method == "HEAD"))
        connection: Connection = request.protocol  # type: ignore[assignment] # all are such
        if connection.unsent_bytes():
            await connection.sent()
        connection.answers += 1
        if connection.is_refused and not connection.has_more and transport.can_write_eof():
            transport.write_eof()


@lru_cache(maxsize=1)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)


class Replies:
    """Renders answers, each with the headers in `more`; `public_url` ends before /api/v1."""

    def __init__(self, public_url: str, more: Mapping[str, str] = MappingProxyType({})) -> None:
        self._base = public_url + BASE_PATH
        self._more = _lines(more)

    def reply(self, call: Call, reply: Reply, *, close: bool = False) -> RawResponse:
        lines = reply.lines
        if not lines:
            lines = reply.lines = self._lines_of(reply, call.level)
        if call.replayed:
            lines += _REPLAYED
        head = self._head(lines, call.request_id, call.quota)
        return RawResponse(reply.status, head, reply.body, close=close)

    def _lines_of(self, reply: Reply, level: AccessLevel | None) -> str:
        """Returns the lines of a head that depend on the reply alone."""
        lines = f"{_JSON_STATUS[reply.status]}{len(reply.body)}\r\n"
        if level is not None:
            lines += _LEVEL[level]
        if reply.skipped:
            lines += f"X-Skipped-Records: {reply.skipped}\r\n"
        if reply.next:
            lines += f'Link: <{self._base}{reply.next}>; rel="next"\r\n'
        if reply.location:
            lines += f"Location: {self._base}{reply.location}\r\n"
        return lines

    def error(
        self, request_id: str, error: GatewayError, call: Call | None = None, *, close: bool = False
    ) -> RawResponse:
        """Returns the answer for an error, also of a request that became no call."""
        body = orjson.dumps(error.members())
        extra = _lines(error.headers)
        if call is not None and call.replayed:
            extra += _REPLAYED
        quota = None if call is None else call.quota
        head = self._head(f"{_JSON_STATUS[error.status]}{len(body)}\r\n", request_id, quota)
        return RawResponse(error.status, head + extra, body, close=close)

    def content(
        self, request_id: str, content: Content, *, packed: bool = False, close: bool = False
    ) -> RawResponse:
        """Returns the answer with a page or file; packed where `packed` and its bytes are there."""
        body, headers = content.body, {**content.headers, "Vary": "X-API-Key"}
        if content.packed is not None:
            headers["Vary"] += ", Accept-Encoding"
            if packed:
                body = content.packed
                headers["Content-Encoding"] = "gzip"
        headers["Cache-Control"] = content.cache
        start = (
            f"HTTP/1.1 200 OK\r\n{_ALWAYS}Content-Type: {content.kind}\r\n"
            f"Content-Length: {len(body)}\r\n"
        )
        head = self._head(start, request_id, None) + _lines(headers)
        return RawResponse(200, head, body, close=close)

    def _head(self, start: str, request_id: str, quota: Quota | None) -> str:
        head = (
            f"{start}Date: {_date(int(time.time()))}\r\n{self._more}X-Request-Id: {request_id}\r\n"
        )
        if quota is None:
            return head
        return (
            f"{head}X-RateLimit-Limit: {quota.limit}\r\n"
            f"X-RateLimit-Remaining: {quota.remaining}\r\n"
            f"X-RateLimit-Reset: {quota.reset}\r\n"
        )


def _lines(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())
