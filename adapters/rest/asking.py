"""How the pages of a list are asked for: a call of the mapping, and what leads on from it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from adapters.rest.backend import Answer, Backend
from adapters.rest.paging import Ask, Params
from adapters.rest.records import FoundValue
from adapters.rest.templates import Endpoint, Values
from adapters.values.convert import Unreadable


def asking(
    backend: Backend,
    endpoint: Endpoint,
    values: Values,
    params: Sequence[tuple[str, Any]] = (),
) -> Ask:
    """Asks for pages of that call; NotFound at once where it names what nobody has."""
    endpoint.request(values, params)

    def ask(more: Params, link: str | None) -> Awaitable[Answer]:
        if link is None:
            return backend.read(endpoint.request(values, [*params, *more]))
        return backend.read(backend.linked(link, endpoint.label))

    return ask


def marked_by(key: FoundValue) -> Callable[[Any], Any]:
    """What tells rows apart: their key, None where it can't be read."""

    def mark(row: Any) -> Any:
        try:
            return key.plain(row)
        except Unreadable:
            return None

    return mark
