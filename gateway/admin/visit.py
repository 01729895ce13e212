"""One request to the panel: who asks, in which language, with which form; and its answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp_jinja2
from aiohttp import web
from aiohttp_session import Session
from multidict import MultiDict, MultiDictProxy

from gateway.admin.access.administration import Administration
from gateway.admin.access.session import CSRF, SAID
from gateway.admin.parts import Parts
from gateway.admin.shown import Clock
from gateway.admin.words import Words
from gateway.administrators.administrator import Administrator
from gateway.administrators.roles import Right
from gateway.inquiries.key_book import KeyBook

PARTS = web.AppKey("parts", Parts)
ADMINISTRATION = web.AppKey("administration", Administration)
KEYS = web.AppKey("keys", KeyBook)


class Visit:
    """What a view has to do with; `form` is empty but where something was posted.

    `who` raises RuntimeError on the pages that ask for nobody.
    """

    def __init__(
        self,
        request: web.Request,
        session: Session,
        who: Administrator | None,
        words: Words,
        form: MultiDictProxy[Any] | None = None,
    ) -> None:
        self.request = request
        self.session = session
        self.words = words
        self.form = form if form is not None else MultiDictProxy(MultiDict[Any]())
        self.parts = request.app[PARTS]
        self.administration = request.app[ADMINISTRATION]
        self.clock = Clock(self.parts.zone, words, self.parts.now)
        self._who = who

    @property
    def who(self) -> Administrator:
        """Who is signed in."""
        if self._who is None:
            raise RuntimeError("nobody is signed in here")
        return self._who

    @property
    def is_part(self) -> bool:
        """Whether a page that is open asks for a part of it."""
        return self.request.headers.get("HX-Request") == "true"

    def text(self, name: str) -> str:
        """One value of the form, without blanks around it; "" where it is not there."""
        value = self.form.get(name, "")
        return value.strip() if isinstance(value, str) else ""

    def asked(self, name: str) -> str:
        """The same of the address's query."""
        return self.request.query.get(name, "").strip()

    def may(self, right: Right) -> bool:
        """Whether whoever is signed in has that right."""
        return self._who is not None and self._who.may(right)

    def page(self, template: str, status: int = 200, **context: Any) -> web.Response:
        """A rendered template; every one knows these beside its own context."""
        known: dict[str, Any] = {
            "t": self.words,
            "clock": self.clock,
            "language": self.words.language,
            "who": self._who,
            "may": self.may,
            "Right": Right,
            "csrf": self.session.get(CSRF, ""),
            "path": self.request.path,
            "said": self._said(),
        }
        known |= context
        return aiohttp_jinja2.render_template(template, self.request, known, status=status)

    def _said(self) -> str | None:
        """What the page before left to be said, once."""
        if self.is_part or SAID not in self.session:
            return None
        return str(self.session.pop(SAID))

    def go(self, path: str, said: str = "", **values: Any) -> web.Response:
        """To another page, which begins with what was `said`: a text's name, and its values."""
        if said:
            self.session[SAID] = self.words(said, **values)
        return web.Response(status=303, headers={"Location": path})

    @asynccontextmanager
    async def deed(
        self, deed: str, subject: str = "", **details: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """Around what is done here, so that the audit has it; see Administration.deed."""
        async with self.administration.deed(self.who.name, deed, subject, **details) as noted:
            yield noted


def number_of(text: str) -> int | None:
    """The number of an entry in one of the store's tables, as an address has it."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
