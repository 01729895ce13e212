"""What signing in and changing one's password have in common: attempts, and a session anew."""

from dataclasses import dataclass
from math import ceil

from aiohttp import web
from aiohttp_session import new_session

from gateway.admin.access.guard import new_token
from gateway.admin.access.session import ADMINISTRATOR, CSRF, PROVED
from gateway.admin.visit import Visit
from gateway.administrators.devices import LASTS, device_of, device_token
from gateway.administrators.passwords import LONGEST, is_one_time
from gateway.administrators.store import Kept


@dataclass(frozen=True, slots=True)
class Attempt:
    """Whether the password was right; else, or without a look, the seconds to wait for the next."""

    is_right: bool
    wait: int


def address_of(visit: Visit) -> str:
    """Who asks, whether or not through a proxy."""
    parts, remote = visit.parts, visit.request.remote or ""
    return parts.caller(remote, visit.request.headers) if parts.trusts(remote) else remote


async def attempt(
    visit: Visit, subject: str, kept: Kept | None, password: str, *, is_known: bool
) -> Attempt:
    """A try at a password, which counts for that subject until it is forgiven; Busy.

    A one-time password is beyond guessing: it is looked at first, without a turn or a pause, so
    that whoever is handed one comes in while strangers guess at the name. That look is the same
    for every name; during a pause there is no other.
    """
    administration = visit.administration
    known, password = kept.password if kept else "", password[: LONGEST + 1]
    if is_one_time(known, password):
        return Attempt(True, 0)
    async with administration.passwords.turn(is_known=is_known):
        pause = await administration.failures.try_now(subject, visit.parts.now())
        wait = ceil(pause.total_seconds())
        if wait:
            return Attempt(False, wait)
        return Attempt(await administration.passwords.is_right(known, password), 0)


async def begin_session(visit: Visit, administrator_id: str, password: str) -> None:
    """A new one, once the answer is made, if `password` is still what is kept of theirs then.

    Whatever the browser held before means nothing from now on.
    """
    before = visit.session.identity
    if before is not None:
        await visit.administration.sessions.end(before)
    visit.session = await new_session(visit.request)
    visit.session[ADMINISTRATOR], visit.session[CSRF] = administrator_id, new_token()
    visit.request[PROVED] = password


def known_device(visit: Visit, kept: Kept | None) -> str | None:
    """The browser, where that administrator has signed in from it before."""
    if kept is None:
        return None
    token = visit.request.cookies.get(_cookie(visit, kept.administrator.id), "")
    return device_of(token, kept, visit.parts.now())


def remember_device(
    visit: Visit, response: web.Response, administrator_id: str, password: str
) -> None:
    """From now on the browser is known, and by another token than before."""
    response.set_cookie(
        _cookie(visit, administrator_id),
        device_token(administrator_id, password, visit.parts.now()),
        max_age=int(LASTS.total_seconds()),
        path="/",
        secure=visit.parts.is_secure,
        httponly=True,
        samesite="Strict",
    )


def _cookie(visit: Visit, administrator_id: str) -> str:
    """One for each administrator: several may share a browser."""
    prefix = "__Host-" if visit.parts.is_secure else ""
    return f"{prefix}clinic-gateway-device-{administrator_id}"
