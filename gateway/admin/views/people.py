"""Who may use the panel: administrators, their roles, and who is signed in."""

from collections.abc import Mapping

from aiohttp import web

from gateway.admin.visit import Visit, get, post
from gateway.administrators.administrator import (
    LastAdmin,
    NameTaken,
    Right,
    Role,
    name_of,
)
from gateway.administrators.passwords import made_up, of_name, one_time_digest

PEOPLE = "/people"


async def _people(
    visit: Visit, errors: Mapping[str, str] | None = None, made: Mapping[str, str] | None = None
) -> web.Response:
    """All of them, with their sessions; `made` is somebody new with a password to be told once."""
    administration = visit.administration
    return visit.page(
        "people.html",
        422 if errors else 200,
        administrators=await administration.administrators.list(),
        sessions=await administration.sessions.list(visit.now),
        roles=list(Role),
        errors=errors or {},
        made=made,
        form=visit.form,
    )


async def _add(visit: Visit) -> web.Response:
    """Adds somebody, with a password that lets in once."""
    role, password = visit.text("role"), made_up()
    try:
        name = name_of(visit.text("name"))
    except ValueError:
        return await _people(visit, {"name": visit.words("people.bad_name")})
    if role not in set(Role):
        return await _people(visit, {"role": visit.words("people.bad_role")})
    try:
        async with visit.deed("administrator added", name, role=role):
            await visit.administration.administrators.add(
                name, Role(role), one_time_digest(password), visit.now, one_time=True
            )
    except NameTaken:
        return await _people(visit, {"name": visit.words("people.taken")})
    return await _people(visit, made={"name": name, "password": password})


async def _act(visit: Visit) -> web.Response:
    """Gives another role or another password, or removes somebody."""
    kept = await visit.administration.administrators.get(visit.text("id"))
    action = {"role": _role, "password": _password, "remove": _remove}.get(visit.text("do"))
    if kept is None or action is None:
        raise web.HTTPNotFound
    try:
        return await action(visit, kept.administrator.id, kept.administrator.name)
    except LastAdmin:
        return await _people(visit, {"last": visit.words("people.last")})


async def _role(visit: Visit, administrator_id: str, name: str) -> web.Response:
    role = visit.text("role")
    if role not in set(Role):
        return await _people(visit, {"role": visit.words("people.bad_role")})
    async with visit.deed("role changed", administrator_id, name=name, role=role):
        await visit.administration.administrators.set_role(administrator_id, Role(role))
    return visit.go(PEOPLE, "people.role_changed")


async def _password(visit: Visit, administrator_id: str, name: str) -> web.Response:
    password, administration = made_up(), visit.administration
    async with visit.deed("password reset", administrator_id, name=name):
        await administration.administrators.set_password(
            administrator_id, one_time_digest(password), one_time=True
        )
        await administration.attempts.forgive(of_name(name))
    if administrator_id == visit.who.id:
        visit.session.invalidate()
    return await _people(visit, made={"name": name, "password": password})


async def _remove(visit: Visit, administrator_id: str, name: str) -> web.Response:
    if visit.text("confirm") != name:
        return await _people(visit, {"confirm": visit.words("people.confirm_differs", name=name)})
    async with visit.deed("administrator removed", administrator_id, name=name):
        await visit.administration.administrators.remove(administrator_id)
    return visit.go(PEOPLE, "people.removed", name=name)


async def _end_session(visit: Visit) -> web.Response:
    session_id, sessions = visit.text("session"), visit.administration.sessions
    running = await sessions.list(visit.now)
    name = next((each.administrator.name for each in running if each.id == session_id), "")
    async with visit.deed("session ended", session_id, name=name):
        await sessions.end_one(session_id)
    return visit.go(PEOPLE, "people.ended")


PAGES = (
    get(PEOPLE, _people, Right.PEOPLE),
    post(PEOPLE, _add, Right.PEOPLE),
    post(f"{PEOPLE}/act", _act, Right.PEOPLE),
    post(f"{PEOPLE}/sessions", _end_session, Right.PEOPLE),
)
