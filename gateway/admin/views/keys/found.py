"""The key that a page is about."""

from aiohttp import web

from gateway.admin.visit import Visit
from gateway.keys.base import KnownSecret, OddKey, UnknownKey
from gateway.keys.key import Key
from gateway.keys.store import KeyStore


async def found_key(visit: Visit) -> tuple[Key, tuple[KnownSecret, ...]]:
    """The one that the address names, with what may be told of its secrets; else 404."""
    try:
        return await KeyStore(visit.parts.store).show(visit.request.match_info["id"])
    except (UnknownKey, OddKey) as error:
        raise web.HTTPNotFound from error
