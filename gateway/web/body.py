"""Reads a body: only when the call has passed the limit, only JSON, never too much or too long."""

import asyncio

from aiohttp import web

from gateway.contract.errors import BodyTooLarge, BodyTooSlow, NotARequest, NotJson

LARGEST = 64 * 1024
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


async def read_body(request: web.BaseRequest, seconds: float) -> bytes:
    """The bytes; NotJson, BodyTooLarge or BodyTooSlow, NotARequest where it breaks off."""
    check_type(request)
    if (request.content_length or 0) > LARGEST:
        raise BodyTooLarge
    if request.headers.get("Expect") is not None and request.version.minor > 0:
        transport = request.transport
        if transport is not None:
            transport.write(_CONTINUE)
    try:
        async with asyncio.timeout(seconds):
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
    """NotJson unless the headers say plain JSON."""
    kinds = request.headers.getall("Content-Type", [])
    codings = request.headers.getall("Content-Encoding", [])
    kind = kinds[0].partition(";")[0].strip().lower() if len(kinds) == 1 else ""
    if kind != "application/json" or any(each.strip().lower() != "identity" for each in codings):
        raise NotJson
