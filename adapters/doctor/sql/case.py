"""What every look of the doctor is given, and the findings that it makes."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from sqlalchemy import Connection

from adapters.base import Record, Shapes, Trouble
from adapters.doctor.findings import FindingMaker
from adapters.documents.document import Document, Place
from adapters.examination import Examination, Finding
from adapters.sql.parts import Parts
from adapters.sql.reading import ResourceReader


@dataclass(slots=True)
class Case(FindingMaker):
    """A mapped database, and what is known of it so far.

    `lost` are the places of rows that the database does not have, `samples` the records that were
    looked at, by resource and in the order of their keys.
    """

    parts: Parts
    examination: Examination
    shapes: Shapes
    troubles: list[Trouble]
    lost: set[Place] = field(default_factory=set)
    samples: dict[str, list[Record]] = field(default_factory=dict)

    def is_lost(self, *place: str | int) -> bool:
        """Whether the database lacks something there."""
        return any(each[: len(place)] == place or place[: len(each)] == each for each in self.lost)

    def readers(self) -> Iterator[tuple[str, ResourceReader]]:
        """The resources that can be read."""
        for name, reader in self.parts.readers.items():
            if not self.is_lost("resources", name):
                yield name, reader

    @property
    def document(self) -> Document:
        return self.parts.document


@dataclass(frozen=True, slots=True)
class Step:
    """One look in a snapshot of its own; `run` makes the findings."""

    check: str
    subject: str
    run: Callable[[Connection], Iterable[Finding]]
    place: Place = ()


Look = Callable[[Case], Iterator[Step]]
