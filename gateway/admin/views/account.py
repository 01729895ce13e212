"""One's own account: another password, and where one is signed in."""

from aiohttp import web

from gateway.admin.access.entering import attempt, begin_session, remember_device
from gateway.admin.access.guard import CHOOSE
from gateway.admin.access.session import SIGNED_IN
from gateway.admin.routes import Page
from gateway.admin.views.sign_in import FIRST
from gateway.admin.visit import Visit
from gateway.administrators.failures import of_session
from gateway.administrators.passwords import LONGEST, SHORTEST, check
from gateway.administrators.roles import Right


async def account(
    visit: Visit, errors: dict[str, str] | None = None, wait: int = 0
) -> web.Response:
    """Both, on one page; `wait` are the seconds before the present password counts again."""
    sessions = await visit.administration.sessions.list(visit.parts.now(), of=visit.who.id)
    response = visit.page(
        "account.html",
        429 if wait else 422 if errors else 200,
        errors=errors or {},
        sessions=sessions,
        this=visit.request[SIGNED_IN].id,
        shortest=SHORTEST,
        longest=LONGEST,
    )
    if wait:
        response.headers["Retry-After"] = str(wait)
    return response


async def change_password(visit: Visit) -> web.Response:
    """Another password; whoever is signed in elsewhere with the one before it no longer is."""
    who, administration = visit.who, visit.administration
    kept = await administration.administrators.get(who.id)
    if kept is None:
        raise web.HTTPNotFound
    new, again = (str(visit.form.get(name, "")) for name in ("new", "again"))
    errors: dict[str, str] = {}
    if not kept.administrator.one_time:
        subject = of_session(visit.request[SIGNED_IN].id)
        old = str(visit.form.get("old", ""))
        tried = await attempt(visit, subject, kept, old, is_known=True)
        if tried.wait:
            told = visit.words("sign-in.wait", tried.wait)
            return await account(visit, {"old": told}, tried.wait)
        if tried.is_right:
            await administration.failures.forgive(subject)
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
        return await account(visit, errors)
    async with visit.deed("password changed", who.id, name=who.name):
        kept_of_it = await administration.passwords.hash(new)
        await administration.administrators.set_password(
            who.id, kept_of_it, one_time=False, instead_of=kept.password
        )
    await begin_session(visit, who.id, kept_of_it)
    response = visit.go(FIRST, "account.changed")
    remember_device(visit, response, who.id, kept_of_it)
    return response


async def end_session(visit: Visit) -> web.Response:
    """One of one's own sessions ends."""
    session_id = visit.text("session")
    async with visit.deed("session ended", visit.who.id, name=visit.who.name):
        await visit.administration.sessions.end_one(session_id, of=visit.who.id)
    return visit.go(CHOOSE, "account.ended")


PAGES = (
    Page(method="GET", path=CHOOSE, view=account, needs=Right.READ, while_choosing=True),
    Page(
        method="POST",
        path="/account/password",
        view=change_password,
        needs=Right.READ,
        while_choosing=True,
    ),
    Page(method="POST", path="/account/sessions", view=end_session, needs=Right.READ),
)
