"""Signing in and out, and one's own account: another password, and where one is signed in.

A failed attempt counts before the password is looked at.
"""

import secrets
from math import ceil

from aiohttp import web
from aiohttp_session import new_session

from gateway.admin.guard import CHOOSE, SIGN_IN, Refusal, is_same
from gateway.admin.visit import ADMINISTRATOR, CSRF, PROVED, SIGNED_IN, Visit, get, post
from gateway.administrators import administrator, passwords
from gateway.administrators.administrator import Credential, Right

FIRST = "/keys"
# A form that was not fetched from here by the same browser does not count.
_ASKED = "clinic-gateway-asked"


async def _attempt(
    visit: Visit, subject: str, kept: Credential | None, password: str, *, is_known: bool
) -> tuple[bool, int]:
    """Returns whether a password is right; and the seconds to wait for a look, else 0.

    The attempt counts for that subject until it is forgiven; TooManyWaiting. A one-time password
    is beyond guessing: it is looked at first, without a turn or a pause, so that whoever is handed
    one comes in while strangers guess at the name. That look is the same for every name; during a
    pause there is no other.
    """
    known, password = kept.password if kept else "", password[: passwords.LONGEST + 1]
    if passwords.is_one_time(known, password):
        return True, 0
    async with visit.panel.passwords.turn(is_known=is_known):
        if pause := await visit.panel.attempts.try_now(subject, visit.now):
            return False, ceil(pause.total_seconds())
        return await visit.panel.passwords.is_right(known, password), 0


async def _enter(
    visit: Visit, path: str, said: str, administrator_id: str, password: str
) -> web.Response:
    """Goes there in a session of its own, if `password` is still what is kept of theirs then.

    Whatever the browser held before means nothing from now on. With a password, which is not "",
    the browser becomes known, by another token than before.
    """
    before = visit.session.identity
    if before is not None:
        await visit.panel.sessions.end(before)
    visit.session = await new_session(visit.request)
    visit.session[ADMINISTRATOR] = administrator_id
    visit.session[CSRF] = secrets.token_urlsafe(24)
    visit.request[PROVED] = password
    response = visit.go(path, said)
    if password:
        token = administrator.device_token(administrator_id, password, visit.now)
        lasts = int(administrator.DEVICE_LASTS.total_seconds())
        visit.panel.set_cookie(response, _device_cookie(visit, administrator_id), token, lasts)
    return response


def _device_cookie(visit: Visit, administrator_id: str) -> str:
    """One for each administrator: several may share a browser."""
    prefix = "__Host-" if visit.panel.is_secure else ""
    return f"{prefix}clinic-gateway-device-{administrator_id}"


@get(SIGN_IN, None)
async def _form(visit: Visit) -> web.Response:
    """The form; who is signed in already goes on."""
    if visit.session.get(ADMINISTRATOR):
        return visit.go(_next(visit.asked("next")))
    return await _page(visit)


@post(SIGN_IN, None)
async def _sign_in(visit: Visit) -> web.Response:
    if not is_same(visit.text("asked"), _asked(visit)):
        raise Refusal(403, "form")
    name, password, panel = visit.text("name"), str(visit.form.get("password", "")), visit.panel
    kept = await panel.administrators.find(name)
    try:
        is_right, wait, device = await _try(visit, name, kept, password)
    except passwords.TooManyWaiting:
        return await _page(visit, 503, wait=passwords.ALL_TURNS, name=name)
    if wait:
        return await _page(visit, 429, wait=wait, name=name)
    address = visit.panel.address_of(visit.request)
    if kept is not None and is_right and kept.administrator.one_time:
        # it counts once, and is used from now on
        is_right = await panel.administrators.use_up(kept.administrator.id, kept.password)
    if kept is None or not is_right:
        # what is nobody's name may be a password that came into the wrong field
        whose = kept.administrator.name if kept else "-"
        await panel.deeds.note(whose, "sign-in refused", address=address)
        return await _page(visit, 401, name=name)
    await panel.attempts.forgive(f"device {device}" if device else passwords.of_name(name))
    who, browser = kept.administrator, "known" if device else "new"
    await panel.deeds.note(who.name, "signed in", address=address, browser=browser)
    path, password = _next(visit.text("next")), kept.password
    if who.one_time:
        path, password = CHOOSE, ""
    response = await _enter(visit, path, "", who.id, password)
    response.del_cookie(_ASKED)
    return response


async def _try(
    visit: Visit, name: str, kept: Credential | None, password: str
) -> tuple[bool, int, str | None]:
    """Returns an attempt, and the known browser that it counts for; None for a stranger's.

    While a known browser's own count has to wait, its attempts are those of a stranger. So whoever
    stole its cookie does not shut out its owner by wrong passwords with it.
    """
    pause = 0
    if kept is not None:
        token = visit.request.cookies.get(_device_cookie(visit, kept.administrator.id), "")
        if device := administrator.device_of(token, kept, visit.now):
            subject = f"device {device}"
            is_right, pause = await _attempt(visit, subject, kept, password, is_known=True)
            if not pause:
                return is_right, 0, device
    is_right, wait = await _attempt(visit, passwords.of_name(name), kept, password, is_known=False)
    return is_right, min(wait, pause or wait), None


@post("/sign-out", Right.READ, while_choosing=True)
async def _sign_out(visit: Visit) -> web.Response:
    await visit.panel.deeds.note(visit.who.name, "signed out")
    visit.session.invalidate()
    response = visit.go(SIGN_IN)
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


def _asked(visit: Visit) -> str:
    """Returns what this browser was told with the form; "" where it holds nothing of the kind."""
    asked = visit.request.cookies.get(_ASKED, "")
    return asked if asked.isascii() else ""


def _next(wanted: str, otherwise: str = FIRST) -> str:
    """Returns a page of this panel to go on to; never an address elsewhere."""
    is_ours = wanted.startswith("/") and not wanted.startswith(("//", "/\\"))
    return wanted if is_ours and wanted.isprintable() else otherwise


async def _page(visit: Visit, status: int = 200, *, name: str = "", wait: int = 0) -> web.Response:
    asked = _asked(visit) or secrets.token_urlsafe(24)
    response = visit.page(
        "sign-in.html",
        status,
        asked=asked,
        wanted=_next(visit.text("next") or visit.asked("next"), ""),
        name=name,
        wait=wait,
        is_empty=not await visit.panel.administrators.list(),
    )
    visit.panel.set_cookie(response, _ASKED, asked)
    return response


@get("/")
async def _first(visit: Visit) -> web.Response:
    return visit.go(FIRST)


@get(CHOOSE, while_choosing=True)
async def _account(
    visit: Visit, errors: dict[str, str] | None = None, wait: int = 0
) -> web.Response:
    """Both, on one page; `wait` are the seconds before the present password counts again."""
    return visit.page(
        "account.html",
        429 if wait else 200,
        errors=errors,
        wait=wait,
        sessions=await visit.panel.sessions.list(visit.now, of=visit.who.id),
        this=visit.request[SIGNED_IN].id,
        shortest=passwords.SHORTEST,
        longest=passwords.LONGEST,
    )


@post("/account/password", Right.READ, while_choosing=True)
async def _change_password(visit: Visit) -> web.Response:
    """Sets another password; whoever is signed in elsewhere with the old one no longer is."""
    who, panel, words = visit.who, visit.panel, visit.words
    kept = await panel.administrators.get(who.id)
    if kept is None:
        raise web.HTTPNotFound
    old, new, again = (str(visit.form.get(name, "")) for name in ("old", "new", "again"))
    errors: dict[str, str] = {}
    if not kept.administrator.one_time:
        subject = f"session {visit.request[SIGNED_IN].id}"
        is_right, wait = await _attempt(visit, subject, kept, old, is_known=True)
        if wait:
            return await _account(visit, {"old": words("sign-in.wait", wait)}, wait)
        if is_right:
            await panel.attempts.forgive(subject)
        else:
            await panel.deeds.note(who.name, "password change refused", who.id, name=who.name)
            errors["old"] = words("account.wrong_old")
    try:
        passwords.check(new, who.name)
    except ValueError:
        errors["new"] = words(
            "account.weak", shortest=passwords.SHORTEST, longest=passwords.LONGEST
        )
    if new != again:
        errors["again"] = words("account.differ")
    if errors:
        return await _account(visit, errors)
    async with visit.deed("password changed", who.id, name=who.name):
        hashed = await panel.passwords.hash(new)
        await panel.administrators.set_password(
            who.id, hashed, one_time=False, instead_of=kept.password
        )
    return await _enter(visit, FIRST, "account.changed", who.id, hashed)


@post("/account/sessions", Right.READ)
async def _end_session(visit: Visit) -> web.Response:
    async with visit.deed("session ended", visit.who.id, name=visit.who.name):
        await visit.panel.sessions.end_one(visit.text("session"), of=visit.who.id)
    return visit.go(CHOOSE, "account.ended")
