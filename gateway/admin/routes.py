"""A page or an action of the panel: its path, who answers it, and the right that it takes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from gateway.admin.visit import Visit
from gateway.administrators.roles import Right

View = Callable[[Visit], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One of them. Without `needs` nobody has to be signed in.

    What is `polled` is asked for by the page itself, so that it does not count as use.
    `while_choosing` may be used before a one-time password has been replaced.
    """

    method: str
    path: str
    view: View
    needs: Right | None
    polled: bool = False
    while_choosing: bool = False


def get(path: str, view: View, *, polled: bool = False) -> Page:
    """A page that shows something."""
    return Page(method="GET", path=path, view=view, needs=Right.READ, polled=polled)


def post(path: str, view: View, needs: Right) -> Page:
    """An action."""
    return Page(method="POST", path=path, view=view, needs=needs)
