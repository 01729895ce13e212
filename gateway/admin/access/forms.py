"""What was posted: read whole and in time, and only as the panel's own pages send it."""

import asyncio
from typing import Any

from aiohttp import web
from multidict import MultiDictProxy

# No page sends files, or any letters but those of UTF-8.
KIND, LETTERS = "application/x-www-form-urlencoded", "utf-8"


async def read_form(request: web.Request, seconds: float) -> MultiDictProxy[Any]:
    """The form, which has so many seconds to arrive.

    HTTPRequestTimeout, HTTPRequestEntityTooLarge; HTTPBadRequest for what is none of ours.
    """
    charset = (request.charset or LETTERS).lower()
    if request.can_read_body and (request.content_type, charset) != (KIND, LETTERS):
        raise web.HTTPBadRequest
    try:
        async with asyncio.timeout(seconds):
            # nosemgrep: bodies-are-read-to-a-bound - the application's client_max_size is one
            form = await request.post()
    except TimeoutError as error:
        raise web.HTTPRequestTimeout from error
    except (UnicodeDecodeError, web.RequestPayloadError, ConnectionError) as error:
        raise web.HTTPBadRequest from error
    if any("\0" in name or "\0" in str(value) for name, value in form.items()):
        # which no database takes for a letter
        raise web.HTTPBadRequest
    return form
