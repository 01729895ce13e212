"""Sessions as aiohttp-session has them, kept in the gateway's store: a cookie only names one."""

from collections.abc import Collection

from aiohttp import web
from aiohttp_session import AbstractStorage, Session

from gateway.admin.context import PanelContext
from gateway.administrators.sessions import SessionStore, SignedIn
from gateway.observe.lines import printable

SIGNED_IN = web.RequestKey("signed in", SignedIn)
# What is kept of the password that a new session is begun with.
PROVED = web.RequestKey("proved", str)
ADMINISTRATOR, CSRF, SAID = "administrator", "csrf", "said"


class StoreStorage(AbstractStorage):
    """Finds and keeps them; `polled` are the paths that no person asks for, which are no use."""

    def __init__(
        self, sessions: SessionStore, context: PanelContext, polled: Collection[str]
    ) -> None:
        # a browser takes a cookie of that prefix only from this very host, over TLS
        name = "__Host-clinic-gateway" if context.is_secure else "clinic-gateway"
        super().__init__(
            cookie_name=name, secure=context.is_secure, httponly=True, samesite="Strict"
        )
        self._sessions = sessions
        self._context = context
        self._polled = polled

    async def load_session(self, request: web.Request) -> Session:
        """Returns the session that the cookie names, unless it is over."""
        token = self.load_cookie(request)
        found = None
        # bytes that are no text come as halves of letters, which nothing can be made of
        if token and token.isascii():
            is_use = request.path not in self._polled
            found = await self._sessions.find(token, self._context.now(), is_use=is_use)
        if found is None:
            return Session(None, data=None, new=True)
        request[SIGNED_IN] = found
        began = int(found.created_at.timestamp())
        return Session(token, data={"created": began, "session": dict(found.data)}, new=False)

    async def save_session(
        self, request: web.Request, response: web.StreamResponse, session: Session
    ) -> None:
        """Begins it, keeps what has changed, or ends it where it is empty now."""
        if session.empty:
            if session.identity is not None:
                await self._sessions.end(session.identity)
            self._set(response, "", 0)
        elif session.identity is None:
            data = dict(session)
            whose, agent = data[ADMINISTRATOR], printable(request.headers.get("User-Agent", ""))
            address, now = self._context.address_of(request), self._context.now()
            token = await self._sessions.begin(whose, request[PROVED], data, now, address, agent)
            self._set(response, token, None)
        else:
            await self._sessions.save(session.identity, dict(session))

    def _set(self, response: web.StreamResponse, value: str, max_age: int | None) -> None:
        """Sets a cookie of the browser's session; to take one away needs the same marks."""
        response.set_cookie(
            self.cookie_name,
            value,
            max_age=max_age,
            path="/",
            secure=bool(self.cookie_params["secure"]),
            httponly=True,
            samesite="Strict",
        )
