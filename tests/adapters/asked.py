"""What databases are asked: in the driver's own words, and through SQLAlchemy."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from sqlalchemy import Engine, event

from adapters.sql.engines.connection import LoopConnection, ThreadConnection, WorkConnection

# What begins, ends and bounds their work.
_NO_ASKING = ("BEGIN", "COMMIT", "ROLLBACK", "SET", "START", "SELECT SET_CONFIG", "PRAGMA")


class Asked(NamedTuple):
    """A statement as the driver got it, and its parameters."""

    text: str
    bound: Any


@contextmanager
def asked() -> Iterator[list[Asked]]:
    """The statements of every database meanwhile; what begins and ends their work is none."""
    heard: list[Asked] = []

    def note(*call: Any) -> None:
        _hear(heard, call[2], call[3])

    with ExitStack() as stack:
        for kind in (ThreadConnection, LoopConnection, WorkConnection):
            stack.enter_context(patch.object(kind, "run", _noted(kind, heard)))
        event.listen(Engine, "before_cursor_execute", note)
        stack.callback(event.remove, Engine, "before_cursor_execute", note)
        yield heard


def _noted(kind: Any, heard: list[Asked]) -> Any:
    run = kind.run

    async def noted(self: Any, text: str, bound: Sequence[Any] | None = None) -> Any:
        _hear(heard, text, bound)
        return await run(self, text, bound)

    return noted


def _hear(heard: list[Asked], text: str, bound: Any) -> None:
    if not text.upper().startswith(_NO_ASKING):
        heard.append(Asked(text, bound))
