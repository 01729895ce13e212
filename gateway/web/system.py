"""The operations listener: is it alive, is it ready and if not why, and the figures."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from aiohttp import web
from multidict import MultiMapping

from gateway.contract.errors import (
    GatewayError,
    InvalidField,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
)
from gateway.observe.logs import Events
from gateway.observe.metrics import CONTENT_TYPE
from gateway.purposes import Purpose
from gateway.web.documents import JSON
from gateway.web.entrance import entrance
from gateway.web.hosts import check_addressed, is_own
from gateway.web.readiness import Readiness
from gateway.web.replies import SERVER
from gateway.web.server import Listener, refusal_of

Query = MultiMapping[str]
# All figures, as Prometheus reads them.
Figures = Callable[[], Awaitable[bytes]]
_OTHER_HOST = b'{"message":"Not served under this host name: list it in operations_hosts"}'
# Those who watch the gateway are few.
CONNECTIONS = 50


def system_server(
    readiness: Readiness, figures: Figures, events: Events, hosts: frozenset[str] = frozenset()
) -> Listener:
    """/healthz, /readyz and /metrics, and nothing of aiohttp's own.

    `hosts` are the names under which it is asked, beside localhost and addresses.
    """

    async def healthz(_: Query) -> web.Response:
        return _response(200, b'{"alive":true}')

    async def readyz(query: Query) -> web.Response:
        try:
            purpose = _purpose(query)
        except InvalidRequest as error:
            return _refusal(error)
        report = await readiness.report(purpose)
        return _response(200 if report["ready"] else 503, orjson.dumps(report))

    async def metrics(_: Query) -> web.Response:
        await readiness.report()
        return _response(200, await figures(), CONTENT_TYPE)

    def failed(error: BaseException) -> None:
        events.fault("the operations listener failed", error)

    pages = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics}
    return _listener(pages, failed, hosts)


def _purpose(query: Query) -> Purpose | None:
    """What it is to be ready for; None for all. InvalidRequest."""
    if not query:
        return None
    known = [each.value for each in Purpose]
    given = [*query.items()]
    if len(given) != 1 or given[0] not in {("for", each) for each in known}:
        raise InvalidRequest(
            InvalidField("query", f"must be for={' or for='.join(known)}, or none")
        )
    return Purpose(given[0][1])


def _listener(
    pages: Mapping[str, Callable[[Query], Awaitable[web.Response]]],
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
        return await page(request.query)

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
