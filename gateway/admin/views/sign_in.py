"""Signs users in and out; has them change their own password and end their own sessions."""

import secrets
from math import ceil

from aiohttp import web
from aiohttp_session import new_session

from gateway.admin.guard import CHOOSE, SIGN_IN, Refusal, is_same
from gateway.admin.visit import ADMINISTRATOR, CSRF, PROVED, SIGNED_IN, Visit, get, post
from gateway.administrators import passwords, sessions
from gateway.administrators.administrator import Credential, Right

FIRST = "/keys"
# The cookie of a browser that fetched the form; without it the form is refused.
_ASKED = "clinic-gateway-asked"


async def _attempt(
    visit: Visit, subject: str, kept: Credential | None, password: str, *, is_known: bool
) -> tuple[bool, int]:
    """Returns whether a password is right, and the seconds to wait where it may not be tried now.

    An attempt counts as a failure of its subject until it is forgiven. A one-time password, which
    nobody can guess, is tried first, without a turn or a pause, so that it works while strangers
    guess at the name. Raises TooManyWaiting.
    """
    known, password = kept.password if kept else "", password[: passwords.LONGEST + 1]
    if passwords.is_one_time(known, password):
        return True, 0
    async with visit.panel.passwords.turn(is_known=is_known):
        if pause := await visit.panel.attempts.try_now(subject, visit.now):
            return False, ceil(pause.total_seconds())
        return await visit.panel.passwords.is_right(known, password), 0


async def _enter(
    visit: Visit, path: str, notice: str, administrator_id: str, password: str
) -> web.Response:
    """Redirects to a page in a new session, if `password` is still what is kept then.

    The browser's former session ends. With a password that is not "" the browser becomes known, by
    a new token.
    """
    before = visit.session.identity
    if before is not None:
        await visit.panel.sessions.end(before)
    visit.session = await new_session(visit.request)
    visit.session[ADMINISTRATOR] = administrator_id
    visit.session[CSRF] = secrets.token_urlsafe(24)
    visit.request[PROVED] = password
    response = visit.go(path, notice)
    if password:
        token = sessions.device_token(administrator_id, password, visit.now)
        lasts = int(sessions.DEVICE_LASTS.total_seconds())
        visit.panel.set_cookie(response, _device_cookie(visit, administrator_id), token, lasts)
    return response


def _device_cookie(visit: Visit, administrator_id: str) -> str:
    """Returns the name of the cookie; one for each administrator, who may share a browser."""
    prefix = "__Host-" if visit.panel.is_secure else ""
    return f"{prefix}clinic-gateway-device-{administrator_id}"


@get(SIGN_IN, None)
async def _form(visit: Visit) -> web.Response:
    """The form; users who are signed in are sent on."""
    if visit.session.get(ADMINISTRATOR):
        return visit.go(_next(visit.query("next")))
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
        # it works once
        is_right = await panel.administrators.use_up(kept.administrator.id, kept.password)
    if kept is None or not is_right:
        # an unknown name may be a password in the wrong field
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
    """Attempts as in `_attempt`; returns also the known browser it counts for, None of a stranger.

    While a known browser has to wait, its attempts count as a stranger's. So a thief of its cookie
    cannot shut out its owner with wrong passwords.
    """
    pause = 0
    if kept is not None:
        token = visit.request.cookies.get(_device_cookie(visit, kept.administrator.id), "")
        if device := sessions.device_of(token, kept, visit.now):
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
    """Returns the cookie that this browser got with the form; "" where it has none."""
    token = visit.request.cookies.get(_ASKED, "")
    return token if token.isascii() else ""


def _next(path: str, otherwise: str = FIRST) -> str:
    """Returns the path if it is of this panel, else `otherwise`; never an address elsewhere."""
    is_ours = path.startswith("/") and not path.startswith(("//", "/\\"))
    return path if is_ours and path.isprintable() else otherwise


async def _page(visit: Visit, status: int = 200, *, name: str = "", wait: int = 0) -> web.Response:
    token = _asked(visit) or secrets.token_urlsafe(24)
    response = visit.page(
        "sign-in.html",
        status,
        asked=token,
        wanted=_next(visit.text("next") or visit.query("next"), ""),
        name=name,
        wait=wait,
        is_empty=not await visit.panel.administrators.list(),
    )
    visit.panel.set_cookie(response, _ASKED, token)
    return response


@get("/")
async def _first(visit: Visit) -> web.Response:
    return visit.go(FIRST)


@get(CHOOSE, while_choosing=True)
async def _account(
    visit: Visit, errors: dict[str, str] | None = None, wait: int = 0
) -> web.Response:
    """The user's account; `wait` are the seconds before the present password may be tried again."""
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
    """Sets another password, which ends the sessions of the old one."""
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
async def _end_own_session(visit: Visit) -> web.Response:
    async with visit.deed("session ended", visit.who.id, name=visit.who.name):
        await visit.panel.sessions.end_one(visit.text("session"), of=visit.who.id)
    return visit.go(CHOOSE, "account.ended")
