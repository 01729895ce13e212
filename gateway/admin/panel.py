"""Makes the panel's application: its routes, its templates, its guards, and its static files."""

import asyncio
import warnings
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp_jinja2
from aiohttp import web
from aiohttp_session import session_middleware

from gateway.admin.context import Panel
from gateway.admin.guard import always, answer
from gateway.admin.views import PAGES
from gateway.admin.visit import PANEL, StoreStorage
from gateway.administrators.administrator import Right, Role
from gateway.assets import accepts_gzip, static_files, templates
from gateway.contract.access import LEVELS, Permission
from gateway.contract.resources import GOVERNED
from gateway.policy.telling.preview import ABSENT

STATIC = "/static/"
_FILES = static_files(Path(__file__).with_name("static"))
# The most bytes of a form.
LARGEST_FORM = 64 * 1024
# aiohttp-session keys its values of a request by plain strings
warnings.filterwarnings("ignore", category=web.NotAppKeyWarning, module="aiohttp_session")


def panel(parts: Panel) -> web.Application:
    sessions = session_middleware(StoreStorage(parts))
    app = web.Application(middlewares=[always, sessions], client_max_size=LARGEST_FORM)
    app[PANEL], app[aiohttp_jinja2.APP_KEY] = parts, _templates
    app.cleanup_ctx.append(_background)
    for page in PAGES:
        app.router.add_route(page.method, page.path, answer(page))
    app.router.add_get(f"{STATIC}{{name:.+}}", _serve)
    return app


async def _background(app: web.Application) -> AsyncIterator[None]:
    parts = app[PANEL]
    parts.sampler.start()
    yield
    for work in (parts.verifying, parts.examining, parts.sampler):
        await work.aclose()


def static(name: str) -> str:
    """Returns the address of a file, which changes with its content."""
    return f"{STATIC}{name}?{_FILES[name].query}"


_templates = templates(Path(__file__).with_name("templates"))
_templates.globals.update(
    static=static,
    Right=Right,
    roles=list(Role),
    levels=LEVELS,
    permissions=list(Permission),
    governed=GOVERNED,
    absent=ABSENT,
)


async def _serve(request: web.Request) -> web.Response:
    # nosemgrep: nothing-is-taken-from-the-host-header - of the path, and only known names count
    file = _FILES.get(request.match_info["name"])
    if file is None:
        raise web.HTTPNotFound
    headers = {"Cache-Control": file.cache(request.query_string), "Vary": "Accept-Encoding"}
    body = file.body
    if accepts_gzip(request.headers.getall("Accept-Encoding", ())):
        # in a thread: packing takes a while the first time
        body = await asyncio.to_thread(lambda: file.packed)
        headers["Content-Encoding"] = "gzip"
    charset = "utf-8" if file.kind.startswith("text/") else None
    return web.Response(body=body, content_type=file.kind, charset=charset, headers=headers)
