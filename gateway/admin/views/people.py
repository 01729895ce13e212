"""Who may use the panel: administrators, their roles, and who is signed in."""

from collections.abc import Mapping

from aiohttp import web

from gateway.admin.routes import Page
from gateway.admin.visit import Visit
from gateway.administrators.administrator import name_of
from gateway.administrators.failures import of_name
from gateway.administrators.passwords import made_up, one_time_digest
from gateway.administrators.roles import Right, Role
from gateway.administrators.store import LastAdmin, NameTaken, NoSuchAdministrator

PEOPLE = "/people"


async def people(
    visit: Visit, errors: Mapping[str, str] | None = None, made: Mapping[str, str] | None = None
) -> web.Response:
    """All of them, with their sessions; `made` is somebody new with a password to be told once."""
    administration = visit.administration
    return visit.page(
        "people.html",
        422 if errors else 200,
        administrators=await administration.administrators.list(),
        sessions=await administration.sessions.list(visit.parts.now()),
        roles=list(Role),
        errors=errors or {},
        made=made,
        form=visit.form,
    )


async def add(visit: Visit) -> web.Response:
    """Somebody new, with a password that lets in once."""
    role = visit.text("role")
    try:
        name = name_of(visit.text("name"))
    except ValueError:
        return await people(visit, {"name": visit.words("people.bad_name")})
    if role not in set(Role):
        return await people(visit, {"role": visit.words("people.bad_role")})
    password = made_up()
    administration = visit.administration
    try:
        async with visit.deed("administrator added", name, role=role):
            kept = one_time_digest(password)
            await administration.administrators.add(
                name, Role(role), kept, visit.parts.now(), one_time=True
            )
    except NameTaken:
        return await people(visit, {"name": visit.words("people.taken")})
    return await people(visit, made={"name": name, "password": password})


async def act(visit: Visit) -> web.Response:
    """Another role, another password, or gone."""
    whose, deed = visit.text("id"), visit.text("do")
    kept = await visit.administration.administrators.get(whose)
    if kept is None:
        raise web.HTTPNotFound
    try:
        if deed == "role":
            return await _role(visit, whose, kept.administrator.name)
        if deed == "password":
            return await _password(visit, whose, kept.administrator.name)
        if deed == "remove":
            return await _remove(visit, whose, kept.administrator.name)
    except LastAdmin:
        return await people(visit, {"last": visit.words("people.last")})
    except NoSuchAdministrator as error:
        raise web.HTTPNotFound from error
    raise web.HTTPNotFound


async def _role(visit: Visit, whose: str, name: str) -> web.Response:
    role = visit.text("role")
    if role not in set(Role):
        return await people(visit, {"role": visit.words("people.bad_role")})
    async with visit.deed("role changed", whose, name=name, role=role):
        await visit.administration.administrators.set_role(whose, Role(role))
    return visit.go(PEOPLE, "people.role_changed")


async def _password(visit: Visit, whose: str, name: str) -> web.Response:
    password = made_up()
    async with visit.deed("password reset", whose, name=name):
        kept = one_time_digest(password)
        await visit.administration.administrators.set_password(whose, kept, one_time=True)
        await visit.administration.failures.forgive(of_name(name))
    if whose == visit.who.id:
        visit.session.invalidate()
    return await people(visit, made={"name": name, "password": password})


async def _remove(visit: Visit, whose: str, name: str) -> web.Response:
    if visit.text("confirm") != name:
        return await people(visit, {"confirm": visit.words("people.confirm_differs", name=name)})
    async with visit.deed("administrator removed", whose, name=name):
        await visit.administration.administrators.remove(whose)
    return visit.go(PEOPLE, "people.removed", name=name)


async def end_session(visit: Visit) -> web.Response:
    """Somebody's session ends."""
    session_id, sessions = visit.text("session"), visit.administration.sessions
    running = await sessions.list(visit.parts.now())
    whose = next((each.administrator.name for each in running if each.id == session_id), "")
    async with visit.deed("session ended", session_id, name=whose):
        await sessions.end_one(session_id)
    return visit.go(PEOPLE, "people.ended")


PAGES = (
    Page(method="GET", path=PEOPLE, view=people, needs=Right.PEOPLE),
    Page(method="POST", path=PEOPLE, view=add, needs=Right.PEOPLE),
    Page(method="POST", path=f"{PEOPLE}/act", view=act, needs=Right.PEOPLE),
    Page(method="POST", path=f"{PEOPLE}/sessions", view=end_session, needs=Right.PEOPLE),
)
