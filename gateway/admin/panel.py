"""The panel as an application: its pages, what they are rendered with, and what guards them."""

import warnings
from functools import cache

import aiohttp_jinja2
import jinja2
from aiohttp import web
from aiohttp_session import session_middleware

from gateway.admin.access.administration import Administration
from gateway.admin.access.guard import always, answer
from gateway.admin.access.session import StoreStorage
from gateway.admin.assets import STATIC, serve, static
from gateway.admin.chores import add_chores
from gateway.admin.parts import Parts
from gateway.admin.sampler import Sampler, add_sampler
from gateway.admin.views import PAGES
from gateway.admin.visit import ADMINISTRATION, KEYS, PARTS
from gateway.inquiries.key_book import KeyBook
from gateway.keys.store import KeyStore

# Bytes of a form: the longest holds a note of some lines.
LARGEST_FORM = 64 * 1024
# aiohttp-session names what it keeps of a request by a text, as was the custom
warnings.filterwarnings("ignore", category=web.NotAppKeyWarning, module="aiohttp_session")


def panel(parts: Parts, administration: Administration) -> web.Application:
    """The application, not started yet."""
    polled = frozenset(each.path for each in PAGES if each.polled)

    def address_of(request: web.Request) -> str:
        remote = request.remote or ""
        return parts.caller(remote, request.headers) if parts.trusts(remote) else remote

    storage = StoreStorage(
        administration.sessions,
        parts.now,
        is_secure=parts.is_secure,
        address_of=address_of,
        is_use=lambda request: request.path not in polled,
    )
    app = web.Application(
        middlewares=[always, session_middleware(storage)], client_max_size=LARGEST_FORM
    )
    app[PARTS], app[ADMINISTRATION] = parts, administration
    app[KEYS] = KeyBook(KeyStore(parts.store))
    add_chores(app, parts.events)
    add_sampler(app, Sampler(parts, app[KEYS]))
    app[aiohttp_jinja2.APP_KEY] = _templates()
    for page in PAGES:
        app.router.add_route(page.method, page.path, answer(page))
    app.router.add_get(f"{STATIC}{{name:.+}}", serve)
    return app


@cache
def _templates() -> jinja2.Environment:
    """Of this process: what one panel has compiled the next one need not."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("gateway.admin"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(static=static)
    return made
