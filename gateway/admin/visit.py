"""Holds a request to the panel: its session, user, language and form, and makes its answers."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Any, TypeVar

import aiohttp_jinja2
import orjson
from aiohttp import web
from aiohttp_session import AbstractStorage, Session
from multidict import MultiDict, MultiDictProxy

from gateway.admin.context import Panel
from gateway.admin.words import PageClock, language_of, words
from gateway.administrators.administrator import Administrator, Right
from gateway.administrators.sessions import SignedIn
from gateway.observe.lines import printable

SIGNED_IN = web.RequestKey("signed in", SignedIn)
# What is kept of the password that a new session is begun with.
PROVED = web.RequestKey("proved", str)
ADMINISTRATOR, CSRF, SAID = "administrator", "csrf", "said"
PANEL = web.AppKey("panel", Panel)


class StoreStorage(AbstractStorage):
    """Loads and saves sessions in the store; a page that polls does not prolong its session."""

    def __init__(self, panel: Panel) -> None:
        is_secure = panel.is_secure
        # a browser takes a cookie with that prefix only from this host, over TLS
        name = "__Host-clinic-gateway" if is_secure else "clinic-gateway"
        super().__init__(cookie_name=name, secure=is_secure, httponly=True, samesite="Strict")
        self._panel = panel
        self._polled = {page.path for page in PAGES if page.polled}

    async def load_session(self, request: web.Request) -> Session:
        """Returns the session that the cookie names, unless it is over."""
        token, session = self.load_cookie(request), None
        # bytes that are no text come as surrogates, which cannot be encoded
        if token and token.isascii():
            is_use, now = request.path not in self._polled, self._panel.now()
            session = await self._panel.sessions.find(token, now, is_use=is_use)
        if session is None:
            return Session(None, data=None, new=True)
        request[SIGNED_IN] = session
        began = int(session.created_at.timestamp())
        return Session(token, data={"created": began, "session": dict(session.data)}, new=False)

    async def save_session(
        self, request: web.Request, response: web.StreamResponse, session: Session
    ) -> None:
        """Begins the session, saves its data, or ends it where it is empty now."""
        sessions, panel, data = self._panel.sessions, self._panel, dict(session)
        if session.empty:
            if session.identity is not None:
                await sessions.end(session.identity)
            panel.set_cookie(response, self.cookie_name, "", 0)
        elif session.identity is None:
            address, agent = panel.address_of(request), request.headers.get("User-Agent", "")
            who, proved, now = data[ADMINISTRATOR], request[PROVED], panel.now()
            token = await sessions.begin(who, proved, data, now, address, printable(agent))
            panel.set_cookie(response, self.cookie_name, token)
        else:
            await sessions.save(session.identity, data)


class Visit:
    """A request to the panel as its view sees it; `form` is empty unless one was posted."""

    def __init__(self, request: web.Request, session: Session) -> None:
        self.request = request
        self.session = session
        self.form = MultiDictProxy(MultiDict[Any]())
        self.panel = request.app[PANEL]
        self.store = self.panel.store
        self.words = words(language_of(request.headers.get("Accept-Language", "")))
        self.clock = PageClock(self.panel.zone, self.words, self.panel.now)
        self.signed_in = request[SIGNED_IN].administrator if SIGNED_IN in request else None
        # whether an open page asks for a part of itself
        self.is_part = request.headers.get("HX-Request") == "true"

    @property
    def who(self) -> Administrator:
        """The user who is signed in; raises RuntimeError on a page without `needs`."""
        if self.signed_in is None:
            raise RuntimeError("nobody is signed in here")
        return self.signed_in

    @property
    def now(self) -> datetime:
        return self.panel.now()

    @property
    def today(self) -> date:
        """The date in the clinic's time zone."""
        return self.now.astimezone(self.panel.zone).date()

    def text(self, name: str) -> str:
        """Returns a value of the form, without surrounding blanks; "" where it is missing."""
        return str(self.form.get(name, "")).strip()

    def query(self, name: str) -> str:
        """Returns a value of the query, in the same way."""
        return self.request.query.get(name, "").strip()

    def may(self, right: Right) -> bool:
        return self.signed_in is not None and self.signed_in.may(right)

    def page(
        self,
        template: str,
        status: int = 200,
        *,
        errors: Mapping[str, str] | None = None,
        wait: int = 0,
        **values: Any,
    ) -> web.Response:
        """Renders a template with its `values` and those that every page has.

        `errors` say what is wrong with each field of a form; with any, a 200 becomes a 422. `wait`
        are the seconds before the form may be sent again.
        """
        status = 422 if errors and status == 200 else status
        notice = self.session.pop(SAID) if SAID in self.session and not self.is_part else None
        values = {
            "t": self.words,
            "offered": self.panel.offered,
            "clock": self.clock,
            "language": self.words.language,
            "who": self.signed_in,
            "may": self.may,
            "csrf": self.session.get(CSRF, ""),
            "path": self.request.path,
            "said": notice,
            "errors": errors or {},
            "wait": wait,
            "status": status,
            **values,
        }
        page = aiohttp_jinja2.render_template(template, self.request, values, status=status)
        if wait:
            page.headers["Retry-After"] = str(wait)
        return page

    def go(self, path: str, notice: str = "", **values: Any) -> web.Response:
        """Redirects to another page, which shows the text named `notice` with its values."""
        if notice:
            self.session[SAID] = self.words(notice, **values)
        return web.Response(status=303, headers={"Location": path})

    def chart(
        self, times: Iterable[datetime], series: Sequence[Any], *, unit: str, step: str
    ) -> str:
        """Returns a bar chart for the script; `unit` names a text, `step` is minute or day."""
        drawn = {
            "times": [int(moment.timestamp()) for moment in times],
            "series": series,
            "unit": self.words(unit),
            "kind": "bars",
            "zone": self.panel.zone.key,
            "step": step,
            "language": self.words.language,
        }
        return orjson.dumps(drawn).decode()

    def deed(
        self, deed: str, subject: str = "", **details: Any
    ) -> AbstractAsyncContextManager[dict[str, Any]]:
        """Returns a context that records the action inside it in the audit; see Deeds.deed."""
        return self.panel.deeds.deed(self.who.name, deed, subject, **details)


View = Callable[[Visit], Awaitable[web.StreamResponse]]
ViewT = TypeVar("ViewT", bound=View)


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelPage:
    """A page or an action; without `needs` it is open to users who are not signed in.

    A `polled` page is asked for by a script, which is no use of a session. One `while_choosing`
    may be used before a one-time password has been replaced.
    """

    method: str
    path: str
    view: View
    needs: Right | None = Right.READ
    polled: bool = False
    while_choosing: bool = False


# All pages, once the views are imported.
PAGES: list[PanelPage] = []


def get(
    path: str, needs: Right | None = Right.READ, *, method: str = "GET", **more: bool
) -> Callable[[ViewT], ViewT]:
    """Registers the view below it as a page."""

    def register(view: ViewT) -> ViewT:
        PAGES.append(PanelPage(method=method, path=path, view=view, needs=needs, **more))
        return view

    return register


# registers an action, which a form is posted to
post = partial(get, method="POST")


def number_of(text: str) -> int | None:
    """Reads the number of a row or page in an address; None where it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
