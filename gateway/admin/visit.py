"""One request to the panel: its session, who asks, in which language, with which form; its answers.

A session is kept in the gateway's store: a cookie only names one.
"""

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
from gateway.administrators.administrator import Administrator, Right, SignedIn
from gateway.observe.json_lines import printable

SIGNED_IN = web.RequestKey("signed in", SignedIn)
# What is kept of the password that a new session is begun with.
PROVED = web.RequestKey("proved", str)
ADMINISTRATOR, CSRF, SAID = "administrator", "csrf", "said"


PANEL = web.AppKey("panel", Panel)


class StoreStorage(AbstractStorage):
    """Finds and keeps sessions; a path that is polled, which no person asks for, is no use."""

    def __init__(self, panel: Panel) -> None:
        is_secure = panel.is_secure
        # a browser takes a cookie of that prefix only from this very host, over TLS
        name = "__Host-clinic-gateway" if is_secure else "clinic-gateway"
        super().__init__(cookie_name=name, secure=is_secure, httponly=True, samesite="Strict")
        self._panel = panel
        self._polled = {page.path for page in PAGES if page.polled}

    async def load_session(self, request: web.Request) -> Session:
        """Returns the session that the cookie names, unless it is over."""
        token, found = self.load_cookie(request), None
        # bytes that are no text come as halves of letters, which nothing can be made of
        if token and token.isascii():
            is_use, now = request.path not in self._polled, self._panel.now()
            found = await self._panel.sessions.find(token, now, is_use=is_use)
        if found is None:
            return Session(None, data=None, new=True)
        request[SIGNED_IN] = found
        began = int(found.created_at.timestamp())
        return Session(token, data={"created": began, "session": dict(found.data)}, new=False)

    async def save_session(
        self, request: web.Request, response: web.StreamResponse, session: Session
    ) -> None:
        """Begins it, keeps what has changed, or ends it where it is empty now."""
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
    """What a view has to do with; `form` is empty but where something was posted."""

    def __init__(self, request: web.Request, session: Session) -> None:
        self.request = request
        self.session = session
        self.form = MultiDictProxy(MultiDict[Any]())
        self.panel = request.app[PANEL]
        self.store = self.panel.store
        self.words = words(language_of(request.headers.get("Accept-Language", "")))
        self.clock = PageClock(self.panel.zone, self.words, self.panel.now)
        self.signed_in = request[SIGNED_IN].administrator if SIGNED_IN in request else None
        # whether a page that is open asks for a part of it
        self.is_part = request.headers.get("HX-Request") == "true"

    @property
    def who(self) -> Administrator:
        """Who is signed in; raises RuntimeError on the pages that ask for nobody."""
        if self.signed_in is None:
            raise RuntimeError("nobody is signed in here")
        return self.signed_in

    @property
    def now(self) -> datetime:
        return self.panel.now()

    @property
    def today(self) -> date:
        """The day on the clinic's wall."""
        return self.now.astimezone(self.panel.zone).date()

    def text(self, name: str) -> str:
        """Returns one value of the form, without blanks around it; "" where it is not there."""
        return str(self.form.get(name, "")).strip()

    def asked(self, name: str) -> str:
        """Returns one value of the address's query, in the same way."""
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
        """Renders a template; every one knows these beside its own values.

        `errors` are what is wrong with a form, by its fields: with some, a 200 becomes a 422.
        `wait` are the seconds before the form may be sent again.
        """
        status = 422 if errors and status == 200 else status
        said = self.session.pop(SAID) if SAID in self.session and not self.is_part else None
        values = {
            "t": self.words,
            "clock": self.clock,
            "language": self.words.language,
            "who": self.signed_in,
            "may": self.may,
            "csrf": self.session.get(CSRF, ""),
            "path": self.request.path,
            "said": said,
            "errors": errors or {},
            "wait": wait,
            "status": status,
            **values,
        }
        page = aiohttp_jinja2.render_template(template, self.request, values, status=status)
        if wait:
            page.headers["Retry-After"] = str(wait)
        return page

    def go(self, path: str, said: str = "", **values: Any) -> web.Response:
        """Sends to another page, which begins with what was `said`: a text's name, its values."""
        if said:
            self.session[SAID] = self.words(said, **values)
        return web.Response(status=303, headers={"Location": path})

    def chart(
        self, times: Iterable[datetime], series: Sequence[Any], *, unit: str, step: str
    ) -> str:
        """Returns the bars that the script draws; `unit` names a text, `step` is minute or day.

        The same numbers stand in a table beside it.
        """
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
        """Goes around what is done here, so that the audit has it; see Deeds.deed."""
        return self.panel.deeds.deed(self.who.name, deed, subject, **details)


View = Callable[[Visit], Awaitable[web.StreamResponse]]
ViewT = TypeVar("ViewT", bound=View)


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelPage:
    """A page or an action. Without `needs` nobody has to be signed in.

    What is `polled` is asked for by the page itself, so that it does not count as use.
    `while_choosing` may be used before a one-time password has been replaced.
    """

    method: str
    path: str
    view: View
    needs: Right | None = Right.READ
    polled: bool = False
    while_choosing: bool = False


# Every page there is, once the views are imported.
PAGES: list[PanelPage] = []


def get(
    path: str, needs: Right | None = Right.READ, *, method: str = "GET", **more: bool
) -> Callable[[ViewT], ViewT]:
    """Makes a page, which shows something, of the view that it stands above."""

    def made(view: ViewT) -> ViewT:
        PAGES.append(PanelPage(method=method, path=path, view=view, needs=needs, **more))
        return view

    return made


# an action: a form is posted to it
post = partial(get, method="POST")


def number_of(text: str) -> int | None:
    """Returns the number of an entry in one of the store's tables, as an address has it."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
