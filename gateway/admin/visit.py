"""One request to the panel: its page, who asks, in which language, with which form; its answers."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import aiohttp_jinja2
import orjson
from aiohttp import web
from aiohttp_session import Session
from multidict import MultiDict, MultiDictProxy

from gateway.admin.context import ADMINISTRATION, CONTEXT, KEYS
from gateway.admin.session import CSRF, SAID, SIGNED_IN
from gateway.admin.words import PageClock, language_of, words
from gateway.administrators.administrator import Administrator, Right
from gateway.store import Store


class Visit:
    """What a view has to do with; `form` is empty but where something was posted."""

    def __init__(self, request: web.Request, session: Session) -> None:
        self.request = request
        self.session = session
        self.form = MultiDictProxy(MultiDict[Any]())
        self.words = words(language_of(request.headers.get("Accept-Language", "")))
        self.context = request.app[CONTEXT]
        self.administration = request.app[ADMINISTRATION]
        self.keys = request.app[KEYS]
        self.clock = PageClock(self.context.zone, self.words, self.context.now)
        self.signed_in = request[SIGNED_IN].administrator if SIGNED_IN in request else None

    @property
    def who(self) -> Administrator:
        """Who is signed in; raises RuntimeError on the pages that ask for nobody."""
        if self.signed_in is None:
            raise RuntimeError("nobody is signed in here")
        return self.signed_in

    @property
    def store(self) -> Store:
        """The gateway's own."""
        return self.context.store

    @property
    def now(self) -> datetime:
        """The time, in UTC."""
        return self.context.now()

    @property
    def today(self) -> date:
        """The day on the clinic's wall."""
        return self.now.astimezone(self.context.zone).date()

    @property
    def is_part(self) -> bool:
        """Whether a page that is open asks for a part of it."""
        return self.request.headers.get("HX-Request") == "true"

    def text(self, name: str) -> str:
        """Returns one value of the form, without blanks around it; "" where it is not there."""
        value = self.form.get(name, "")
        return value.strip() if isinstance(value, str) else ""

    def asked(self, name: str) -> str:
        """Returns one value of the address's query, in the same way."""
        return self.request.query.get(name, "").strip()

    def may(self, right: Right) -> bool:
        """Returns whether whoever is signed in has that right."""
        return self.signed_in is not None and self.signed_in.may(right)

    def page(self, template: str, status: int = 200, **context: Any) -> web.Response:
        """Renders a template; every one knows these beside its own context."""
        said = self.session.pop(SAID) if SAID in self.session and not self.is_part else None
        known: dict[str, Any] = {
            "t": self.words,
            "clock": self.clock,
            "language": self.words.language,
            "who": self.signed_in,
            "may": self.may,
            "Right": Right,
            "csrf": self.session.get(CSRF, ""),
            "path": self.request.path,
            "said": said,
        }
        known |= context
        return aiohttp_jinja2.render_template(template, self.request, known, status=status)

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
            "zone": self.context.zone.key,
            "step": step,
            "language": self.words.language,
        }
        return orjson.dumps(drawn).decode()

    def deed(
        self, deed: str, subject: str = "", **details: Any
    ) -> AbstractAsyncContextManager[dict[str, Any]]:
        """Goes around what is done here, so that the audit has it; see Deeds.deed."""
        return self.administration.deed(self.who.name, deed, subject, **details)


View = Callable[[Visit], Awaitable[web.StreamResponse]]


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


def get(path: str, view: View, needs: Right | None = Right.READ, **more: bool) -> PanelPage:
    """Returns a page that shows something."""
    return PanelPage(method="GET", path=path, view=view, needs=needs, **more)


def post(path: str, view: View, needs: Right | None, **more: bool) -> PanelPage:
    """Returns an action."""
    return PanelPage(method="POST", path=path, view=view, needs=needs, **more)


def number_of(text: str) -> int | None:
    """Returns the number of an entry in one of the store's tables, as an address has it."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
