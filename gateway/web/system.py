"""The operations listener: tells whether the gateway is alive and ready, and its figures."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import orjson
from aiohttp import web

from gateway.background import ended
from gateway.contract import errors
from gateway.events import Events
from gateway.observe.metrics import CONTENT_TYPE, Metrics, Snapshot, exposition
from gateway.purposes import NEEDED_FOR, NotReady, Purpose
from gateway.web.addresses import check_addressed, is_own
from gateway.web.connection_limiter import ConnectionLimiter
from gateway.web.documents import JSON
from gateway.web.replies import SERVER
from gateway.web.server import Listener, refusal_of

# Raises NotReady, or anything else, where the part is not ready; its result is shown.
Probe = Callable[[], Awaitable[Mapping[str, Any]]]
# Returns all figures as they are now.
Figures = Callable[[], Awaitable[Snapshot]]
# Seconds between two questions to a part.
REMEMBERED = 1.0
# Seconds that a part has to answer. After that it is not ready.
PATIENCE = 2.0
# Seconds that a report waits for a part that has answered before; else its last answer counts.
MOMENT = 0.1
# The most connections, for few programs watch a gateway.
CONNECTIONS = 50


class ProbedPart:
    """One part, asked in the background, at most once a second."""

    def __init__(self, name: str, probe: Probe) -> None:
        self.name = name
        self.purposes = NEEDED_FOR[name]
        self.answer: dict[str, Any] | None = None
        self.question: asyncio.Task[None] | None = None
        self._probe = probe
        self._began = self._ended = 0.0

    def ask(self) -> None:
        """Begins a question, unless one is under way or the last answer is fresh."""
        fresh = self.answer is not None and time.monotonic() - self._ended < REMEMBERED
        if self.question is None and not fresh:
            self._began = time.monotonic()
            self.question = asyncio.create_task(self._ask(), name=f"ask {self.name}")

    def status(self) -> dict[str, Any]:
        """Returns its last answer, or a failure where it does not answer in time."""
        late = self.question is not None and time.monotonic() - self._began >= PATIENCE
        if late or self.answer is None:
            return self._failed("no answer in time")
        return self.answer

    async def _ask(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                details = await self._probe()
            self.answer = {"ready": True, "for": self.purposes, **details}
        except TimeoutError:
            self.answer = self._failed("no answer in time")
        except NotReady as error:
            self.answer = self._failed(str(error), error.stops)
        except Exception as error:  # noqa: BLE001 - with any error the part is not ready
            self.answer = self._failed(str(error) or type(error).__name__)
        finally:
            self.question, self._ended = None, time.monotonic()

    def _failed(self, text: str, stops: Iterable[Purpose] | None = None) -> dict[str, Any]:
        reason, *more = text.splitlines()
        further = f" (and {len(more)} more)" if more else ""
        return {
            "ready": False,
            "for": self.purposes,
            "stops": self.purposes if stops is None else tuple(stops),
            "reason": reason + further,
        }


class Readiness:
    """The parts of a gateway, or of one process; `stopping` once its shutdown has begun."""

    def __init__(self, probes: Mapping[str, Probe]) -> None:
        self._parts = [ProbedPart(name, probe) for name, probe in probes.items()]
        self.stopping = False

    @property
    def parts(self) -> dict[str, dict[str, Any]]:
        """The last answer of each part, without those that were never asked."""
        parts = (part for part in self._parts if part.answer or part.question)
        return {part.name: part.status() for part in parts}

    @property
    def ready(self) -> bool:
        """Whether all parts were ready when they were asked last."""
        return not self.stopping and all(part["ready"] for part in self.parts.values())

    async def report(self, purpose: Purpose | None = None) -> dict[str, Any]:
        """Returns whether the gateway is `ready`, and of each part whether it is and if not why.

        For one purpose it asks only the parts that are needed. It takes PATIENCE at most, and
        MOMENT where each part has answered before.
        """
        needed = [part for part in self._parts if purpose is None or purpose in part.purposes]
        for part in needed:
            part.ask()
        if questions := [part.question for part in needed if part.question is not None]:
            is_new = any(part.question and part.answer is None for part in needed)
            await asyncio.wait(questions, timeout=PATIENCE if is_new else MOMENT)
        parts = {part.name: part.status() for part in needed}
        stopped = {kind for part in parts.values() for kind in part.get("stops", ())}
        serves = {kind.value: not self.stopping and kind not in stopped for kind in Purpose}
        reason = {"reason": "the gateway is shutting down"} if self.stopping else {}
        if purpose is not None:
            return {"ready": serves[purpose], "for": purpose, **reason, "parts": parts}
        ready = not self.stopping and all(part["ready"] for part in parts.values())
        return {"ready": ready, **serves, **reason, "parts": parts}

    async def aclose(self) -> None:
        await ended(*(part.question for part in self._parts))


def watch_parts(readiness: Readiness, metrics: Metrics) -> None:
    """Adds to the figures whether each part is ready."""
    metrics.ask_all(
        "gateway_part_ready",
        lambda: {(name,): float(part["ready"]) for name, part in readiness.parts.items()},
    )


def system_server(
    readiness: Readiness, figures: Figures, events: Events, hosts: frozenset[str] = frozenset()
) -> Listener:
    """Returns the listener of /healthz, /readyz and /metrics, under `hosts` and any address."""

    async def answer(request: web.BaseRequest) -> web.Response:
        try:
            check_addressed(request)
            if not is_own(request, hosts):
                text = "Not served under this host name: list it in operations_hosts"
                return _response(421, orjson.dumps({"message": text}))
            return await _answer(request, readiness, figures)
        except errors.GatewayError as error:
            return _refusal(error)

    def refuse(error: BaseException | None, status: int) -> web.Response:
        refusal = refusal_of(error, status)
        if refusal.status >= 500 and error is not None:
            events.report("operations_failed", error)
        response = _refusal(refusal)
        response.force_close()
        return response

    return Listener(answer, refuse, ConnectionLimiter(CONNECTIONS, CONNECTIONS))


async def _answer(request: web.BaseRequest, readiness: Readiness, figures: Figures) -> web.Response:
    path, paths = request.path, ["/healthz", "/readyz", "/metrics"]
    if path not in paths:
        return _refusal(errors.NotFound(), paths=paths)
    if request.method not in {"GET", "HEAD"}:
        raise errors.MethodNotAllowed("GET, HEAD")
    if path == "/healthz":
        return _response(200, b'{"alive":true}')
    if path == "/metrics":
        await readiness.report()
        return _response(200, exposition(await figures()), CONTENT_TYPE)
    # what the gateway must be ready for; None for all
    purpose = None
    if request.query:
        given = [*request.query.items()]
        if len(given) != 1 or given[0] not in {("for", kind.value) for kind in Purpose}:
            must = f"must be for={' or for='.join(Purpose)}, or none"
            raise errors.InvalidRequest(errors.InvalidField("query", must))
        purpose = Purpose(given[0][1])
    report = await readiness.report(purpose)
    return _response(200 if report["ready"] else 503, orjson.dumps(report))


def _refusal(error: errors.GatewayError, **more: Any) -> web.Response:
    response = _response(error.status, orjson.dumps(error.members() | more))
    response.headers.update(error.headers)
    return response


def _response(status: int, body: bytes, kind: str = JSON) -> web.Response:
    headers = {"Server": SERVER, "Content-Type": kind}
    return web.Response(status=status, body=body, headers=headers)
