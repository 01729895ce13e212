"""The operations listener: is it alive, is it ready and if not why, and the figures."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from aiohttp import web

from gateway.observe.metrics import CONTENT_TYPE, Metrics

# Raises where the part is not ready; what it returns is shown.
Probe = Callable[[], Awaitable[Mapping[str, Any]]]
REMEMBERED = 1.0
PATIENCE = 2.0


class Readiness:
    """Asks each part, at most once a second, and remembers that the end has begun."""

    def __init__(self, probes: Mapping[str, Probe]) -> None:
        self._probes = probes
        self._asked = -REMEMBERED
        self._parts: dict[str, dict[str, Any]] = {}
        self._lock = asyncio.Lock()
        self.stopping = False

    async def report(self) -> dict[str, Any]:
        """`ready`, and for each part whether it is and if not why."""
        async with self._lock:
            if time.monotonic() - self._asked >= REMEMBERED:
                found = await asyncio.gather(*map(self._ask, self._probes.values()))
                self._parts = dict(zip(self._probes, found, strict=True))
                self._asked = time.monotonic()
        ready = not self.stopping and all(part["ready"] for part in self._parts.values())
        stopping = {"reason": "the gateway is shutting down"} if self.stopping else {}
        return {"ready": ready, **stopping, "parts": self._parts}

    async def _ask(self, probe: Probe) -> dict[str, Any]:
        try:
            async with asyncio.timeout(PATIENCE):
                return {"ready": True, **await probe()}
        except TimeoutError:
            return {"ready": False, "reason": "no answer in time"}
        except Exception as error:  # noqa: BLE001 - whatever it is, the part is not ready
            return {"ready": False, "reason": str(error) or type(error).__name__}


def system_app(readiness: Readiness, metrics: Metrics) -> web.Application:
    """/healthz, /readyz and /metrics."""

    async def healthz(_: web.Request) -> web.Response:
        return web.json_response({"alive": True})

    async def readyz(_: web.Request) -> web.Response:
        report = await readiness.report()
        return web.Response(
            status=200 if report["ready"] else 503,
            body=orjson.dumps(report),
            content_type="application/json",
        )

    async def figures(_: web.Request) -> web.Response:
        return web.Response(body=metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    async def elsewhere(_: web.Request) -> web.Response:
        paths = ["/healthz", "/readyz", "/metrics"]
        return web.json_response({"message": "Resource not found", "paths": paths}, status=404)

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", figures)
    app.router.add_route("*", "/{elsewhere:.*}", elsewhere)
    return app
