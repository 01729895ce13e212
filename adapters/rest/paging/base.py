"""The shape of a way through a long list: batches of rows, each with the place behind it."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any

from adapters.base import AdapterError, BackendNonsense
from adapters.rest.backend import Answer
from adapters.values.convert import Unreadable, whole

# Rows of a list that one call looks at.
MOST_ROWS = 5_000

MOST_NEAR = 3
EMPTY = "where the backend leaves an empty list out, write items: NAME || `[]`"
_NAME = re.compile(r"[^\W\d]\w{0,30}").fullmatch

# Pages of a list without a new row in them, after which it has no end.
MOST_BARREN = 3

Params = tuple[tuple[str, Any], ...]

# Asks for a page: by further parameters, or by a link instead.
Ask = Callable[[Params, str | None], Awaitable[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows that are new, the place behind each, and whether it is known that none follow.

    `end` is the place behind all of it, where one can go on from a page without rows.
    """

    rows: Sequence[Any]
    places: Sequence[str]
    last: bool
    end: str | None = None


class NoArray(BackendNonsense):
    """Where the list should be is something else; `near` are the arrays elsewhere in the answer."""

    def __init__(self, text: str, near: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.near = tuple(near)


def may_be_empty(error: AdapterError) -> bool:
    """Whether an answer without the list may be one of a list that is empty."""
    return isinstance(error, NoArray) and not error.near


class Endless(BackendNonsense):
    """The list does not come to an end."""


class Barren(Endless):
    """It may yet: so many pages without rows are enough for one call."""


class Pager(ABC):
    """Goes through one list; `items` finds the rows in an answer, `mark` says which row it is."""

    def __init__(self, items: Callable[[Any], Any], mark: Callable[[Any], Any], label: str) -> None:
        self._items = items
        self._mark = mark
        self._label = label

    @abstractmethod
    def batches(self, ask: Ask, after: str | None, wanted: int) -> AsyncGenerator[Batch, None]:
        """The rows behind the place `after`; `wanted` is how many are enough for the moment."""

    def rows(self, answer: Answer) -> list[Any]:
        """The rows in an answer; BackendNonsense where there is no array."""
        try:
            found = self._items(answer.data)
        except Unreadable:
            found = None
        if not isinstance(found, list):
            text = f"{self._label}: there is no array where the list should be"
            near = list(islice(arrays_in(answer.data), MOST_NEAR))
            raise NoArray(text if near else f"{text}; {EMPTY}", near)
        return found

    def marks(self, rows: Sequence[Any]) -> list[str]:
        """A short text for each row, by its key."""
        return [_digest(self._mark(row)) for row in rows]

    def _endless(self, name: str) -> Endless:
        return Endless(f"{self._label}: the list does not end; does the backend know {name}?")


def arrays_in(data: Any, depth: int = 3) -> Iterator[str]:
    """The ways to arrays in an answer, as far as their names are plain and not deep."""
    if not isinstance(data, dict) or not depth:
        return
    for name, each in data.items():
        if _NAME(name) and isinstance(each, list):
            yield name
        elif _NAME(name):
            yield from (f"{name}.{inner}" for inner in arrays_in(each, depth - 1))


def place(*parts: Any) -> str:
    return json.dumps(parts, separators=(",", ":"))


def _digest(key: Any) -> str:
    return blake2b(json.dumps(key).encode(), digest_size=9).hexdigest()


def behind(marks: Sequence[str], mark: str) -> int | None:
    """The number of the first row behind the marked one; None where it is not there."""
    return marks.index(mark) + 1 if mark in marks else None


def is_last(total: Callable[[Any], Any] | None, answer: Answer, until: int) -> bool:
    """Whether the backend says that there are no more rows than those up to here."""
    if total is None:
        return False
    try:
        number = whole(total(answer.data))
    except Unreadable:
        number = None
    return number is not None and until >= number
