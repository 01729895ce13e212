"""Checks each request to the panel: its address, its session, the user's right, and its form.

A form is accepted only where the browser says that a page of this panel sent it, and where it holds
the token of the session.
"""

import asyncio
from collections.abc import Awaitable, Callable
from hmac import compare_digest
from typing import Any
from urllib.parse import quote

from aiohttp import web
from aiohttp_session import Session, get_session
from multidict import MultiDictProxy

from adapters.base import AdapterError
from gateway.admin.visit import CSRF, PANEL, PanelPage, Visit
from gateway.administrators.administrator import NoSuchAdministrator, PasswordChanged
from gateway.audit.buffer import Unwritten
from gateway.contract.errors import GatewayError, NotARequest
from gateway.inquiries.deeds import Unended
from gateway.keys.store import OddKey, RevokedKey, UnknownKey
from gateway.observe.lines import printable
from gateway.store import StoreError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
# No page sends files, or text in another encoding.
KIND, LETTERS = "application/x-www-form-urlencoded", "utf-8"
SIGN_IN, CHOOSE = "/sign-in", "/account"
# Only files that this panel serves; style sheets may hold images as data.
POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none';"
    " form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Server": "clinic-gateway",
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # a browser that hides where a form was sent from hides its origin too
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Refusal(Exception):
    """The request is not answered as asked; `reason` names the text that says why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def answer(page: PanelPage) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        visit = Visit(request, await get_session(request))
        if page.needs is not None:
            if visit.signed_in is None:
                return _to_sign_in(visit)
            if visit.who.one_time and not page.while_choosing:
                return visit.go(CHOOSE)
            if not visit.may(page.needs):
                raise Refusal(403, "right")
        if page.method == "POST":
            _check_origin(request)
            visit.form = await _read_form(request)
            csrf = visit.form.get("csrf")
            if page.needs is not None and not is_same(csrf, visit.session.get(CSRF)):
                raise Refusal(403, "form")
        return await page.view(visit)

    return handler


def is_same(given: object, known: object) -> bool:
    """Returns whether a form's value is the known one; False where either is missing or empty."""
    if not isinstance(given, str) or not isinstance(known, str) or not known:
        return False
    return compare_digest(printable(given).encode(), printable(known).encode())


def _to_sign_in(visit: Visit) -> web.Response:
    # an open page that asks for a part is sent there as a whole
    if visit.is_part:
        return web.Response(status=401, headers={"HX-Redirect": SIGN_IN})
    request = visit.request
    path = request.path_qs if request.method == "GET" and request.path != "/" else ""
    return visit.go(SIGN_IN + (f"?next={quote(path, safe='')}" if path else ""))


async def _read_form(request: web.Request) -> MultiDictProxy[Any]:
    """Returns the posted form, read whole and in time.

    Raises HTTPRequestTimeout, HTTPRequestEntityTooLarge, or HTTPBadRequest where no page of the
    panel would send it so.
    """
    charset = (request.charset or LETTERS).lower()
    if request.can_read_body and (request.content_type, charset) != (KIND, LETTERS):
        raise web.HTTPBadRequest
    try:
        async with asyncio.timeout(request.app[PANEL].settings.body_timeout):
            # nosemgrep: bodies-are-read-to-a-bound - the application's client_max_size is one
            form = await request.post()
    except TimeoutError as error:
        raise web.HTTPRequestTimeout from error
    except (UnicodeDecodeError, web.RequestPayloadError, ConnectionError) as error:
        raise web.HTTPBadRequest from error
    if any("\0" in name or "\0" in str(value) for name, value in form.items()):
        # no database takes that character
        raise web.HTTPBadRequest
    return form


def _check_origin(request: web.Request) -> None:
    """Raises Refusal where the form comes from a page elsewhere."""
    origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
    is_ours = origin is None or origin.lower() in request.app[PANEL].origins
    if not is_ours or site not in {None, "same-origin"} or (origin is None and site is None):
        raise Refusal(403, "origin")


def _check_place(request: web.Request) -> None:
    """Raises Refusal for a request that is not addressed to this panel, or comes past the proxy.

    A page elsewhere whose name was made to lead here (DNS rebinding) has another host. Raises
    HTTPNotFound for a NUL, which no database takes.
    """
    panel, target = request.app[PANEL], request.raw_path.lower()
    if panel.only_through_proxies and not panel.trusts(request.remote or ""):
        raise Refusal(403, "proxy")
    hosts = {origin.partition("://")[2] for origin in panel.origins}
    host = request.headers.get("Host", "").lower()
    is_ours = host in hosts or host.removesuffix(":443") in hosts
    # a whole address in the target (RFC 9112 3.2.2) outweighs the Host
    is_path = target[:1] == "/" or any(target.startswith(f"{own}/") for own in panel.origins)
    if not (is_ours and is_path):
        raise Refusal(421, "host")
    if "%00" in target:
        raise web.HTTPNotFound


@web.middleware
async def always(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Adds the headers to every answer, and turns every failure into a page in plain words."""
    try:
        _check_place(request)
        response = await handler(request)
    except Exception as error:  # noqa: BLE001 - the reader gets a page, and the log the fault
        response = await _failure(request, error)
    response.headers.update({**HEADERS, **request.app[PANEL].more_headers})
    response.headers.setdefault("Cache-Control", "no-store")
    return response


_REASONS = {400: "unread", 404: "missing", 405: "method", 408: "unread", 413: "large"}
# The first that fits counts.
_FAILURES: tuple[tuple[type[Exception] | tuple[type[Exception], ...], int, str], ...] = (
    (StoreError, 503, "store"),
    (NotARequest, 400, "proxy"),  # it does not tell who calls
    ((UnknownKey, OddKey, RevokedKey, NoSuchAdministrator), 404, "missing"),
    (AdapterError, 502, "practice"),
    (PasswordChanged, 403, "form"),
    (Unended, 503, "unended"),
    (Unwritten, 503, "audit"),
    (Exception, 500, "fault"),
)


async def _failure(request: web.Request, error: Exception) -> web.Response:
    """Renders what went wrong and what to do, as a page, or as a line for a part of a page."""
    events = request.app[PANEL].events
    if isinstance(error, Refusal):
        status, reason = error.status, error.reason
    elif isinstance(error, web.HTTPException):
        status, reason = error.status, _REASONS.get(error.status, "other")
    elif isinstance(error, GatewayError) and not isinstance(error, NotARequest):
        status, reason = (502 if error.status < 500 else error.status), "practice"
    else:
        status, reason = next(row[1:] for row in _FAILURES if isinstance(error, row[0]))
    if reason == "store":
        events.report("panel_store_unusable", error)
    elif reason == "fault":
        events.report("panel_failed", error)
    try:
        session = await get_session(request)
    except (StoreError, RuntimeError):
        session = Session(None, data=None, new=True)
    visit = Visit(request, session)
    template = "failure-part.html" if visit.is_part else "failure.html"
    response = visit.page(template, status, reason=reason)
    if isinstance(error, web.HTTPException) and (allow := error.headers.get("Allow")):
        response.headers["Allow"] = allow
    return response
