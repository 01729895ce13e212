"""The files that the panel's pages are made of: each read, and packed, when it is first asked for.

Their addresses hold a digest of what is in them, so that a browser may keep them for good.
"""

import asyncio
import hashlib
import mimetypes
from functools import cache
from importlib.resources import files
from typing import Any

from aiohttp import hdrs, web

from gateway.packing import accepts_gzip, pack

STATIC = "/static/"
_FOLDER = files("gateway.admin").joinpath("static")


@cache
def static(name: str) -> str:
    """The address of a file, which changes with what is in it."""
    return f"{STATIC}{name}?v={hashlib.sha256(_file(name)).hexdigest()[:12]}"


async def serve(request: web.Request) -> web.Response:
    """A file of ours: for good, where it was asked for as it is now."""
    # nosemgrep: nothing-is-taken-from-the-host-header - the path's, and only known names count
    name = request.match_info["name"]
    try:
        body = _file(name)
    except KeyError:
        raise web.HTTPNotFound from None
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    charset = "utf-8" if kind.startswith("text/") else None
    is_lasting = request.path_qs == static(name)
    headers = {
        hdrs.CACHE_CONTROL: "public, max-age=31536000, immutable" if is_lasting else "no-cache",
        hdrs.VARY: hdrs.ACCEPT_ENCODING,
    }
    if accepts_gzip(request.headers.getall(hdrs.ACCEPT_ENCODING, ())):
        # in a thread: the first time that takes as long as many a page
        body = await asyncio.to_thread(_packed, name)
        headers[hdrs.CONTENT_ENCODING] = "gzip"
    return web.Response(body=body, content_type=kind, charset=charset, headers=headers)


@cache
def _names() -> frozenset[str]:
    """Every file that there is: no other path is ever looked at."""
    return frozenset(_below(_FOLDER, ""))


def _below(folder: Any, prefix: str) -> list[str]:
    found = []
    for each in folder.iterdir():
        if each.is_dir():
            found += _below(each, f"{prefix}{each.name}/")
        else:
            found.append(f"{prefix}{each.name}")
    return found


@cache
def _file(name: str) -> bytes:
    """KeyError for a name that no file has."""
    if name not in _names():
        raise KeyError(name)
    return _FOLDER.joinpath(*name.split("/")).read_bytes()


@cache
def _packed(name: str) -> bytes:
    return pack(_file(name))
