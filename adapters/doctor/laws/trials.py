"""Defines laws on trial: what takes rows page by page, and tells in the end."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from adapters.base import Record
from adapters.doctor.case import KEY, LawLook
from adapters.examination import TOLERABLE

# Returns the part of a law at one field; None where it is switched off.
PartOf = Callable[[str, str], LawLook | None]


class Trial(ABC):
    """A law on trial: it takes the rows page by page, and tells at the end."""

    def __init__(self, part: LawLook) -> None:
        self.part = part

    @abstractmethod
    async def take(self, page: Sequence[Record]) -> None:
        """Takes more rows."""

    @abstractmethod
    def tell(self) -> None:
        """Adds what the rows say to the findings."""


class RowTrial(Trial):
    """A law of each row by itself; `holds` is None for a row that the law says nothing of."""

    fields: ClassVar[tuple[str, ...]]
    most: ClassVar[float] = TOLERABLE
    least: ClassVar[float] = 0.0

    @abstractmethod
    def holds(self, record: Record) -> bool | None:
        """Returns whether the row keeps the law."""

    async def take(self, page: Sequence[Record]) -> None:
        for record in page:
            if (holds := self.holds(record)) is not None:
                example = "" if holds else self.example(record)
                self.part.take(holds=holds, example=example, shown=record.get("id"))

    def example(self, record: Record) -> str:
        """Returns the row's key and the values that the law compares."""
        return told(record, {name: record.get(name) for name in self.fields})

    def tell(self) -> None:
        self.part.tell(most=self.most, least=self.least)


def told(record: Record, values: dict[str, Any]) -> str:
    """Returns a row's own key, with values by their names."""
    words = ", ".join(f"{name} {word(value)}" for name, value in values.items())
    return f"key {record.get(KEY) or 'unknown'}: {words}"


def word(value: Any) -> str:
    """Returns a value of a record as it is told."""
    if isinstance(value, bool) or value is None:
        return "null" if value is None else str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
