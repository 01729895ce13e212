"""Whose time is asked for, and which rows are that one's."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select

from adapters.sql.columns import sql
from adapters.sql.engines.base import given


@dataclass(frozen=True, slots=True)
class Calendar:
    """Whose time is asked for: a vet, by the raw key, in one of the vet's schedules, if any.

    `spellings` are all in which a row may have the vet's key.
    """

    vet: Any
    schedule: Any = None
    spellings: tuple[Any, ...] = ()

    @property
    def vets(self) -> list[Any]:
        """The vet's key in each of its spellings."""
        return list(self.spellings or (self.vet,))


class Whose:
    """The rows of a calendar: by its vet, by its schedule, or all of them."""

    def __init__(self, vet: str | None, schedule: str | None) -> None:
        self._by_schedule = schedule is not None
        named = vet or schedule
        self._condition = None if named is None else sql(named).in_(given("owner", expanding=True))

    def rows(self, statement: Select[Any]) -> Select[Any]:
        return statement if self._condition is None else statement.where(self._condition)

    def schedule(self, calendar: Calendar) -> Any:
        """The calendar's schedule, where the rows are that schedule's; else None."""
        return calendar.schedule if self._by_schedule else None

    def bound(self, calendar: Calendar) -> dict[str, Any]:
        if self._condition is None:
            return {}
        return {"owner": [calendar.schedule] if self._by_schedule else calendar.vets}
