"""Signing in and out. A failed attempt counts before the password is looked at."""

import secrets
from dataclasses import replace

from aiohttp import web

from gateway.admin.access.entering import (
    Attempt,
    address_of,
    attempt,
    begin_session,
    known_device,
    remember_device,
)
from gateway.admin.access.guard import CHOOSE, SIGN_IN, Refused, is_same
from gateway.admin.access.session import ADMINISTRATOR
from gateway.admin.routes import Page
from gateway.admin.visit import Visit
from gateway.administrators.failures import of_device, of_name
from gateway.administrators.passwords import ALL_TURNS, Busy
from gateway.administrators.roles import Right
from gateway.administrators.store import Kept

FIRST = "/keys"
# A form that was not fetched from here by the same browser does not count.
_ASKED = "clinic-gateway-asked"


async def form(visit: Visit) -> web.Response:
    """The form; who is signed in already goes on."""
    if visit.session.get(ADMINISTRATOR):
        return visit.go(_next(visit.asked("next")))
    return await _shown(visit, wanted=_next(visit.asked("next"), ""))


async def sign_in(visit: Visit) -> web.Response:
    """With a name and a password, or once more."""
    if not is_same(visit.text("asked"), _asked(visit)):
        raise Refused(403, "form")
    name, password = visit.text("name"), str(visit.form.get("password", ""))
    kept = await visit.administration.administrators.find(name)
    try:
        tried, device = await _attempt(visit, name, kept, password)
    except Busy:
        return await _shown(visit, status=503, is_busy=True, wait=ALL_TURNS, name=name)
    if kept is None or not tried.is_right or not await _used_up(visit, kept):
        return await _refused(visit, kept, name, tried.wait)
    await visit.administration.failures.forgive(of_device(device) if device else of_name(name))
    return await _let_in(visit, kept, "known" if device else "new")


async def _attempt(
    visit: Visit, name: str, kept: Kept | None, password: str
) -> tuple[Attempt, str | None]:
    """The attempt, and the known browser that it counts for; None where it is a stranger's; Busy.

    While a known browser's own count has to wait, its attempts are those of a stranger. So whoever
    stole its cookie does not shut out its owner by wrong passwords with it.
    """
    device, pause = known_device(visit, kept), 0
    if device is not None:
        own = await attempt(visit, of_device(device), kept, password, is_known=True)
        if not own.wait:
            return own, device
        pause = own.wait
    tried = await attempt(visit, of_name(name), kept, password, is_known=False)
    return replace(tried, wait=min(tried.wait, pause or tried.wait)), None


async def _refused(visit: Visit, kept: Kept | None, name: str, wait: int) -> web.Response:
    """Once more, or later."""
    if wait:
        return await _shown(visit, status=429, wait=wait, name=name)
    # what is nobody's name may be a password that came into the wrong field
    whose = kept.administrator.name if kept else "-"
    await visit.administration.note(whose, "sign-in refused", address=address_of(visit))
    return await _shown(visit, status=401, is_wrong=True, name=name)


async def _let_in(visit: Visit, kept: Kept, browser: str) -> web.Response:
    """To the page that was wanted, or first to choose a password, and then the browser is known."""
    whose, address = kept.administrator, address_of(visit)
    await visit.administration.note(whose.name, "signed in", address=address, browser=browser)
    await begin_session(visit, whose.id, "" if whose.one_time else kept.password)
    response = visit.go(CHOOSE if whose.one_time else _next(visit.text("next")))
    response.del_cookie(_ASKED)
    if not whose.one_time:
        remember_device(visit, response, whose.id, kept.password)
    return response


async def sign_out(visit: Visit) -> web.Response:
    """The session is over, here and in the store."""
    await visit.administration.note(visit.who.name, "signed out")
    visit.session.invalidate()
    response = visit.go(SIGN_IN)
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


async def _used_up(visit: Visit, kept: Kept) -> bool:
    """Whether the password may be used: one that counts once has been used from now on."""
    if not kept.administrator.one_time:
        return True
    return await visit.administration.administrators.use_up(kept.administrator.id, kept.password)


def _asked(visit: Visit) -> str:
    """What this browser was told with the form; "" where it holds nothing of the kind."""
    asked = visit.request.cookies.get(_ASKED, "")
    return asked if asked.isascii() else ""


def _next(wanted: str, otherwise: str = FIRST) -> str:
    """A page of this panel to go on to; never an address elsewhere."""
    is_ours = wanted.startswith("/") and not wanted.startswith(("//", "/\\"))
    return wanted if is_ours and wanted.isprintable() else otherwise


async def _shown(
    visit: Visit,
    *,
    status: int = 200,
    wanted: str | None = None,
    name: str = "",
    is_wrong: bool = False,
    is_busy: bool = False,
    wait: int = 0,
) -> web.Response:
    asked = _asked(visit) or secrets.token_urlsafe(24)
    is_empty = not await visit.administration.administrators.count()
    response = visit.page(
        "sign-in.html",
        status,
        asked=asked,
        wanted=visit.text("next") if wanted is None else wanted,
        name=name,
        is_wrong=is_wrong,
        is_busy=is_busy,
        wait=wait,
        is_empty=is_empty,
    )
    response.set_cookie(
        _ASKED, asked, httponly=True, samesite="Strict", secure=visit.parts.is_secure, path="/"
    )
    if wait:
        response.headers["Retry-After"] = str(wait)
    return response


async def first(visit: Visit) -> web.Response:
    """The panel's own address."""
    return visit.go(FIRST)


PAGES = (
    Page(method="GET", path="/", view=first, needs=Right.READ),
    Page(method="GET", path=SIGN_IN, view=form, needs=None),
    Page(method="POST", path=SIGN_IN, view=sign_in, needs=None),
    Page(method="POST", path="/sign-out", view=sign_out, needs=Right.READ, while_choosing=True),
)
