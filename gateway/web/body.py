"""Reads what a creation sends: after the limit, only JSON, never too much or too long."""

import asyncio
from collections.abc import Sequence

from aiohttp import web
from multidict import istr

from gateway.contract.errors import (
    BodyTooLarge,
    BodyTooSlow,
    Encoded,
    NotARequest,
    NotJson,
    NotUtf8,
)

EXPECT = istr("Expect")
LARGEST = 64 * 1024
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Body:
    """The upload of one request; `seconds` is how long its body may take to arrive."""

    __slots__ = ("_request", "_seconds")

    def __init__(self, request: web.BaseRequest, seconds: float) -> None:
        self._request = request
        self._seconds = seconds

    def size(self) -> int:
        announced = self._request.content_length
        return LARGEST if announced is None else min(announced, LARGEST)

    def idempotency_keys(self) -> Sequence[str]:
        return self._request.headers.getall("Idempotency-Key", ())

    async def read(self) -> bytes:
        request = self._request
        check_type(request)
        if (request.content_length or 0) > LARGEST:
            raise BodyTooLarge
        if EXPECT in request.headers and request.version.minor > 0:
            transport = request.transport
            if transport is not None:
                transport.write(_CONTINUE)
        try:
            async with asyncio.timeout(self._seconds):
                return await _read(request)
        except TimeoutError as error:
            raise BodyTooSlow from error
        except (web.RequestPayloadError, ConnectionError) as error:
            raise NotARequest from error


async def _read(request: web.BaseRequest) -> bytes:
    body = bytearray()
    while chunk := await request.content.readany():
        body += chunk
        if len(body) > LARGEST:
            raise BodyTooLarge
    return bytes(body)


def check_type(request: web.BaseRequest) -> None:
    """NotJson unless the headers say plain JSON in UTF-8."""
    kinds = request.headers.getall("Content-Type", [])
    codings = request.headers.getall("Content-Encoding", [])
    kind, *parameters = kinds[0].lower().split(";") if len(kinds) == 1 else [""]
    if kind.strip() != "application/json":
        raise NotJson
    pairs = (each.partition("=") for each in parameters)
    charsets = [value.strip(' \t"') for name, _, value in pairs if name.strip() == "charset"]
    if any(each not in {"utf-8", "utf8"} for each in charsets):
        raise NotUtf8
    if any(each.strip().lower() != "identity" for each in codings):
        raise Encoded
