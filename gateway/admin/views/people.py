"""Shows and changes administrators, their roles, passwords and sessions."""

from collections.abc import Mapping

from aiohttp import web

from gateway.admin.visit import Visit, get, post
from gateway.administrators import administrator, passwords
from gateway.administrators.administrator import Right, Role

PEOPLE = "/people"


@get(PEOPLE, Right.PEOPLE)
async def _people(
    visit: Visit, errors: Mapping[str, str] | None = None, made: tuple[str, str] | None = None
) -> web.Response:
    """All administrators and sessions; `made` is a name with a password to be shown once."""
    return visit.page(
        "people.html",
        errors=errors,
        administrators=await visit.panel.administrators.list(),
        sessions=await visit.panel.sessions.list(visit.now),
        made=made,
        form=visit.form,
    )


async def _wrong(visit: Visit, field: str, text: str, **values: str) -> web.Response:
    return await _people(visit, {field: visit.words(f"people.{text}", **values)})


@post(PEOPLE, Right.PEOPLE)
async def _add(visit: Visit) -> web.Response:
    role, password = visit.text("role"), passwords.made_up()
    try:
        name = administrator.name_of(visit.text("name"))
    except ValueError:
        return await _wrong(visit, "name", "bad_name")
    if role not in set(Role):
        return await _wrong(visit, "role", "bad_role")
    try:
        async with visit.deed("administrator added", name, role=role):
            await visit.panel.administrators.add(
                name, Role(role), passwords.one_time_digest(password), visit.now, one_time=True
            )
    except administrator.NameTaken:
        return await _wrong(visit, "name", "taken")
    return await _people(visit, made=(name, password))


@post(f"{PEOPLE}/act", Right.PEOPLE)
async def _act(visit: Visit) -> web.Response:
    kept = await visit.panel.administrators.get(visit.text("id"))
    action = {"role": _role, "password": _password, "remove": _remove}.get(visit.text("do"))
    if kept is None or action is None:
        raise web.HTTPNotFound
    try:
        return await action(visit, kept.administrator.id, kept.administrator.name)
    except administrator.LastAdmin:
        return await _wrong(visit, "last", "last")


async def _role(visit: Visit, administrator_id: str, name: str) -> web.Response:
    role = visit.text("role")
    if role not in set(Role):
        return await _wrong(visit, "role", "bad_role")
    async with visit.deed("role changed", administrator_id, name=name, role=role):
        await visit.panel.administrators.set_role(administrator_id, Role(role))
    return visit.go(PEOPLE, "people.role_changed")


async def _password(visit: Visit, administrator_id: str, name: str) -> web.Response:
    password, administrators = passwords.made_up(), visit.panel.administrators
    kept = passwords.one_time_digest(password)
    async with visit.deed("password reset", administrator_id, name=name):
        await administrators.set_password(administrator_id, kept, one_time=True)
        await visit.panel.attempts.forgive(passwords.of_name(name))
    if administrator_id == visit.who.id:
        visit.session.invalidate()
    return await _people(visit, made=(name, password))


async def _remove(visit: Visit, administrator_id: str, name: str) -> web.Response:
    if visit.text("confirm") != name:
        return await _wrong(visit, "confirm", "confirm_differs", name=name)
    async with visit.deed("administrator removed", administrator_id, name=name):
        await visit.panel.administrators.remove(administrator_id)
    return visit.go(PEOPLE, "people.removed", name=name)


@post(f"{PEOPLE}/sessions", Right.PEOPLE)
async def _end_any_session(visit: Visit) -> web.Response:
    session_id, sessions = visit.text("session"), visit.panel.sessions
    running = await sessions.list(visit.now)
    name = next((one.administrator.name for one in running if one.id == session_id), "")
    async with visit.deed("session ended", session_id, name=name):
        await sessions.end_one(session_id)
    return visit.go(PEOPLE, "people.ended")
