"""The tables that a copy is made of, and why none can be made."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class CopyError(Exception):
    """Why there is no new copy, as a sentence without any value of the practice's."""


class TornError(CopyError):
    """What was read is not whole, as something writes there; worth another try at once."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the copy, with the type that SQLite is told."""

    name: str
    declared: str


class SourceTable(Protocol):
    """A table of the practice system's files, of which the bytes lie on this machine.

    `digest` tells its content from any other; None where only the rows tell. `omitted` says what of
    it is not copied, as ends of sentences. It `is_codeless` where it has texts and nothing says in
    which code page they are.
    """

    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> Sequence[Column]: ...

    @property
    def digest(self) -> str | None: ...

    @property
    def omitted(self) -> Sequence[str]: ...

    @property
    def is_codeless(self) -> bool: ...

    def rows(self) -> Iterator[Sequence[Any]]:
        """Yields the rows, one at a time. Raises CopyError where they are damaged."""
