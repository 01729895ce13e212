"""Signing in and out. A failed attempt counts before the password is looked at."""

import secrets

from aiohttp import web

from gateway.admin.access.entering import address_of, begin_session, forgive, wait_of
from gateway.admin.access.guard import CHOOSE, SIGN_IN, Refused, is_same
from gateway.admin.access.session import ADMINISTRATOR
from gateway.admin.routes import Page
from gateway.admin.visit import Visit
from gateway.administrators.passwords import LONGEST
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
    administration = visit.administration
    name, password = visit.text("name"), str(visit.form.get("password", ""))
    if wait := await wait_of(visit, name):
        return await _shown(visit, status=429, wait=wait, name=name)
    kept = await administration.administrators.find(name)
    is_right = await administration.passwords.is_right(
        kept.password if kept else "", password[: LONGEST + 1]
    )
    if kept is None or not is_right or not await _used_up(visit, kept):
        # what is nobody's name may be a password that came into the wrong field
        whose = kept.administrator.name if kept else "-"
        await administration.note(whose, "sign-in refused", address=address_of(visit))
        return await _shown(visit, status=401, is_wrong=True, name=name)
    await forgive(visit, name)
    await administration.note(kept.administrator.name, "signed in", address=address_of(visit))
    password_now = "" if kept.administrator.one_time else kept.password
    await begin_session(visit, kept.administrator.id, password_now)
    wanted = _next(visit.text("next"))
    response = visit.go(CHOOSE if kept.administrator.one_time else wanted)
    response.del_cookie(_ASKED)
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
