"""The operations listener: is it alive, is it ready and if not why, and the figures."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from aiohttp import web

from gateway.contract.errors import GatewayError, MethodNotAllowed, NotFound
from gateway.observe.logs import Events
from gateway.observe.metrics import CONTENT_TYPE, Metrics
from gateway.web.documents import JSON
from gateway.web.entrance import entrance
from gateway.web.hosts import check_addressed, is_own
from gateway.web.replies import SERVER
from gateway.web.server import Listener, refusal_of

# Raises where the part is not ready; what it returns is shown.
Probe = Callable[[], Awaitable[Mapping[str, Any]]]
# All figures, as Prometheus reads them.
Figures = Callable[[], Awaitable[bytes]]
REMEMBERED = 1.0
PATIENCE = 2.0
_OTHER_HOST = b'{"message":"Not served under this host name: list it in operations_hosts"}'
# Those who watch the gateway are few.
CONNECTIONS = 50


class Readiness:
    """Asks each part, at most once a second, and remembers that the end has begun."""

    def __init__(self, probes: Mapping[str, Probe]) -> None:
        self._probes = probes
        self._asked = -REMEMBERED
        self.parts: dict[str, dict[str, Any]] = {}
        self._lock = asyncio.Lock()
        self.stopping = False

    @property
    def ready(self) -> bool:
        """As it was found when the parts were asked last."""
        return not self.stopping and all(part["ready"] for part in self.parts.values())

    async def report(self) -> dict[str, Any]:
        """`ready`, and for each part whether it is and if not why."""
        async with self._lock:
            if time.monotonic() - self._asked >= REMEMBERED:
                found = await asyncio.gather(*map(self._ask, self._probes.values()))
                self.parts = dict(zip(self._probes, found, strict=True))
                self._asked = time.monotonic()
        stopping = {"reason": "the gateway is shutting down"} if self.stopping else {}
        return {"ready": self.ready, **stopping, "parts": self.parts}

    async def _ask(self, probe: Probe) -> dict[str, Any]:
        try:
            async with asyncio.timeout(PATIENCE):
                return {"ready": True, **await probe()}
        except TimeoutError:
            return {"ready": False, "reason": "no answer in time"}
        except Exception as error:  # noqa: BLE001 - whatever it is, the part is not ready
            reason, *more = str(error).splitlines() or [type(error).__name__]
            further = f" (and {len(more)} more)" if more else ""
            return {"ready": False, "reason": reason + further}


def watch_readiness(readiness: Readiness, metrics: Metrics) -> None:
    """Tell it among the figures, as it was when it was asked last."""
    metrics.ask("gateway_ready", lambda: float(readiness.ready))
    watch_parts(readiness, metrics)


def watch_parts(readiness: Readiness, metrics: Metrics) -> None:
    """Tell of the parts alone, where they are not a whole gateway's."""

    def parts() -> Mapping[tuple[str, ...], float]:
        return {(name,): float(part["ready"]) for name, part in readiness.parts.items()}

    metrics.ask_all("gateway_part_ready", parts)


def system_server(
    readiness: Readiness, figures: Figures, events: Events, hosts: frozenset[str] = frozenset()
) -> Listener:
    """/healthz, /readyz and /metrics, and nothing of aiohttp's own.

    `hosts` are the names under which it is asked, beside localhost and addresses.
    """

    async def healthz() -> web.Response:
        return _response(200, b'{"alive":true}')

    async def readyz() -> web.Response:
        report = await readiness.report()
        return _response(200 if report["ready"] else 503, orjson.dumps(report))

    async def metrics() -> web.Response:
        await readiness.report()
        return _response(200, await figures(), CONTENT_TYPE)

    def failed(error: BaseException) -> None:
        events.fault("the operations listener failed", error)

    pages = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics}
    return _listener(pages, failed, hosts)


def _listener(
    pages: Mapping[str, Callable[[], Awaitable[web.Response]]],
    failed: Callable[[BaseException], None],
    hosts: frozenset[str],
) -> Listener:
    async def answer(request: web.BaseRequest) -> web.Response:
        try:
            check_addressed(request)
        except GatewayError as error:
            return _refusal(error)
        if not is_own(request, hosts):
            return _response(421, _OTHER_HOST)
        page = pages.get(request.path)
        if page is None:
            return _refusal(NotFound(), paths=list(pages))
        if request.method not in {"GET", "HEAD"}:
            return _refusal(MethodNotAllowed("GET, HEAD"))
        return await page()

    def refuse(error: BaseException | None, status: int) -> web.Response:
        refusal = refusal_of(error, status)
        if refusal.status >= 500 and error is not None:
            failed(error)
        response = _refusal(refusal)
        response.force_close()
        return response

    return Listener(answer, refuse, entrance(CONNECTIONS, CONNECTIONS))


def _refusal(error: GatewayError, **more: Any) -> web.Response:
    response = _response(error.status, orjson.dumps(error.members() | more))
    response.headers.update(error.headers())
    return response


def _response(status: int, body: bytes, kind: str = JSON) -> web.Response:
    headers = {"Server": SERVER, "Content-Type": kind}
    return web.Response(status=status, body=body, headers=headers)
