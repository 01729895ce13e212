"""One's own account: another password, and where one is signed in."""

from aiohttp import web

from gateway.admin.guard import CHOOSE
from gateway.admin.session import SIGNED_IN
from gateway.admin.views.sign_in import FIRST, attempt, begin_session, remember_device
from gateway.admin.visit import Visit, get, post
from gateway.administrators.administrator import Right
from gateway.administrators.passwords import LONGEST, SHORTEST, check, of_session


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
    if wait:
        response.headers["Retry-After"] = str(wait)
    return response


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
        tried = await attempt(visit, subject, kept, old, is_known=True)
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
    await begin_session(visit, who.id, hashed)
    response = visit.go(FIRST, "account.changed")
    remember_device(visit, response, who.id, hashed)
    return response


async def _end_session(visit: Visit) -> web.Response:
    async with visit.deed("session ended", visit.who.id, name=visit.who.name):
        await visit.administration.sessions.end_one(visit.text("session"), of=visit.who.id)
    return visit.go(CHOOSE, "account.ended")


PAGES = (
    get(CHOOSE, _account, while_choosing=True),
    post("/account/password", _change_password, Right.READ, while_choosing=True),
    post("/account/sessions", _end_session, Right.READ),
)
