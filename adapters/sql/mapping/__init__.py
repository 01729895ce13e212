"""The models of a mapping file: how a practice system's tables become the gateway's records.

The file is data, checked as a whole: every problem at once, with file, line and column. SQL stands
in it only as expressions and joins in the words of the practice's own database. What the models
cannot see by themselves is in adapters/sql/load.py.
"""

from typing import Literal

from pydantic import Field

from adapters.mapping.conversion import Strict, Zone
from adapters.sql.mapping.booking import NAMED, Booking, Value, Write
from adapters.sql.mapping.diary import (
    Busy,
    Diary,
    Durations,
    Hours,
    Rowspan,
    Schedules,
    SlotRows,
)
from adapters.sql.mapping.rows import Columns, Expression, InColumns, Key, ListOf, ResourceMap, Rows

__all__ = [
    "NAMED", "Booking", "Busy", "Columns", "Diary", "Durations", "Expression", "Hours",
    "InColumns", "Key", "ListOf", "Mapping", "ResourceMap", "Rows", "Rowspan", "Schedules",
    "SlotRows", "Value", "Write",
]  # fmt: skip


class Mapping(Strict):
    """A whole mapping file."""

    version: Literal[1] = Field(examples=[1])
    zone: Zone = Field(examples=["Europe/Paris"])
    resources: dict[str, ResourceMap]
    diary: Diary
    booking: Booking

    @property
    def kinds(self) -> dict[str, str]:
        """What the ids of each resource, and of each list inside one, are made of."""
        found = {name: rows.key.kind for name, rows in self.resources.items()}
        for name, rows in self.resources.items():
            found |= {f"{name}/{each}": nested.key.kind for each, nested in rows.lists.items()}
        return found
