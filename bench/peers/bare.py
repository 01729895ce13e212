"""The reference: aiohttp on uvloop, a router, and the bytes that a gateway would answer."""

import json
import sys
from importlib import import_module

from aiohttp import web

from bench.peers.backend import CLIENT, clients

OPEN = frozenset(CLIENT) - {"address"}


def filtered(body: bytes) -> bytes:
    """Returns the records without what STANDARD does not open."""
    kept = [{name: each[name] for name in CLIENT if name in OPEN} for each in json.loads(body)]
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()


def app() -> web.Application:
    """Returns the two operations, each with an answer that stands ready."""
    many = filtered(clients(50))
    one = filtered(clients(1))[1:-1]

    async def get_client(request: web.Request) -> web.Response:
        return web.Response(body=one, content_type="application/json")

    async def list_clients(request: web.Request) -> web.Response:
        return web.Response(body=many, content_type="application/json")

    made = web.Application()
    made.router.add_get("/clients/{id}", get_client)
    made.router.add_get("/clients", list_clients)
    return made


if __name__ == "__main__":
    web.run_app(
        app(),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        access_log=None,
        print=None,
        loop=import_module("uvloop").new_event_loop(),
    )
