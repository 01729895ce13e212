"""What a draft is made of: guesses, each with how likely it is and what else it could be."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SURE, LIKELY = 0.85, 0.6
# What stands in the draft by its name, with what is said beside it.
Member = dict[str, tuple[Any, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A value of a row: the SQL (several columns of one value as a tuple) and its converter.

    `column` is the column that decides it, as TABLE.COLUMN; `own` that of the record's own row,
    where another table explains what it holds.
    """

    sql: str | tuple[str, ...]
    score: float
    why: str
    column: str
    others: tuple[str, ...] = ()
    own: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def comment(self) -> str:
        """How sure it is, why, and what else it could be."""
        word = "sure" if self.score >= SURE else "likely" if self.score >= LIKELY else "guess"
        said = word if word == "sure" else f"{word}: {self.why}"
        return f"{said}; or {', '.join(self.others)}" if self.others else said


@dataclass(slots=True, kw_only=True)
class RowsGuess:
    """Where records come from; `found` says of which table, and how likely that is."""

    table: str
    score: float
    from_: str
    alias: str
    where: list[tuple[str, str]] = field(default_factory=list)
    key: Guess | None = None
    parent: Guess | None = None
    others: tuple[str, ...] = ()
    fields: dict[str, Guess] = field(default_factory=dict)
    lists: dict[str, "RowsGuess"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of a booking: its lines besides `values`, and its values with comments."""

    lines: tuple[tuple[str, str, str], ...]
    values: tuple[tuple[str, Any, str], ...] = ()


@dataclass(slots=True, kw_only=True)
class Draft:
    """A whole guess: `hours` and `busy` are members with comments, in the file's order."""

    resources: dict[str, RowsGuess | None]
    hours: list[dict[str, tuple[Any, str]]] = field(default_factory=list)
    busy: list[dict[str, tuple[Any, str]]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    reference: str | None = None
