"""Signing in and out, and one's own account: another password, and where one is signed in.

A failed attempt counts before the password is looked at.
"""

import secrets
from dataclasses import dataclass, replace
from math import ceil

from aiohttp import web
from aiohttp_session import new_session

from gateway.admin.guard import CHOOSE, SIGN_IN, Refusal, is_same
from gateway.admin.session import ADMINISTRATOR, CSRF, PROVED, SIGNED_IN
from gateway.admin.visit import Visit, get, post
from gateway.administrators.administrator import Credential, Right
from gateway.administrators.passwords import (
    ALL_TURNS,
    LONGEST,
    SHORTEST,
    TooManyWaiting,
    check,
    is_one_time,
    of_device,
    of_name,
    of_session,
)
from gateway.administrators.sessions import DEVICE_LASTS, device_of, device_token

FIRST = "/keys"
# A form that was not fetched from here by the same browser does not count.
_ASKED = "clinic-gateway-asked"


@dataclass(frozen=True, slots=True)
class PasswordAttempt:
    """Whether the password was right; else, or without a look, the seconds to wait for the next."""

    is_right: bool
    wait: int = 0


async def _attempt(
    visit: Visit, subject: str, kept: Credential | None, password: str, *, is_known: bool
) -> PasswordAttempt:
    """Tries a password, which counts for that subject until it is forgiven; TooManyWaiting.

    A one-time password is beyond guessing: it is looked at first, without a turn or a pause, so
    that whoever is handed one comes in while strangers guess at the name. That look is the same
    for every name; during a pause there is no other.
    """
    administration = visit.administration
    known, password = kept.password if kept else "", password[: LONGEST + 1]
    if is_one_time(known, password):
        return PasswordAttempt(True)
    async with administration.passwords.turn(is_known=is_known):
        pause = await administration.attempts.try_now(subject, visit.now)
        if pause:
            return PasswordAttempt(False, ceil(pause.total_seconds()))
        return PasswordAttempt(await administration.passwords.is_right(known, password))


async def _begin_session(visit: Visit, administrator_id: str, password: str) -> None:
    """Begins one once the answer is made, if `password` is still what is kept of theirs then.

    Whatever the browser held before means nothing from now on.
    """
    before = visit.session.identity
    if before is not None:
        await visit.administration.sessions.end(before)
    visit.session = await new_session(visit.request)
    visit.session[ADMINISTRATOR] = administrator_id
    visit.session[CSRF] = secrets.token_urlsafe(24)
    visit.request[PROVED] = password


def _remember_device(
    visit: Visit, response: web.Response, administrator_id: str, password: str
) -> None:
    """Makes the browser known, by another token than before."""
    token = device_token(administrator_id, password, visit.now)
    max_age = int(DEVICE_LASTS.total_seconds())
    _set_cookie(visit, response, _device_cookie(visit, administrator_id), token, max_age)


def _device_cookie(visit: Visit, administrator_id: str) -> str:
    """One for each administrator: several may share a browser."""
    prefix = "__Host-" if visit.context.is_secure else ""
    return f"{prefix}clinic-gateway-device-{administrator_id}"


def _set_cookie(
    visit: Visit, response: web.Response, name: str, value: str, max_age: int | None = None
) -> None:
    secure = visit.context.is_secure
    response.set_cookie(
        name, value, max_age=max_age, path="/", secure=secure, httponly=True, samesite="Strict"
    )


async def _form(visit: Visit) -> web.Response:
    """The form; who is signed in already goes on."""
    if visit.session.get(ADMINISTRATOR):
        return visit.go(_next(visit.asked("next")))
    return await _page(visit, wanted=_next(visit.asked("next"), ""))


async def _sign_in(visit: Visit) -> web.Response:
    """Signs in with a name and a password, or shows the form again."""
    if not is_same(visit.text("asked"), _asked(visit)):
        raise Refusal(403, "form")
    name, password = visit.text("name"), str(visit.form.get("password", ""))
    administration = visit.administration
    kept = await administration.administrators.find(name)
    try:
        tried, device = await _try(visit, name, kept, password)
    except TooManyWaiting:
        return await _page(visit, 503, is_busy=True, wait=ALL_TURNS, name=name)
    if tried.wait:
        return await _page(visit, 429, wait=tried.wait, name=name)
    address = visit.context.address_of(visit.request)
    if kept is None or not tried.is_right or not await _use_up(visit, kept):
        # what is nobody's name may be a password that came into the wrong field
        whose = kept.administrator.name if kept else "-"
        await administration.note(whose, "sign-in refused", address=address)
        return await _page(visit, 401, is_wrong=True, name=name)
    await administration.attempts.forgive(of_device(device) if device else of_name(name))
    who, browser = kept.administrator, "known" if device else "new"
    await administration.note(who.name, "signed in", address=address, browser=browser)
    await _begin_session(visit, who.id, "" if who.one_time else kept.password)
    response = visit.go(CHOOSE if who.one_time else _next(visit.text("next")))
    response.del_cookie(_ASKED)
    if not who.one_time:
        _remember_device(visit, response, who.id, kept.password)
    return response


async def _try(
    visit: Visit, name: str, kept: Credential | None, password: str
) -> tuple[PasswordAttempt, str | None]:
    """Returns the attempt, and the known browser that it counts for; None for a stranger's.

    While a known browser's own count has to wait, its attempts are those of a stranger. So whoever
    stole its cookie does not shut out its owner by wrong passwords with it.
    """
    device, pause = None, 0
    if kept is not None:
        token = visit.request.cookies.get(_device_cookie(visit, kept.administrator.id), "")
        device = device_of(token, kept, visit.now)
    if device is not None:
        own = await _attempt(visit, of_device(device), kept, password, is_known=True)
        if not own.wait:
            return own, device
        pause = own.wait
    tried = await _attempt(visit, of_name(name), kept, password, is_known=False)
    return replace(tried, wait=min(tried.wait, pause or tried.wait)), None


async def _use_up(visit: Visit, kept: Credential) -> bool:
    """Returns whether the password may be used; one that counts once is used from now on."""
    if not kept.administrator.one_time:
        return True
    return await visit.administration.administrators.use_up(kept.administrator.id, kept.password)


async def _sign_out(visit: Visit) -> web.Response:
    """Ends the session, here and in the store."""
    await visit.administration.note(visit.who.name, "signed out")
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


async def _page(
    visit: Visit,
    status: int = 200,
    *,
    wanted: str | None = None,
    name: str = "",
    wait: int = 0,
    **wrong: bool,
) -> web.Response:
    asked = _asked(visit) or secrets.token_urlsafe(24)
    response = visit.page(
        "sign-in.html",
        status,
        asked=asked,
        wanted=visit.text("next") if wanted is None else wanted,
        name=name,
        wait=wait,
        is_empty=not await visit.administration.administrators.count(),
        **{"is_wrong": False, "is_busy": False} | wrong,
    )
    _set_cookie(visit, response, _ASKED, asked)
    return _later(response, wait)


def _later(response: web.Response, wait: int) -> web.Response:
    if wait:
        response.headers["Retry-After"] = str(wait)
    return response


async def _first(visit: Visit) -> web.Response:
    return visit.go(FIRST)


async def _account(
    visit: Visit, errors: dict[str, str] | None = None, wait: int = 0
) -> web.Response:
    """Both, on one page; `wait` are the seconds before the present password counts again."""
    response = visit.page(
        "account.html",
        429 if wait else 422 if errors else 200,
        errors=errors or {},
        sessions=await visit.administration.sessions.list(visit.now, of=visit.who.id),
        this=visit.request[SIGNED_IN].id,
        shortest=SHORTEST,
        longest=LONGEST,
    )
    return _later(response, wait)


async def _change_password(visit: Visit) -> web.Response:
    """Sets another password; whoever is signed in elsewhere with the old one no longer is."""
    who, administration = visit.who, visit.administration
    kept = await administration.administrators.get(who.id)
    if kept is None:
        raise web.HTTPNotFound
    old, new, again = (str(visit.form.get(name, "")) for name in ("old", "new", "again"))
    errors: dict[str, str] = {}
    if not kept.administrator.one_time:
        subject = of_session(visit.request[SIGNED_IN].id)
        tried = await _attempt(visit, subject, kept, old, is_known=True)
        if tried.wait:
            told = visit.words("sign-in.wait", tried.wait)
            return await _account(visit, {"old": told}, tried.wait)
        if tried.is_right:
            await administration.attempts.forgive(subject)
        else:
            await administration.note(who.name, "password change refused", who.id, name=who.name)
            errors["old"] = visit.words("account.wrong_old")
    try:
        check(new, who.name)
    except ValueError:
        errors["new"] = visit.words("account.weak", shortest=SHORTEST, longest=LONGEST)
    if new != again:
        errors["again"] = visit.words("account.differ")
    if errors:
        return await _account(visit, errors)
    async with visit.deed("password changed", who.id, name=who.name):
        hashed = await administration.passwords.hash(new)
        await administration.administrators.set_password(
            who.id, hashed, one_time=False, instead_of=kept.password
        )
    await _begin_session(visit, who.id, hashed)
    response = visit.go(FIRST, "account.changed")
    _remember_device(visit, response, who.id, hashed)
    return response


async def _end_session(visit: Visit) -> web.Response:
    async with visit.deed("session ended", visit.who.id, name=visit.who.name):
        await visit.administration.sessions.end_one(visit.text("session"), of=visit.who.id)
    return visit.go(CHOOSE, "account.ended")


PAGES = (
    get("/", _first),
    get(SIGN_IN, _form, None),
    post(SIGN_IN, _sign_in, None),
    post("/sign-out", _sign_out, Right.READ, while_choosing=True),
    get(CHOOSE, _account, while_choosing=True),
    post("/account/password", _change_password, Right.READ, while_choosing=True),
    post("/account/sessions", _end_session, Right.READ),
)
